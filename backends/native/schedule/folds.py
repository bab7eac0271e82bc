"""Loops that reduce: which of them add up in lanes, and where a wider accumulator takes over."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from dynacap.backends.native.loops.expression import Constant, Local
from dynacap.backends.native.loops.index import Axis, Size
from dynacap.backends.native.loops.kernel import Fold, Loop, Statement
from dynacap.backends.native.schedule.cost import CHEAP, cost, hardest

LONGEST_SUM = 2048  # float32 numbers that one accumulator takes in before a wider one takes over
_IN_LANES = frozenset({"sum", "prod", "most", "max", "min"})
_LANES = 64  # bytes
_TWICE = 128  # where each number is there before the last one has been added
_ROUNDS = 4  # at least, over all lanes
_WIDE = {torch.float32: torch.float64}


def fold_loops(axes: Sequence[Axis], body: list[Statement], folds: list[Fold]) -> list[Statement]:
    """Loops that reduce: each level hands its own result to the one around it."""
    for level, axis in reversed(list(enumerate(axes))):
        own = folds
        if level:
            own = [Fold(Local(f"{f.result.name}{level}", f.result.dtype), f.combiner, f.value)
                   for f in folds]  # fmt: skip
        innermost = level == len(axes) - 1
        for fold in own:
            fold.wide = not innermost or not fits(axis.size)
        lanes = _lanes(axis.size, body, own) if innermost else 0
        body = [Loop(axis, body, vector=innermost, folds=own, lanes=lanes)]
        folds = [Fold(f.result, f.combiner, inner.result)
                 for f, inner in zip(folds, own, strict=True)]  # fmt: skip
    return body


def total_dtype(fold: Fold) -> torch.dtype:
    """The dtype in which a fold adds up."""
    dtype = fold.result.dtype
    return _WIDE.get(dtype, dtype) if fold.wide and fold.combiner in ("sum", "prod") else dtype


def _lanes(size: Size, body: Sequence[Statement], folds: Sequence[Fold]) -> int:
    """How many lanes a loop has: a vector of accumulators, or two where the sum would wait."""
    if not folds or not all(fold.combiner in _IN_LANES for fold in folds):
        return 0
    number = min(total_dtype(fold).itemsize for fold in folds)
    for room in (_LANES,) if body or not all(map(_waits, folds)) else (_TWICE, _LANES):
        if isinstance(size, int) and size >= _ROUNDS * (room // number):
            return room // number
    return 0


def _waits(fold: Fold) -> bool:
    """Whether a fold's next value is there before the last one has been added."""
    return cost(fold.value) <= 2 * CHEAP and hardest(fold.value) <= CHEAP


def fits(size: Size) -> bool:
    """Whether one float32 accumulator may take in so many numbers."""
    return isinstance(size, int) and size <= LONGEST_SUM


def identity(combiner: str, dtype: torch.dtype) -> Constant:
    """What combines with anything to that thing."""
    if combiner in ("max", "most", "min"):
        if dtype.is_floating_point:
            value: float = float("inf") if combiner == "min" else float("-inf")
        elif dtype is torch.bool:
            value = combiner == "min"
        else:
            limits = torch.iinfo(dtype)
            value = limits.min if combiner == "max" else limits.max
        return Constant(value, dtype)
    return Constant(_NEUTRAL[combiner](dtype), dtype)


def _one(dtype: torch.dtype) -> float:
    return 1.0 if dtype.is_floating_point else 1


def _zero(dtype: torch.dtype) -> float:
    return 0.0 if dtype.is_floating_point else 0


_NEUTRAL = {"sum": _zero, "prod": _one, "any": _zero, "all": _one}
