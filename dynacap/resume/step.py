"""Code that runs exactly one instruction of a frame and returns the state after it.

The step's stack is, from the bottom: the values of the bound locals as they will be afterwards; the
original's stack without the NULLs that the instruction does not look at; so that what is left after
the instruction is the new state, in order, and one BUILD_TUPLE takes it.
"""

from collections.abc import Callable
from types import CodeType
from typing import NamedTuple

from dynacap.errors import ResumeError
from dynacap.opcodes import Handler, Instruction, decode
from dynacap.opcodes.analysis import Kind, Stack, after, at_handler
from dynacap.opcodes.assemble import Assembler, Covered, exception_table, location, nowhere
from dynacap.opcodes.canonical import falls, pops, window
from dynacap.opcodes.identity import CodeCache
from dynacap.opcodes.versions import version
from dynacap.resume.layout import Layout
from dynacap.resume.plain import covers, resumes_early
from dynacap.resume.point import RETURN, Outcome, Point, checked_kinds

# What would have to leave this frame in its midst, or comes before a frame has its cells.
REFUSED = {
    "YIELD_VALUE": "a yield leaves the frame",
    "ASYNC_GEN_WRAP": "a yield leaves the frame",
    "SEND": "yield from and await leave the frame",
    "RETURN_GENERATOR": "the generator does not exist yet",
    "MAKE_CELL": "the frame's cells are not made yet",
    "COPY_FREE_VARS": "the frame's cells are not made yet",
}


class Step(NamedTuple):
    """Code for one instruction, and the outcomes among which its result chooses.

    The code takes the values of the point and returns `(k, values)`: the frame now stands at
    `outcomes[k]`, with these values; or has returned `values[0]`, if that is RETURN. An exception
    that the frame does not handle comes out as it is.
    """

    code: CodeType
    outcomes: tuple[Outcome, ...]


_BUILT: CodeCache[dict[Point, Step]] = CodeCache()


def step_code(code: CodeType, point: Point) -> Step:
    """Return code that runs the one instruction at a point, and where that may lead."""
    built = _BUILT.get(code)
    if built is None:
        built = _BUILT.set(code, {})
    if point not in built:
        built[point] = _Builder(code, point).build()
    return built[point]


class _Builder:
    """Writes one step."""

    def __init__(self, code: CodeType, point: Point) -> None:
        decoded = decode(code)
        instruction = decoded.instructions[point.index]
        if instruction.op in REFUSED:
            raise ResumeError(f"{code.co_qualname}: {REFUSED[instruction.op]}")
        if not (decoded.is_boundary(point.index) and decoded.is_boundary(point.index + 1)):
            raise ResumeError(f"{code.co_qualname}: {instruction} is a part of one of Python's")
        self.code = code
        self.point = point
        self.instruction: Instruction = instruction
        self.kinds = checked_kinds(code, point)
        self.layout = Layout(code, point)
        self.out = Assembler(list(code.co_consts))
        self.outcomes: list[Outcome] = []
        self.rows: list[Covered] = []
        self.start = 0

    def build(self) -> Step:
        """Write all of it."""
        _WRITERS.get(self.instruction.op, _native)(self)
        first = self.code.co_firstlineno
        lines = nowhere(self.start)
        lines += location(self.out.here - self.start, self.instruction.positions, first)
        stack = len(self.point.bound) + self.point.depth + 8
        made = self.layout.build(self.out, stack, lines, exception_table(self.rows))
        return Step(made, tuple(self.outcomes))

    def push_locals(self) -> None:
        """Write what pushes the bound locals."""
        for local in self.point.bound:
            self.out.op("LOAD_FAST", self.layout.local_slot(local))

    def push_stack(self) -> None:
        """Write what pushes the stack, with a NULL only where the instruction takes it."""
        seen = self.point.depth - window(self.instruction)
        taken = self.point.depth - pops(self.instruction)
        offset, hidden = _place_of_offset(self), _place_to_hide(self)
        for place, kind in enumerate(self.kinds):
            if place == hidden and offset is not None:
                self.out.op("LOAD_FAST", self.layout.stack_slots[offset])
            if place in self.layout.stack_slots:
                if place >= seen and kind is Kind.MAYBE_NULL and self.instruction.op in _MOVES:
                    raise self.moves_null()
                self.layout.push(self.out, place, self.kinds)
            elif place >= taken and self.instruction.op not in _MOVES:
                self.out.op("PUSH_NULL")
            elif place >= seen:
                raise self.moves_null()

    def moves_null(self) -> ResumeError:
        """Return the error for an instruction that would leave a NULL on the step's stack."""
        return ResumeError(f"{self.code.co_qualname}: {self.instruction} moves a NULL")

    def prepare(self) -> None:
        """Write all that comes before the instruction itself."""
        early = resumes_early(self.code, self.point)
        if early:
            self.out.op("RESUME")
        self.push_locals()
        self.push_stack()
        self.layout.settle(self.out)
        self.layout.mark_cells(self.out)
        if not early:
            self.start = self.out.here
            self.out.op("RESUME")

    def leave(self, out: Assembler, index: int, kinds: Stack) -> None:
        """Write the outcome of going on at `index`."""
        self.end(out, self.point_after(index, kinds, self.point.bound), kinds)

    def point_after(self, index: int, kinds: Stack, bound: tuple[int, ...]) -> Point:
        """Return the point at `index`, reached by running the instruction."""
        kept = self.point.depth - pops(self.instruction)
        nulls = tuple(place for place in self.point.nulls if place < kept) + tuple(
            place
            for place in range(kept, len(kinds))
            # A step leaves what LOAD_METHOD may: a NULL, then the attribute.
            if kinds[place] in (Kind.NULL, Kind.MAYBE_NULL)
        )
        excs = tuple(place for place, kind in enumerate(kinds) if kind is Kind.SAVED)
        return Point(index, len(kinds), nulls, excs, bound)

    def end(self, out: Assembler, outcome: Point, kinds: Stack) -> None:
        """Write the return of an outcome whose locals and stack are on the step's stack."""
        present = [kind for place, kind in enumerate(kinds) if place not in outcome.nulls]
        for place in range(len(present) - 1, -1, -1):
            if present[place] is Kind.SAVED:
                _take_back(out, len(present) - place)
        self.give(out, outcome, len(outcome.bound) + len(present))

    def give(self, out: Assembler, outcome: Outcome, count: int) -> None:
        """Write the return of an outcome and the topmost `count` items."""
        out.op("BUILD_TUPLE", count)
        out.constant(len(self.outcomes))
        out.op("SWAP", 2)
        out.op("BUILD_TUPLE", 2)
        out.op("RETURN_VALUE")
        self.outcomes.append(outcome)

    def handle(self, end: int) -> None:
        """Write where an exception goes that is raised before `end`, if the frame handles it."""
        handler = decode(self.code).handlers[self.point.index]
        if handler is None or not covers(self.code, self.point.index):
            return
        slots = self.layout.stack_slots
        depth = len(self.point.bound) + sum(place in slots for place in range(handler.depth))
        hidden = _place_to_hide(self) is not None
        self.rows.append(Covered(self.start, end, self.out.here, depth + hidden, False))
        if handler.lasti and not hidden:
            _push_offset(self, handler)
        kinds = at_handler(handler, self.kinds)
        nulls = tuple(place for place in self.point.nulls if place < handler.depth)
        excs = tuple(place for place in self.point.excs if place < handler.depth)
        outcome = Point(handler.target, len(kinds), nulls, excs, self.point.bound)
        self.end(self.out, outcome, kinds)


# Instructions that hand on items of the stack which they look at.
_MOVES = frozenset({"SWAP", "COPY"})


def _take_back(out: Assembler, depth: int) -> None:
    """Write what exchanges a saved exception for the one handled, and makes it the handled one.

    PUSH_EXC_INFO is the one instruction that tells which exception is being handled: it pushes it,
    under the item that was on top.
    """
    if depth > 1:
        out.op("SWAP", depth)
    out.constant(None)
    out.op("PUSH_EXC_INFO")
    out.op("POP_TOP")
    out.op("SWAP", 2)
    out.op("POP_EXCEPT")
    if depth > 1:
        out.op("SWAP", depth)


def _place_of_offset(step: _Builder) -> int | None:
    """Return where RERAISE finds the offset that it takes over, if it takes one over."""
    if step.instruction.op != "RERAISE" or not step.instruction.arg:
        return None
    return step.point.depth - 1 - int(step.instruction.arg)


def _place_to_hide(step: _Builder) -> int | None:
    """Return where on the step's stack the offset waits that RERAISE hands on, if it must.

    The handler that comes next may want the offset which this RERAISE took over. It is gone by then
    if it lies above what the handler keeps; so it is put on top of what is kept, in time.
    """
    handler = decode(step.code).handlers[step.point.index]
    place = _place_of_offset(step)
    if place is None or handler is None or not handler.lasti or place < handler.depth:
        return None
    return handler.depth


def _push_offset(step: _Builder, handler: Handler) -> None:
    """Write what pushes, under the exception, the offset that CPython would push."""
    place = _place_of_offset(step)
    if place is None:
        step.out.constant(step.instruction.lasti // 2)
    else:
        slots = step.layout.stack_slots
        step.out.op("COPY", 1 + sum(each in slots for each in range(place, handler.depth)))
    step.out.op("SWAP", 2)


def _native(step: _Builder) -> None:
    """Run the instruction as it is."""
    step.prepare()
    step.out.raw(step.layout.original(step.instruction.offset, step.instruction.end))
    end = step.out.here
    if falls(step.instruction):
        step.leave(step.out, step.point.index + 1, after(step.instruction, step.kinds))
    step.handle(end)


def _value_only(step: _Builder) -> None:
    """Run a load without the NULL or method beside the value; the outcome's point has a NULL."""
    write = version().value_only[step.instruction.op]
    step.prepare()
    step.out.op(*write(step.layout.operand(step.instruction)))
    end = step.out.here
    step.leave(step.out, step.point.index + 1, after(step.instruction, step.kinds))
    step.handle(end)


def _branch(step: _Builder) -> None:
    """Run a conditional jump: one outcome each way."""
    assert step.instruction.target is not None
    step.prepare()
    fall = Assembler(step.out.constants)
    step.leave(fall, step.point.index + 1, after(step.instruction, step.kinds))
    step.out.jump(step.instruction.op, fall.here)
    end = step.out.here
    step.out.raw(fall.written)
    step.leave(step.out, step.instruction.target, after(step.instruction, step.kinds, jump=True))
    step.handle(end)


def _reraise(step: _Builder) -> None:
    """Run RERAISE without the offset, which would be one of the step's and is the original's."""
    step.prepare()
    step.out.op("RERAISE", 0)
    step.handle(step.out.here)


def _nothing(step: _Builder) -> None:
    """Go on without running anything."""
    instruction = step.instruction
    target = step.point.index + 1 if instruction.target is None else instruction.target
    kinds = after(instruction, step.kinds)
    outcome = step.point_after(target, kinds, step.point.bound)
    _rearrange(step, outcome, {}, step.point.depth)


def _store(step: _Builder) -> None:
    """Let the top of the stack be a local's value."""
    local = step.instruction.arg
    bound = tuple(sorted({*step.point.bound, local}))
    kinds = after(step.instruction, step.kinds)
    top = step.point.depth - 1
    outcome = step.point_after(step.point.index + 1, kinds, bound)
    _rearrange(step, outcome, {local: step.layout.stack_slots[top]}, top)


def _delete(step: _Builder) -> None:
    """Leave a local out, or raise as Python does if it has no value."""
    local = step.instruction.arg
    if local not in step.point.bound:
        _native(step)
        return
    bound = tuple(each for each in step.point.bound if each != local)
    outcome = step.point_after(step.point.index + 1, step.kinds, bound)
    _rearrange(step, outcome, {}, step.point.depth)


def _rearrange(step: _Builder, outcome: Point, stored: dict[int, int], depth: int) -> None:
    """Write the return of arriving values in another order: nothing runs, nothing can raise."""
    for local in outcome.bound:
        slot = stored[local] if local in stored else step.layout.local_slot(local)
        step.out.op("LOAD_FAST", slot)
    kept = [slot for place, slot in step.layout.stack_slots.items() if place < depth]
    for slot in kept:
        step.out.op("LOAD_FAST", slot)
    step.give(step.out, outcome, len(outcome.bound) + len(kept))


def _return(step: _Builder) -> None:
    """End the frame."""
    step.out.op("LOAD_FAST", step.layout.stack_slots[step.point.depth - 1])
    step.give(step.out, RETURN, 1)


_WRITERS: dict[str, Callable[[_Builder], None]] = {
    "LOAD_GLOBAL": _value_only,
    "LOAD_METHOD": _value_only,
    "RERAISE": _reraise,
    "JUMP": _nothing,
    "RESUME": _nothing,
    "PUSH_NULL": _nothing,
    "STORE_FAST": _store,
    "DELETE_FAST": _delete,
    "RETURN_VALUE": _return,
    **dict.fromkeys(
        (
            *(f"POP_JUMP_IF_{test}" for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")),
            "JUMP_IF_TRUE_OR_POP",
            "JUMP_IF_FALSE_OR_POP",
            "FOR_ITER",
        ),
        _branch,
    ),
}
