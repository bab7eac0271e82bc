"""Substitutes equations into their readers, where computing again costs less than memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from dynacap.backends.native.loops.equation import Equation, extent, position, row_major
from dynacap.backends.native.loops.expression import (
    Expression,
    Load,
    checks_index,
    gathered,
    loads,
    rewrite,
    substitute,
    walk,
)
from dynacap.backends.native.loops.index import Axis, Index
from dynacap.backends.native.loops.program import Buffer
from dynacap.backends.native.schedule.cost import CHEAP, TRIVIAL, heavy, large

_LARGEST = 400.0  # an expression that costs more than this takes nothing more in


def inline(equations: Sequence[Equation], pinned: frozenset[Buffer]) -> list[Equation]:
    """The equations that are left, in order, each with what was substituted into it.

    ``pinned`` buffers are needed in memory by others than equations.
    """
    readers = _readers(equations)
    open_: dict[Buffer, Equation] = {}
    done: list[Equation] = []
    for equation in equations:
        kept: list[Equation] = []
        equation.value = _expanded(equation.value, open_, readers, equation, pinned, kept)
        done += kept
        if _pointwise(equation):
            open_[equation.buffer] = equation
        done.append(equation)
    return live(done, pinned)


def live(equations: Sequence[Equation], pinned: Iterable[Buffer]) -> list[Equation]:
    """Without the equations that nothing reads any more."""
    needed = set(pinned)
    kept: list[Equation] = []
    for equation in reversed(equations):
        if equation.buffer in needed:
            kept.append(equation)
            needed.update(load.buffer for load in loads(equation.value))
    return kept[::-1]


def unseen(equations: Sequence[Equation], pinned: frozenset[Buffer]) -> frozenset[Buffer]:
    """The buffers to fill because an index is checked on the way, which may lie outside where
    nobody reads."""
    checking = [e.buffer for e in equations if any(map(checks_index, walk(e.value)))]
    if not checking:
        return frozenset()
    seen = set(pinned)
    for equation in reversed(equations):
        if equation.buffer in seen:
            seen.update(load.buffer for load in loads(equation.value) if _reads_all(load, equation))
    return frozenset(checking) - seen


def _reads_all(load: Load, equation: Equation) -> bool:
    """Whether an equation reads each element of a buffer, for certain."""
    axes = {*equation.axes, *equation.reduced}
    if not axes.issuperset(load.offset.terms):
        return False
    step = 1
    for axis in sorted(load.offset.terms, key=lambda axis: abs(load.offset.terms[axis])):
        if abs(load.offset.terms[axis]) != step:
            return False
        step *= axis.size
    return bool(step == load.buffer.numel and load.offset.bounds()[0] == 0)


def _readers(equations: Sequence[Equation]) -> Mapping[Buffer, int]:
    """How many equations read each buffer, a place counted once."""
    count: dict[Buffer, int] = defaultdict(int)
    for equation in equations:
        for buffer, _ in {(load.buffer, load.offset) for load in loads(equation.value)}:
            count[buffer] += 1
    return count


def _pointwise(equation: Equation) -> bool:
    return equation.whole and not equation.combiner


def _expanded(
    value: Expression,
    open_: Mapping[Buffer, Equation],
    readers: Mapping[Buffer, int],
    reader: Equation,
    pinned: frozenset[Buffer],
    kept: list[Equation],
) -> Expression:
    """A value with the loads replaced that should be; ``kept`` gets what they need before."""
    done: dict[tuple[Buffer, Index], Expression] = {}
    size = extent(reader.axes) * extent(reader.reduced)

    def leaf(node: Expression) -> Expression | None:
        if not isinstance(node, Load) or node.buffer not in open_:
            return None
        source = open_[node.buffer]
        stored = node.buffer in pinned
        if not _worth(source, readers[node.buffer], size, stored=stored):
            return None
        key = (node.buffer, node.offset)
        if key not in done:
            formula = source.value
            if reader.combiner and extent(reader.axes) < extent(source.axes):
                formula = _read_early(source, kept)
            done[key] = substitute(formula, places(source.axes, node.offset))
        return done[key]

    return rewrite(value, leaf)


def _read_early(source: Equation, kept: list[Equation]) -> Expression:
    """A formula for a number of each row, for a reduction over the rows: what it reads of a large
    row at an index stands in equations of its own, which run while a cache holds the row."""

    def leaf(node: Expression) -> Expression | None:
        if not (isinstance(node, Load) and large(node.buffer) and any(gathered(node.offset))):
            return None
        sizes = tuple(axis.size for axis in source.axes)
        buffer = Buffer(
            f"{source.buffer.name}_early{len(kept)}", node.dtype, sizes, row_major(sizes)
        )
        place = position(source.axes)
        kept.append(Equation(buffer, source.axes, place, node, origins=source.origins))
        return Load(buffer, place)

    return rewrite(source.value, leaf)


def _worth(source: Equation, readers: int, size: int, *, stored: bool) -> bool:
    work = heavy(source.value)
    if work <= TRIVIAL:
        return True
    if stored or readers > 1 or work > _LARGEST:
        return False
    return work <= CHEAP or _not_smaller(extent(source.axes), size)


def _not_smaller(own: int, other: int) -> bool:
    """Whether computing in the reader computes no element twice."""
    return own == other if not isinstance(own, int) or not isinstance(other, int) else own >= other


def places(axes: Sequence[Axis], flat: Index) -> dict[Axis, Index]:
    """The counters of a loop nest at its iteration number ``flat``."""
    values: dict[Axis, Index] = {}
    for axis in reversed(axes[1:]):
        values[axis] = flat % axis.size
        flat = flat // axis.size
    if axes:
        values[axes[0]] = flat
    return values
