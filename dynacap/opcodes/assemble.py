"""Bytecode written down: instructions, exception table and line table.

Works on bytes, so that code taken over from an original stays as it is. Places are counted in code
units of two bytes, as CPython's tables do.
"""

from collections.abc import Iterator
from typing import NamedTuple

from dynacap.opcodes.instruction import Positions
from dynacap.opcodes.versions import version

_LONGEST_LOCATION = 8
_NO_COLUMN, _LONG, _NOWHERE = 13, 14, 15


class Covered(NamedTuple):
    """A row of the exception table: `start` to `end` are handled at `target`."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool

    def moved(self, by: int) -> "Covered":
        """Return the row for code that moved as a whole."""
        return Covered(self.start + by, self.end + by, self.target + by, self.depth, self.lasti)


class Assembler:
    """Writes instructions one after the other."""

    __slots__ = ("_version", "constants", "written")

    def __init__(self, constants: list[object]) -> None:
        self._version = version()
        self.written = bytearray()
        self.constants = constants

    @property
    def here(self) -> int:
        """The place of the next instruction."""
        return len(self.written) // 2

    def op(self, name: str, arg: int = 0) -> None:
        """Write an instruction of this Python, with the prefixes and caches that it needs."""
        opcode = self._version.opcodes[name]
        for shift in (24, 16, 8):
            if arg >> shift:
                self.written += bytes((self._version.extended_arg, arg >> shift & 0xFF))
        self.written += bytes((opcode, arg & 0xFF))
        self.written += bytes(2 * self._version.caches[opcode])

    def jump(self, name: str, distance: int) -> None:
        """Write a canonical jump that skips `distance` units."""
        self.op(self._version.forward.get(name, name), distance)

    def constant(self, value: object) -> None:
        """Write the load of a constant, added to the others."""
        self.op("LOAD_CONST", len(self.constants))
        self.constants.append(value)

    def callee(self, name: str, arg: int) -> None:
        """Write the load of what is to be called, with the NULL that belongs beside it."""
        for op in [("PUSH_NULL", 0), (name, arg)][:: 1 if self._version.null_first else -1]:
            self.op(*op)

    def call_spread(self) -> None:
        """Write the call with a tuple of arguments."""
        if self._version.spread_with_keywords:
            self.op("PUSH_NULL")
        self.op("CALL_FUNCTION_EX")

    def raw(self, code: bytes | bytearray) -> None:
        """Write instructions that are bytes already."""
        self.written += code


def exception_table(rows: list[Covered]) -> bytes:
    """Encode the rows of an exception table, which must be in order and apart."""
    table = bytearray()
    for row in rows:
        start = len(table)
        for number in (row.start, row.end - row.start, row.target, row.depth << 1 | row.lasti):
            table += bytes(_big_endian(number))
        table[start] |= 0x80
    return bytes(table)


def parse_exception_table(table: bytes) -> Iterator[Covered]:
    """Decode an exception table, in code units."""
    numbers = _numbers(table)
    for start in numbers:
        length, target, rest = next(numbers), next(numbers), next(numbers)
        yield Covered(start, start + length, target, rest >> 1, bool(rest & 1))


def _numbers(table: bytes) -> Iterator[int]:
    number = 0
    for byte in table:
        number = number << 6 | byte & 0x3F
        if not byte & 0x40:
            yield number
            number = 0


def _big_endian(number: int) -> list[int]:
    digits = [number & 0x3F]
    while number := number >> 6:
        digits.append(number & 0x3F | 0x40)
    return digits[::-1]


def nowhere(units: int) -> bytes:
    """Encode that so many code units belong to no line."""
    return b"".join(_entry(_NOWHERE, length) for length in _lengths(units))


def location(units: int, positions: Positions, line_before: int) -> bytes:
    """Encode that so many code units stand at a position, after an entry for `line_before`."""
    line, end_line, column, end_column = positions
    if line is None:
        return nowhere(units)
    table = bytearray()
    for length in _lengths(units):
        table += _entry(_LONG, length) + _signed(line - line_before)
        table += _little_endian((end_line or line) - line)
        table += _little_endian(0 if column is None else column + 1)
        table += _little_endian(0 if end_column is None else end_column + 1)
        line_before = line
    return bytes(table)


def line_shift(by: int) -> bytes:
    """Encode one code unit that only changes the line which the entries after it start from."""
    return _entry(_NO_COLUMN, 1) + _signed(by)


def _lengths(units: int) -> Iterator[int]:
    while units > 0:
        yield min(units, _LONGEST_LOCATION)
        units -= _LONGEST_LOCATION


def _entry(kind: int, length: int) -> bytes:
    return bytes((0x80 | kind << 3 | length - 1,))


def _little_endian(number: int) -> bytes:
    digits = bytearray()
    while number > 0x3F:
        digits.append(number & 0x3F | 0x40)
        number >>= 6
    digits.append(number)
    return bytes(digits)


def _signed(number: int) -> bytes:
    return _little_endian(-number << 1 | 1 if number < 0 else number << 1)
