"""Elements that are chosen by what a tensor of integers holds: gather, index, embedding, losses.

An index that lies outside is found while the kernel runs; nothing is read there, and the whole
graph runs eagerly instead, which raises what eager raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynacap.backends.native.loops.expression import (
    Expression,
    Gathered,
    Op,
    Position,
    constant,
    op,
    where,
)
from dynacap.backends.native.loops.index import ZERO, Index, Size
from dynacap.backends.native.lowering.field import Field, Place, aligned, broadcast
from dynacap.backends.native.lowering.lower import Lowering, lowers
from dynacap.backends.native.lowering.promotion import wide

aten = torch.ops.aten
_INTEGERS = (torch.int64, torch.int32)
_MEAN, _SUM = 1, 2  # how a loss is reduced


def chosen(value: Expression, size: Size, *, from_end: bool = False) -> Index:
    """A value of a tensor as an index below ``size``; negative ones count from the end, if so."""
    value = value.to(torch.int64)
    if from_end:
        value = where(op("lt", value, 0), value + size, value)
    return Index({Gathered(checked(value, size), size): 1})


def checked(number: Expression, size: Size) -> Expression:
    """An integer that is found to be below ``size``, or ends the run."""
    return Op("within", (number, constant(size, torch.int64)), torch.int64)


def _taken(*indices: Field) -> bool:
    """Whether loops can read these: they lie in memory before the kernel begins."""
    return all(field.buffer is not None and field.dtype in _INTEGERS for field in indices)


@lowers(aten.gather.default)
def gather(cx: Lowering, x: Field, dim: int, index: Field, sparse_grad: bool = False) -> Any:
    """One element for each index, with the other dimensions as they are."""
    if not x.shape or not _taken(index) or not cx.plain([x]):
        return NotImplemented
    dim %= len(x.shape)

    def at(place: Place) -> Expression:
        here = chosen(index.at(place), x.shape[dim])
        return x.at((*place[:dim], here, *place[dim + 1 :]))

    return Field(index.shape, x.dtype, at)


@lowers(aten.index_select.default)
def index_select(cx: Lowering, x: Field, dim: int, index: Field) -> Any:
    """One slice for each index."""
    if not x.shape or len(index.shape) != 1 or not _taken(index) or not cx.plain([x]):
        return NotImplemented
    dim %= len(x.shape)

    def at(place: Place) -> Expression:
        here = chosen(index.at((place[dim],)), x.shape[dim])
        return x.at((*place[:dim], here, *place[dim + 1 :]))

    return Field((*x.shape[:dim], index.shape[0], *x.shape[dim + 1 :]), x.dtype, at)


@lowers(aten.embedding.default)
def embedding(cx: Lowering, weight: Field, index: Field, *options: Any, **more: Any) -> Any:
    """One row for each index; what else it is told concerns gradients."""
    if not _taken(index) or not cx.plain([weight]):
        return NotImplemented

    def at(place: Place) -> Expression:
        return weight.at((chosen(index.at(place[:-1]), weight.shape[0]), place[-1]))

    return Field((*index.shape, weight.shape[1]), weight.dtype, at)


@lowers(aten.index.Tensor)
def index(cx: Lowering, x: Field, indices: Sequence[Field | None]) -> Any:
    """Advanced indexing by integers that stand next to each other."""
    given = [d for d, each in enumerate(indices) if each is not None]
    fields = [each for each in indices if each is not None]
    if not given or not _taken(*fields) or not cx.plain([x]):
        return NotImplemented
    first, last = given[0], given[-1]
    if len(given) != last - first + 1:
        return NotImplemented
    shape = broadcast([field.shape for field in fields])

    def at(place: Place) -> Expression:
        middle = place[first : first + len(shape)]
        here = tuple(
            chosen(field.at(aligned(middle, field)), x.shape[dim], from_end=True)
            for dim, field in zip(given, fields, strict=True)
        )
        return x.at((*place[:first], *here, *place[first + len(shape) :]))

    return Field((*x.shape[:first], *shape, *x.shape[last + 1 :]), x.dtype, at)


@lowers(aten.index_copy.default)
def index_copy(cx: Lowering, x: Field, dim: int, index: Field, source: Field) -> Any:
    """One slice in the place of another, as where one token joins a cache."""
    if not x.shape or not _taken(index) or not cx.plain([x, source]) or source.dtype != x.dtype:
        return NotImplemented
    dim %= len(x.shape)
    if index.shape not in ((), (1,)) or len(source.shape) != len(x.shape):
        return NotImplemented

    def at(place: Place) -> Expression:
        number = index.at((ZERO,) * len(index.shape)).to(torch.int64)
        here = op("eq", Position(place[dim]), checked(number, x.shape[dim]))
        return where(here, source.at((*place[:dim], ZERO, *place[dim + 1 :])), x.at(place))

    return Field(x.shape, x.dtype, at)


@lowers(aten.nll_loss_forward.default, aten.nll_loss2d_forward.default)
def nll_loss(
    cx: Lowering, x: Field, target: Field, weight: Field | None, reduction: int, ignore: int
) -> Any:
    """The negative log-likelihood of each target that counts, and the sum of their weights."""
    if not _taken(target) or not cx.plain([x]) or reduction not in (_MEAN, _SUM):
        return NotImplemented
    if weight is not None and weight.dtype is not x.dtype:
        return NotImplemented  # the operator refuses it
    dim = min(1, len(x.shape) - 1)
    dtype = wide(x.dtype)

    def weighted(place: Place, of: Field | None) -> Expression:
        label = target.at(place).to(torch.int64)
        counts = op("ne", label, ignore)
        here = chosen(where(counts, label, 0), x.shape[dim])
        value = constant(1, dtype) if weight is None else weight.at((here,)).to(dtype)
        if of is not None:
            value = -of.at((*place[:dim], here, *place[dim:])).to(dtype) * value
        return where(counts, value, 0)

    def total(of: Field | None) -> Field:
        field = Field(target.shape, dtype, lambda place: weighted(place, of))
        return cx.fold("sum", field, list(range(len(target.shape))), keep=False)

    weights, loss = total(None), total(x)
    return (loss / weights if reduction == _MEAN else loss), weights


@lowers(aten.nll_loss_backward.default, aten.nll_loss2d_backward.default)
def nll_loss_backward(
    cx: Lowering, g: Field, x: Field, target: Field, weight: Field | None, reduction: int,
    ignore: int, total: Field,
) -> Any:  # fmt: skip
    """Minus the weight at each target that counts, zero elsewhere."""
    if target.dtype not in _INTEGERS or reduction not in (0, _MEAN, _SUM) or not cx.plain([x]):
        return NotImplemented
    dim = min(1, len(x.shape) - 1)
    dtype = wide(x.dtype)

    def at(place: Place) -> Expression:
        row = (*place[:dim], *place[dim + 1 :])
        label = target.at(row).to(torch.int64)
        hit = op("and", op("eq", label, Position(place[dim])), op("ne", label, ignore))
        value = -(g.at(row if g.shape else ()).to(dtype))
        if weight is not None:
            value = value * weight.at((place[dim],)).to(dtype)
        if reduction == _MEAN:
            value = value / total.at(()).to(dtype)
        return where(hit, value, 0)

    return Field(x.shape, dtype, at)
