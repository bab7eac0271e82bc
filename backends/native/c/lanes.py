"""A loop that reduces, in lanes: number ``i`` goes to the accumulator ``i % lanes``.

One vector of accumulators waits for each addition before the next.  Several take turns, and yet
memory is read in its order, as the processor fetches it ahead.  At the end the upper half of the
lanes is combined with the lower one, again and again: a sum comes out as if added by pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynacap.backends.native.c.operations import combine
from dynacap.backends.native.c.types import COMPUTED, literal
from dynacap.backends.native.loops.kernel import Fold, Loop
from dynacap.backends.native.schedule.folds import identity, total_dtype


def lane(total: str) -> str:
    """The accumulator of a round, by the name of what all of them come to."""
    return f"{total}_lanes[lane]"


def in_lanes(loop: Loop, totals: Sequence[str], body: Sequence[str]) -> Iterator[str]:
    """A loop whose rounds are ``body``, and the names that its totals then have."""
    folds = list(zip(loop.folds, totals, strict=True))
    for fold, total in folds:
        yield f"{_ctype(fold)} {total}_lanes[{loop.lanes}] ALIGNED;"
    yield from _over(loop.lanes, [f"{lane(total)} = {_start(fold)};" for fold, total in folds])
    rounds, rest = divmod(loop.axis.size, loop.lanes)
    yield "#pragma GCC unroll 1"
    yield f"for (int64_t turn = 0; turn < {rounds}; turn++) {{"
    yield "    IN_ORDER;"
    yield from (f"    {line}" for line in _taken(loop, loop.lanes, "turn", body))
    yield "}"
    if rest:
        yield from _taken(loop, rest, str(rounds), body)
    left = loop.lanes
    while left > 2:
        left //= 2
        yield from _over(left, [
            f"{lane(total)} = {_pair(fold, total, 'lane', f'lane + {left}')};"
            for fold, total in folds
        ])  # fmt: skip
    for fold, total in folds:
        yield f"{_ctype(fold)} {total} = {_pair(fold, total, '0', '1')};"


def _taken(loop: Loop, count: int, turn: str, body: Sequence[str]) -> Iterator[str]:
    """So many numbers, one for each lane."""
    yield from _over(count, [f"const int64_t {loop.axis} = {loop.lanes}*{turn} + lane;", *body])


def _over(count: int, body: Sequence[str]) -> Iterator[str]:
    yield "#pragma omp simd"
    yield f"for (int64_t lane = 0; lane < {count}; lane++) {{"
    yield from (f"    {line}" for line in body)
    yield "}"


def _pair(fold: Fold, total: str, a: str, b: str) -> str:
    """What two lanes come to."""
    first, second = f"{total}_lanes[{a}]", f"{total}_lanes[{b}]"
    return combine(fold.combiner, first, second, total_dtype(fold))


def _start(fold: Fold) -> str:
    dtype = total_dtype(fold)
    return literal(identity(fold.combiner, dtype).value, dtype)


def _ctype(fold: Fold) -> str:
    return COMPUTED[total_dtype(fold)]
