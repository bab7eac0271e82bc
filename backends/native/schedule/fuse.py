"""Sorts equations into groups, greedily, in the order of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynacap.backends.native.loops.equation import Equation, extent
from dynacap.backends.native.loops.expression import loads
from dynacap.backends.native.loops.index import Size
from dynacap.backends.native.loops.program import Buffer, Call, View
from dynacap.backends.native.schedule.cost import large
from dynacap.backends.native.schedule.group import FEWEST_COLUMNS, Group, by_columns, grouped

Slot = Group | Call | View
_LOOK_BACK = 6  # groups that have nothing to do with an equation but its size
_SMALL = 1 << 15  # elements below which the number of rows does not matter
_TENSORS = 8  # that a loop over large ones reads and writes
_ENOUGH_ROWS = 16  # rows below which a large group would not use the cores


class Fusion:
    """The steps so far, and where each buffer gets its values."""

    def __init__(self) -> None:
        self.slots: list[Slot] = []
        self.filled: dict[Buffer, int] = {}

    def add_step(self, step: Call | View) -> None:
        """A step that is no equation."""
        self.slots.append(step)
        here = len(self.slots) - 1
        if isinstance(step, View):
            self.filled[step.result] = self.filled.get(step.base, -1)
            return
        for result in step.results:
            if result is not None:
                self.filled[result] = here
        if step.target._schema.is_mutable:
            self.filled.update(dict.fromkeys(step.buffers(), here))

    def add(self, equation: Equation) -> None:
        """Put an equation into a group that may take it, else into one of its own."""
        ready = max(
            (self.filled.get(load.buffer, -1) for load in loads(equation.value)), default=-1
        )
        ready = max(ready, self.filled.get(equation.buffer, -1))  # the other parts of its buffer
        for at in self._candidates(ready):
            group = self.slots[at]
            assert isinstance(group, Group)
            joined = self._joined(group, equation, at == ready or share(group, equation))
            if joined is not None:
                self.slots[at] = joined
                self.filled[equation.buffer] = at
                return
        group = Group(natural_rows(equation))
        taken = group.join(equation)
        assert taken, f"an equation does not fit its own rows: {equation}"
        self.slots.append(group)
        self.filled[equation.buffer] = len(self.slots) - 1

    def _candidates(self, ready: int) -> Iterator[int]:
        if ready >= 0 and isinstance(self.slots[ready], Group):
            yield ready
        left = _LOOK_BACK
        for at in range(len(self.slots) - 1, max(ready, -1), -1):
            if isinstance(self.slots[at], Group) and left:
                left -= 1
                yield at

    def _joined(self, group: Group, equation: Equation, related: bool) -> Group | None:
        """The group with the equation in it, perhaps with fewer rows than it had."""
        if not related and (group.rows != natural_rows(equation) or _apart(group, equation)):
            return None
        if _would_idle(group, equation):
            return None
        if group.join(equation):
            return group
        if not related:
            return None
        members = [member.equation for member in group.members]
        for rows in coarser(equation, group):
            together = grouped([*members, equation], rows)
            if together is not None:
                return together
        return None


def _would_idle(group: Group, equation: Equation) -> bool:
    """Whether a large equation would have too few rows in a group for all cores."""
    rows, size = group.rows, extent(equation.axes) * extent(equation.reduced)
    if not isinstance(rows, int) or not isinstance(size, int):
        return False
    return size > _SMALL and rows < min(_ENOUGH_ROWS, natural_rows(equation))


def _apart(group: Group, equation: Equation) -> bool:
    """Whether both are large, have nothing in common, and touch many tensors together: a loop over
    those waits for memory, which one after the other does not."""
    size = extent(equation.axes) * extent(equation.reduced)
    read = {load.buffer for load in loads(equation.value)}
    if isinstance(size, int) and (size <= _SMALL or not read.isdisjoint(group.reads)):
        return False
    return len({*read, equation.buffer, *group.reads, *group.writers}) > _TENSORS


def share(group: Group, equation: Equation) -> bool:
    """Whether both read the same, and too much of it for a cache to keep from one to the other."""
    read = {load.buffer for load in loads(equation.value) if large(load.buffer)}
    return not read.isdisjoint(group.reads)


def natural_rows(equation: Equation) -> Size:
    """How many rows an equation has by itself: its elements; by columns, what lies outside them."""
    kept = extent(equation.axes)
    if not by_columns(equation):
        return kept
    width = equation.axes[-1].size
    return kept // width * (width // column_block(width)) if isinstance(kept, int) else kept


def column_block(width: Size) -> Size:
    """How many neighbouring columns one round of the outer loop sums up."""
    if not isinstance(width, int) or width <= 256:
        return width
    return next((b for b in range(256, FEWEST_COLUMNS - 1, -16) if width % b == 0), width)


def coarser(equation: Equation, group: Group) -> Iterator[Size]:
    """Numbers of rows that both could have, the most rows first."""
    work = max(extent(m.equation.axes) * extent(m.equation.reduced) for m in group.members)
    rows = group.rows
    if not isinstance(rows, int) or not isinstance(work, int):
        return
    for count in prefixes(equation):
        if count < rows and rows % count == 0 and (work <= _SMALL or count >= _ENOUGH_ROWS):
            yield count


def prefixes(equation: Equation) -> Sequence[int]:
    """The numbers of iterations of its outer axes, from all of them down to none."""
    counts = [1]
    for axis in equation.axes:
        counts.append(counts[-1] * axis.size)
    return counts[::-1]
