"""The common part of code that runs a piece of a frame and returns the state after it.

The written code's stack is, from the bottom: the values of the bound locals as they will be
afterwards; the original's stack without the NULLs that the instruction does not take; so that what
is left after the instruction is the new state, in order, and one BUILD_TUPLE takes it.
"""

from types import CodeType
from typing import NamedTuple

from dynacap.opcodes import Handler, Instruction, decode
from dynacap.opcodes.analysis import Kind, Stack, after, at_handler
from dynacap.opcodes.assemble import Assembler, Covered, exception_table, location, nowhere
from dynacap.opcodes.canonical import pops, reach, window
from dynacap.resume.layout import Layout
from dynacap.resume.plain import covers, resumes_early
from dynacap.resume.point import Outcome, Point


class Step(NamedTuple):
    """Code for one instruction, and the outcomes among which its result chooses.

    The code takes a list of the values of the point, empties it, and returns `(k, values)`: the
    frame now stands at `outcomes[k]`, with these values; or has returned `values[0]`, if that is
    RETURN. An exception that the frame does not handle comes out as it is.
    """

    code: CodeType
    outcomes: tuple[Outcome, ...]


class StepBuilder:
    """Writes code that ends in one of several outcomes, and notes them.

    `kinds` says what lies on the stack at the point; `pieces` are what the original instruction is
    that runs, or that an exception comes out of.
    """

    def __init__(
        self, code: CodeType, point: Point, kinds: Stack, pieces: list[Instruction]
    ) -> None:
        self.code = code
        self.point = point
        self.kinds = kinds
        self.pieces = pieces
        self.instruction = pieces[0]
        self.fillers: list[int] = []
        self.layout = Layout(code, point)
        self.out = Assembler(list(code.co_consts))
        self.layout.arrive(self.out)
        self.outcomes: list[Outcome] = []
        self.rows: list[Covered] = []
        self.start = 0

    def built(self) -> Step:
        """Return what has been written."""
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
        """Write what pushes the stack, with a NULL only where the instruction takes it.

        What it merely looks past is pushed as a filler; only WITH_EXCEPT_START calls what it sees.
        """
        seen = self.point.depth - reach(self.pieces, window)
        taken = self.point.depth - reach(self.pieces, pops)
        offset, hidden = place_of_offset(self), place_to_hide(self)
        for place in range(len(self.kinds)):
            if place == hidden and offset is not None:
                self.out.op("LOAD_FAST", self.layout.stack_slots[offset])
            if place in self.layout.stack_slots:
                self.layout.push(self.out, place, self.kinds)
            elif place >= taken:
                self.out.op("PUSH_NULL")
            elif place >= seen:
                self.fillers.append(place)
                if self.instruction.op == "WITH_EXCEPT_START":
                    self.out.op("PUSH_NULL")
                else:
                    self.out.constant(None)

    def drop_fillers(self, depth: int) -> None:
        """Write what takes the fillers away that lie on a stack of this depth, under its top."""
        for place in self.fillers:
            above = depth - 1 - place
            if above > 0:
                self.out.op("SWAP", above + 1)
                self.out.op("POP_TOP")
            for each in range(2, above + 1):
                self.out.op("SWAP", each)

    def kinds_after(self) -> Stack:
        """Return what lies on the stack after the instruction, where it does not jump."""
        stack = self.kinds
        for each in self.pieces:
            stack = after(each, stack)
        return stack

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
        kept = self.point.depth - reach(self.pieces, pops)
        nulls = tuple(place for place in self.point.nulls if place < kept) + tuple(
            place for place in range(kept, len(kinds)) if kinds[place] is Kind.NULL
        )
        return self.point_with(index, kinds, nulls, bound)

    def point_with(
        self, index: int, kinds: Stack, nulls: tuple[int, ...], bound: tuple[int, ...]
    ) -> Point:
        """Return a point with this on the stack."""
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
        handler = decode(self.code).handlers[self.instruction.index]
        if handler is None or not covers(self.code, self.instruction.index):
            return
        slots = self.layout.stack_slots
        kept = range(handler.depth)
        depth = len(self.point.bound) + sum(p in slots or p in self.fillers for p in kept)
        hidden = place_to_hide(self) is not None
        self.rows.append(Covered(self.start, end, self.out.here, depth + hidden, False))
        self.drop_fillers(handler.depth + 1)
        if handler.lasti and not hidden:
            _push_offset(self, handler)
        kinds = at_handler(handler, self.kinds)
        nulls = tuple(place for place in self.point.nulls if place < handler.depth)
        excs = tuple(place for place in self.point.excs if place < handler.depth)
        outcome = Point(handler.target, len(kinds), nulls, excs, self.point.bound)
        self.end(self.out, outcome, kinds)


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


def place_of_offset(step: StepBuilder) -> int | None:
    """Return where RERAISE finds the offset that it takes over, if it takes one over."""
    if step.instruction.op != "RERAISE" or not step.instruction.arg:
        return None
    return step.point.depth - 1 - int(step.instruction.arg)


def place_to_hide(step: StepBuilder) -> int | None:
    """Return where on the step's stack the offset waits that RERAISE hands on, if it must.

    The handler that comes next may want the offset which this RERAISE took over. It is gone by then
    if it lies above what the handler keeps; so it is put on top of what is kept, in time.
    """
    handler = decode(step.code).handlers[step.instruction.index]
    place = place_of_offset(step)
    if place is None or handler is None or not handler.lasti or place < handler.depth:
        return None
    return handler.depth


def _push_offset(step: StepBuilder, handler: Handler) -> None:
    """Write what pushes, under the exception, the offset that CPython would push."""
    place = place_of_offset(step)
    if place is None:
        step.out.constant(step.instruction.lasti // 2)
    else:
        slots = step.layout.stack_slots
        step.out.op("COPY", 1 + sum(each in slots for each in range(place, handler.depth)))
    step.out.op("SWAP", 2)
