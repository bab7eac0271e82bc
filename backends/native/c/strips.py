"""A long chain of operations, by strips: each few of them for many numbers, then the next few.

Each operation waits for the one before, and a processor looks no further ahead than some hundred
instructions: a chain of as many for one vector after the other would have one or two at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynacap.backends.native.loops.kernel import Loop, Store
from dynacap.backends.native.schedule.cost import longest

STAGE = 10.0  # of cost: what is computed for a whole strip before the next begins
_LONG = 30.0  # of cost, one after the other: shorter chains overlap as they are
_BYTES = 512  # of each value: eight of the widest vectors


def width(loop: Loop) -> int:
    """How many rounds of a loop make a strip; 0 if it is not cut into strips."""
    stores = [each for each in loop.body if isinstance(each, Store) and not each.combiner]
    if not loop.vector or loop.folds or len(stores) < len(loop.body):
        return 0
    numbers = _BYTES // max(4, *(each.value.dtype.itemsize for each in stores))
    if not isinstance(loop.axis.size, int) or loop.axis.size < 2 * numbers:
        return 0
    return numbers if longest(*(each.value for each in stores)) >= _LONG else 0


def in_strips(
    loop: Loop, numbers: int, stages: Sequence[tuple[str, str]], in_team: bool
) -> Iterator[str]:
    """The loop, by what its stages declare and do for one of its rounds."""
    strips, rest = divmod(loop.axis.size, numbers)
    if loop.parallel:
        yield "#pragma omp for nowait" if in_team else "#pragma omp parallel for"
    yield f"for (int64_t strip = 0; strip < {strips + bool(rest)}; strip++) {{"
    count = str(numbers)
    if rest:  # the last strip is not compiled by itself, which would take as long again
        yield f"    const int64_t count = strip < {strips} ? {numbers} : {rest};"
        count = "count"
    yield from (f"    {line}" for line in _strip(loop, numbers, count, stages))
    yield "}"


def _strip(
    loop: Loop, numbers: int, count: str, stages: Sequence[tuple[str, str]]
) -> Iterator[str]:
    for kept, statement in stages:
        if kept:
            yield f"{kept}[{numbers}] ALIGNED;"
        yield "#pragma omp simd"
        yield f"for (int64_t lane = 0; lane < {count}; lane++) {{"
        yield f"    const int64_t {loop.axis} = {numbers}*strip + lane;"
        yield f"    {statement}"
        yield "}"
