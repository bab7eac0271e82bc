"""The canonical instruction: one operation with its operand decoded."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Positions = tuple[int | None, int | None, int | None, int | None]


@dataclass(slots=True, eq=False)
class Instruction:
    """One canonical instruction and the original instructions that it stands for.

    `first` and `last` count original instructions (caches are not instructions); `offset` and `end`
    are the bytes from the first of them, its EXTENDED_ARG included, to past the caches of the last.
    `lasti` is the byte offset that CPython would report for a frame standing here.
    """

    op: str
    arg: Any
    index: int
    offset: int
    end: int
    lasti: int
    first: int
    last: int
    line: int | None
    positions: Positions
    target: int | None = None

    def __str__(self) -> str:
        goal = "" if self.target is None else f" -> {self.target}"
        arg = "" if self.arg is None and self.op != "LOAD_CONST" else f" {self.arg!r}"
        return f"{self.index:4} {self.op}{arg}{goal}"


@dataclass(slots=True, frozen=True)
class Handler:
    """Where an exception raised by an instruction goes on.

    The stack is cut to `depth`; if `lasti`, the offset of the instruction is pushed; then the
    exception; and execution goes on at `target` (an index into the canonical instructions).
    """

    target: int
    depth: int
    lasti: bool


class Call(NamedTuple):
    """Operand of CALL: how many arguments lie on the stack, and the names of the last of them."""

    argc: int
    kwnames: tuple[str, ...]


class SuperName(NamedTuple):
    """Operand of LOAD_SUPER_ATTR: the name, and whether super is given its two arguments."""

    name: str
    explicit: bool


class CellSlot(NamedTuple):
    """Operand of MAKE_CELL: which cell, and the local whose value it takes over, if it has one."""

    cell: int
    local: int | None


class Unpack(NamedTuple):
    """Operand of UNPACK_EX: how many items stand before and after the starred one."""

    before: int
    after: int


class Format(NamedTuple):
    """Operand of FORMAT_VALUE: str, repr, ascii or nothing first; is a spec on the stack."""

    conversion: Callable[[object], str] | None
    has_spec: bool
