"""Cuts long reductions with few results into parts: for several cores, and for exact sums.

``t = sum over r of x[r]`` becomes ``p[c] = sum over i of x[256*c + i]`` and ``t = sum over c of
p[c]``; nothing after it knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from dynacap.backends.native.loops.equation import Equation, extent, position, row_major
from dynacap.backends.native.loops.expression import Load, substitute
from dynacap.backends.native.loops.index import Axis, Index
from dynacap.backends.native.loops.program import Buffer
from dynacap.backends.native.schedule.group import by_columns
from dynacap.backends.native.schedule.inline import places

_FEW = 16  # results, or blocks of them, below which cores would idle
_LONG = 1 << 16  # elements that make several cores worth it
_COLUMN = 512  # numbers that one accumulator of a column takes in
_BLOCK = 64  # rows that stay in a cache, for whoever reads them next
_USUAL, _MOST = 16, 128  # parts


def split(equation: Equation) -> Iterator[Equation]:
    """The equation, or the two that it becomes."""
    parts = _parts(equation)
    if parts is None:
        yield equation
        return
    length = extent(equation.reduced) // parts
    part, inner, kept = Axis(parts), Axis(length), tuple(Axis(a.size) for a in equation.axes)
    values = dict(zip(equation.axes, (Index({axis: 1}) for axis in kept), strict=True))
    values.update(places(equation.reduced, Index({part: length, inner: 1})))
    buffer = equation.buffer
    sizes = (parts, *(axis.size for axis in kept))
    partial = Buffer(f"{buffer.name}_parts", buffer.dtype, sizes, row_major(sizes))
    axes = (part, *kept)
    yield Equation(
        partial, axes, position(axes), substitute(equation.value, values), (inner,),
        equation.combiner, equation.origins,
    )  # fmt: skip
    over = Axis(parts)
    load = Load(partial, position((over, *equation.axes)))
    yield Equation(
        buffer, equation.axes, equation.offset, load, (over,), equation.combiner, equation.origins,
        equation.whole,
    )  # fmt: skip


def _parts(equation: Equation) -> int | None:
    """How many parts, if any."""
    kept, reduced = extent(equation.axes), extent(equation.reduced)
    if not equation.combiner or not isinstance(kept, int) or not isinstance(reduced, int):
        return None
    columns = by_columns(equation)
    results = kept // equation.axes[-1].size if columns else kept
    idle = results < _FEW and kept * reduced >= _LONG
    drifts = columns and reduced > _COLUMN
    if not idle and not drifts:
        return None
    wanted = max(_USUAL, min(-(-reduced // _BLOCK), _MOST) if columns else 0)
    order = (*range(wanted, _MOST + 1), *range(wanted - 1, 1, -1))
    return next((n for n in order if reduced % n == 0 and n < reduced), None)
