"""Where a frame stands, and what it takes to stand there."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Any, Final, NamedTuple, TypeVar

from dynacap.errors import ResumeError
from dynacap.opcodes import decode
from dynacap.opcodes.analysis import Kind, Stack, stacks
from dynacap.opcodes.identity import CodeCache

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Point:
    """A place between two instructions of a frame.

    `index`: the canonical instruction that runs next. `depth`: how many items lie on the stack.
    `nulls`: those of them that are NULL. `excs`: those that PUSH_EXC_INFO left and POP_EXCEPT has
    yet to take. `bound`: the fast locals that have a value; an argument that lives in a cell is not
    among them. All in ascending order.

    The values that go with a point are, one after the other: the cells (cellvars, then freevars) as
    cell objects; the values of the `bound` locals; the stack, without its NULLs. At the positions
    in `excs` stands the exception that is *being handled* there, not the one before it, which the
    code that goes on finds by itself. Where a handler wants the offset of the instruction that
    raised, it stands as CPython has it: `instruction.lasti // 2` of the original.
    """

    index: int
    depth: int = 0
    nulls: tuple[int, ...] = ()
    excs: tuple[int, ...] = ()
    bound: tuple[int, ...] = ()


class Return(NamedTuple):
    """The outcome of a step that ends the frame; its one value is the result."""


RETURN: Final = Return()
Outcome = Point | Return

_STACKS: CodeCache[list[Stack | None]] = CodeCache()


def stack_kinds(code: CodeType, index: int) -> Stack:
    """Return what lies on the stack before an instruction."""
    known = _STACKS.get(code) or _STACKS.set(code, stacks(decode(code)))
    found = known[index]
    if found is None:
        raise ResumeError(f"{code.co_qualname}: nothing leads to instruction {index}")
    return found


def name_of_temporary(code: CodeType, index: int, position: int) -> str:
    """What messages call the value at a position of the stack: the loop that it drives, or no more
    than its place."""
    for instruction in reversed(decode(code).instructions[:index]):
        if instruction.op == "FOR_ITER" and (instruction.target or 0) > index:
            if len(stack_kinds(code, instruction.index)) == position + 1:
                return f"the loop of line {instruction.line}"
    return f"temporary_{position}"


def checked_kinds(code: CodeType, point: Point) -> Stack:
    """Return what lies on the stack at a point, after seeing that the point agrees."""
    kinds = stack_kinds(code, point.index)
    decoded = decode(code)
    if not decoded.is_boundary(point.index):
        part = decoded.instructions[point.index]
        raise ResumeError(f"{code.co_qualname}: {part} is a part of one of Python's")
    return agreed(code, point, kinds)


def agreed(code: CodeType, point: Point, kinds: Stack) -> Stack:
    """Return `kinds` if the point says the same, else raise."""
    allowed = {place for place, kind in enumerate(kinds) if kind is Kind.MAYBE_NULL}
    needed = {place for place, kind in enumerate(kinds) if kind is Kind.NULL}
    saved = tuple(place for place, kind in enumerate(kinds) if kind is Kind.SAVED)
    nulls = set(point.nulls)
    if len(kinds) != point.depth or saved != point.excs or not needed <= nulls <= needed | allowed:
        raise ResumeError(
            f"{code.co_qualname}: {point} does not fit the stack there:"
            f" {', '.join(kind.value for kind in kinds) or 'nothing'}"
        )
    return kinds


def argument_cells(code: CodeType) -> dict[int, int]:
    """Map each cell that stands in the place of a local to the local's index.

    The local is an argument, or one that only inlined comprehensions use.
    """
    arguments = {name: index for index, name in enumerate(code.co_varnames)}
    return {
        cell: arguments[name] for cell, name in enumerate(code.co_cellvars) if name in arguments
    }


def entry_index(code: CodeType) -> int:
    """Return the index of the first instruction that runs when the cells are made."""
    for each in decode(code).instructions:
        if each.op == "RESUME":
            return each.index
    raise ResumeError(f"{code.co_qualname}: no RESUME to start at")


def enter(
    code: CodeType, closure: tuple[CellType, ...], arguments: tuple[Any, ...]
) -> tuple[Point, tuple[Any, ...]]:
    """Return the point at a function's start and the values for it, the cells made.

    `arguments` are in the order of `co_varnames`, as CPython binds them.
    """
    taken = argument_cells(code)
    cells = tuple(
        CellType(*arguments[taken[cell] :][:1]) if cell in taken else CellType()
        for cell in range(len(code.co_cellvars))
    )
    in_cells = set(taken.values())
    bound = tuple(index for index in range(len(arguments)) if index not in in_cells)
    values = (*cells, *closure, *(arguments[index] for index in bound))
    return Point(entry_index(code), bound=bound), values


def by_point(build: Callable[[CodeType, Point], Made]) -> Callable[[CodeType, Point], Made]:
    """Have what is built for the points of each code object be built once; it goes when the code
    object dies.
    """
    built_for: CodeCache[dict[Point, Made]] = CodeCache()

    @functools.wraps(build)
    def get(code: CodeType, point: Point) -> Made:
        built = built_for.get(code)
        if built is None:
            built = built_for.set(code, {})
        if point not in built:
            built[point] = build(code, point)
        return built[point]

    return get
