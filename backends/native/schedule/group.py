"""Equations that share a loop nest, and the rule that says which may.

Every equation's iterations are counted flat.  A group cuts its members' counts into the same number
of *rows*; one round of its outer loop computes the row of each member.  Within a row there are
*passes*, one after another, each an inner loop that some members share.

A member may read what another one wrote if it reads it in its own row: with rows of ``R``
elements, if ``offset // R`` is the row.  If it reads the very element that the same round of the
same pass has computed, it takes the value itself, and memory is not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dynacap.backends.native.loops.equation import Equation, extent
from dynacap.backends.native.loops.expression import chosen_by, loads
from dynacap.backends.native.loops.index import ZERO, Axis, Index, Size
from dynacap.backends.native.loops.program import Buffer
from dynacap.backends.native.schedule.inline import places

MOST_MEMBERS = 48  # so that a pass's values stay near the registers
FEWEST_COLUMNS = 32  # that are summed up side by side
SCRATCH_BYTES = 1 << 20  # what a row may keep from one pass to the next: some of the L2 cache


@dataclass(eq=False)
class Pass:
    """One inner loop over ``extent`` elements of the row.

    ``fold`` is None, or how its reductions cut the loop: (kept, reduced) elements, reduced
    innermost; with ``columns``, (reduced, kept), kept innermost.
    """

    extent: Size
    members: list[Member] = field(default_factory=list)
    fold: tuple[Size, Size] | None = None
    columns: bool = False

    def takes(self, extent: Size, fold: tuple[Size, Size] | None, columns: bool) -> bool:
        """Whether an equation of this shape can run in this loop."""
        if self.extent != extent:
            return False
        return fold is None or self.fold is None or (self.fold, self.columns) == (fold, columns)


@dataclass(eq=False)
class Member:
    """An equation in its place: its axes as functions of the row and of the pass's counter."""

    equation: Equation
    places: Mapping[Axis, Index]
    row_size: Size
    number: int  # of its pass
    own_row: bool  # whether what it writes is the same row of its buffer


class Group:
    """Equations that will become one kernel."""

    def __init__(self, rows: Size) -> None:
        self.rows = rows
        self.row = Axis(rows, "row")
        self.passes: list[Pass] = []
        self.members: list[Member] = []
        self.writers: dict[Buffer, list[Member]] = {}
        self.reads: set[Buffer] = set()
        self.inner: dict[Size, Axis] = {}
        self.kept: set[Buffer] = set()  # whose row one pass leaves to another

    def inner_axis(self, size: Size) -> Axis:
        """The counter that passes of one extent share."""
        if size not in self.inner:
            self.inner[size] = Axis(size, f"j{len(self.inner)}" if self.inner else "j")
        return self.inner[size]

    def join(self, equation: Equation) -> bool:
        """Take an equation in, if that is allowed; say whether it was."""
        if len(self.members) >= MOST_MEMBERS:
            return False
        kept = extent(equation.axes)
        if self.rows != kept and (not isinstance(kept, int) or kept % self.rows):
            return False
        row_size = 1 if self.rows == kept else kept // self.rows
        if not aligned(equation.axes, row_size):
            return False
        reduced = extent(equation.reduced)
        columns = row_size != 1 and by_columns(equation)
        if columns and narrow(row_size, equation.axes[-1].size):
            return False
        placed = self._places(equation, row_size, reduced, columns)
        if not self.writers.keys().isdisjoint(chosen_by(equation.value)):
            return False
        fold = None
        if equation.combiner:
            fold = (reduced, row_size) if columns else (row_size, reduced)
        number = self._number(equation, placed, row_size * reduced, fold, columns)
        if number is None:
            return False
        self._open(number, row_size * reduced, fold, columns)
        own_row = self._own_row(equation, placed)
        member = Member(equation, placed, row_size, number, own_row)
        self.passes[number].members.append(member)
        self.members.append(member)
        self.reads.update(load.buffer for load in loads(equation.value))
        self.writers.setdefault(equation.buffer, []).append(member)
        return True

    def _places(
        self, equation: Equation, row_size: Size, reduced: Size, columns: bool
    ) -> dict[Axis, Index]:
        row = Index({self.row: 1}) if self.rows != 1 else ZERO
        total = row_size * reduced
        counter = Index({self.inner_axis(total): 1}) if total != 1 else ZERO
        if not equation.combiner:
            return places(equation.axes, row * row_size + counter)
        if columns:
            kept, folded = counter % row_size, counter // row_size
        else:
            kept, folded = counter // reduced, counter % reduced
        values = places(equation.axes, row * row_size + kept)
        values.update(places(equation.reduced, folded))
        return values

    def _number(
        self,
        equation: Equation,
        placed: Mapping[Axis, Index],
        total: Size,
        fold: tuple[Size, Size] | None,
        columns: bool,
    ) -> int | None:
        """The first pass that may run it; None if it reads another row of what the group writes, or
        the group's rows would take too much room."""
        earliest = 0
        kept = set(self.kept)
        at_hand: dict[Buffer, int] = {}  # if it runs in the very pass that makes them
        counter = Index({self.inner_axis(total): 1}) if total != 1 else ZERO
        row = Index({self.row: 1}) if self.rows != 1 else ZERO
        for load in loads(equation.value):
            writers = self.writers.get(load.buffer)
            if not writers:
                continue
            offset = load.offset.substitute(placed)
            if load.buffer.numel % self.rows:
                return None
            size = load.buffer.numel // self.rows
            if offset // size != row or not all(writer.own_row for writer in writers):
                return None
            last = writers[-1]
            same = not last.equation.combiner and last.equation.whole
            same = same and last.row_size == total and offset == row * total + counter
            if same:
                at_hand[load.buffer] = last.number
            else:
                kept.add(load.buffer)
            earliest = max(earliest, *(w.number + (not same) for w in writers))
        later = range(earliest, len(self.passes))
        suits = (n for n in later if self.passes[n].takes(total, fold, columns))
        number = next(suits, len(self.passes))
        kept.update(buffer for buffer, made in at_hand.items() if made != number)
        if not self._fits(kept):
            return None
        self.kept = kept
        return number

    def _fits(self, kept: Iterable[Buffer]) -> bool:
        """Whether the rows of buffers stay in a cache, and on a thread's stack, all together."""
        sizes = [buffer.numel // self.rows * buffer.dtype.itemsize for buffer in kept]
        return bool(sum(sizes) <= SCRATCH_BYTES)

    def _own_row(self, equation: Equation, placed: Mapping[Axis, Index]) -> bool:
        """Whether what it writes lies in its row, so that others may read it there."""
        if equation.whole:
            return True
        numel = equation.buffer.numel
        if not isinstance(numel, int) or numel % self.rows:
            return False
        row = Index({self.row: 1}) if self.rows != 1 else ZERO
        return equation.offset.substitute(placed) // (numel // self.rows) == row

    def _open(
        self, number: int, extent: Size, fold: tuple[Size, Size] | None, columns: bool
    ) -> None:
        """Have a pass of this number that folds so."""
        if number == len(self.passes):
            self.passes.append(Pass(extent))
        if fold is not None:
            self.passes[number].fold = fold
            self.passes[number].columns = columns


def aligned(axes: Sequence[Axis], row_size: Size) -> bool:
    """Whether rows of this size begin where an outer axis steps, or cut one axis evenly."""
    for axis in reversed(axes):
        if row_size == 1 or (isinstance(axis.size, int) and axis.size % row_size == 0):
            return True
        if row_size % axis.size:
            return False
        row_size //= axis.size
    return row_size == 1


def narrow(width: Size, whole: Size) -> bool:
    """Whether so many columns would be summed up by vectors that are not full."""
    return isinstance(width, int) and width < min(FEWEST_COLUMNS, whole)


def by_columns(equation: Equation) -> bool:
    """Whether neighbours in memory belong to different results, as in a sum over rows."""
    if not equation.combiner or not equation.axes:
        return False
    last, folded = equation.axes[-1], equation.reduced[-1]
    along = across = 0
    for load in loads(equation.value):  # the larger the buffer, the more it matters
        along += load.buffer.numel * (load.offset.coefficient(last) == 1)
        across += load.buffer.numel * (load.offset.coefficient(folded) == 1)
    return along > across


def grouped(equations: Sequence[Equation], rows: Size) -> Group | None:
    """A group of these equations with so many rows, if they may share them."""
    group = Group(rows)
    return group if all(group.join(equation) for equation in equations) else None
