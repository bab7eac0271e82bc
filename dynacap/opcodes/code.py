"""Code objects taken apart into canonical instructions."""

import dis
import weakref
from types import CodeType
from typing import Any

from dynacap.opcodes.identity import CodeCache
from dynacap.opcodes.instruction import Handler, Instruction, Positions
from dynacap.opcodes.versions import version
from dynacap.opcodes.versions.protocol import Context, Version


class Code:
    """A code object as canonical instructions, with the exception handler of each.

    Holds the code object weakly: this is what the cache keeps for it, and it must be able to die.
    """

    __slots__ = ("_by_offset", "_code", "handlers", "instructions", "positions", "starts")

    def __init__(
        self,
        code: CodeType,
        instructions: list[Instruction],
        handlers: list[Handler | None],
        by_offset: dict[int, int],
    ) -> None:
        self._code = weakref.ref(code)
        self.instructions = instructions
        self.handlers = handlers
        self.positions: list[Positions] = [each.positions for each in instructions]
        self._by_offset = by_offset
        firsts = [each.first for each in instructions]
        # By index, that after the last included: whether an original begins there.
        self.starts = [
            one != other for one, other in zip([-1, *firsts], [*firsts, -2], strict=True)
        ]

    @property
    def code(self) -> CodeType:
        """The code object."""
        code = self._code()
        if code is None:
            raise ReferenceError("the code object of these instructions is gone")
        return code

    def index_at(self, offset: int) -> int:
        """Return the index of the instruction at, or after skipped ones next to, a byte offset."""
        return self._by_offset[offset]

    def is_boundary(self, index: int) -> bool:
        """Say whether a break may happen before this instruction: an original starts with it."""
        return self.starts[index]

    def original(self, index: int) -> list[Instruction]:
        """Return all instructions of the original that begins with the one at this index."""
        found = self.instructions[index : index + 1]
        while not self.starts[index := index + 1]:
            found.append(self.instructions[index])
        return found

    def __len__(self) -> int:
        return len(self.instructions)

    def __str__(self) -> str:
        return "\n".join(map(str, self.instructions))


_CACHE: CodeCache[Code] = CodeCache()


def decode(code: CodeType) -> Code:
    """Take a code object apart; each is taken apart once."""
    return _CACHE.get(code) or _CACHE.set(code, _decode(code))


def _decode(code: CodeType) -> Code:
    instructions, by_offset, goals = _instructions(code)
    for instruction, goal in goals:
        instruction.target = by_offset[goal]
    return Code(code, instructions, _handlers(code, instructions, by_offset), by_offset)


def _instructions(
    code: CodeType,
) -> tuple[list[Instruction], dict[int, int], list[tuple[Instruction, int]]]:
    """Decode the instructions; the jumps come with the byte offset that each goes to."""
    here = version()
    context = Context(code)
    raw = code.co_code
    positions: list[Positions] = list(code.co_positions())
    positions += [(None,) * 4] * (len(raw) // 2 - len(positions))  # where the table ends early
    instructions: list[Instruction] = []
    by_offset: dict[int, int] = {}
    goals: list[tuple[Instruction, int]] = []
    offset = 0
    number = 0
    start: tuple[int, int] | None = None  # offset and number of the first prefix not yet used
    extended = 0
    while offset < len(raw):
        op, arg = raw[offset], raw[offset + 1] | extended
        extended = arg << 8 if op == here.extended_arg else 0
        end = offset + 2 + 2 * here.caches[op]
        by_offset[offset] = len(instructions)
        if _is_prefix(here, op, raw[end : end + 8]):
            here.rules[op](arg, context)
            start = start or (offset, number)
        elif op in here.skipped:
            start = None
        else:
            first_offset, first = start or (offset, number)
            place = positions[offset >> 1]
            for name, operand in here.rules[op](arg, context):
                made = Instruction(
                    name, operand, len(instructions), first_offset, end, offset, first, number,
                    place[0], place,
                )  # fmt: skip
                instructions.append(made)
            if op in here.jumps:
                distance = -arg if op in here.backward else arg
                if instructions[-1].op == "FOR_ITER":
                    distance += len(here.loop_end)
                goals.append((instructions[-1], end + 2 * distance))
            start = None
        offset = end
        number += 1
    return instructions, by_offset, goals


def _is_prefix(here: Version, op: int, behind: bytes) -> bool:
    """Whether it belongs to the instruction behind it; a TO_BOOL for nobody is ``not not x``."""
    taker = next((other for other in behind[::2] if other != here.extended_arg), None)
    for_it = op != here.opcodes.get("TO_BOOL") or taker in map(here.opcodes.get, here.real_bools)
    return op in here.prefixes and for_it


def _handlers(
    code: CodeType, instructions: list[Instruction], by_offset: dict[int, int]
) -> list[Handler | None]:
    """Give each instruction the handler whose range of the exception table it lies in."""
    handlers: list[Handler | None] = [None] * len(instructions)
    entries: list[Any] = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    for entry in entries:
        handler = Handler(by_offset[entry.target], entry.depth, entry.lasti)
        for index in range(by_offset[entry.start], len(instructions)):
            if instructions[index].lasti >= entry.end:
                break
            handlers[index] = handler
    return handlers
