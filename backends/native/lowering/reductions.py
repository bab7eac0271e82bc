"""Reductions, and what is built of them: softmax, norms, losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Expression, Position, op, where
from dynacap.backends.native.loops.index import Index
from dynacap.backends.native.lowering.field import Field, Place, apply, lift
from dynacap.backends.native.lowering.formulas import in_memory
from dynacap.backends.native.lowering.lower import Lowering, lowers
from dynacap.backends.native.lowering.promotion import wide

aten = torch.ops.aten


def dims_of(x: Field, dim: int | Sequence[int] | None) -> list[int]:
    """Dimensions counted from the front; none given means all."""
    if dim is None or (not isinstance(dim, int) and not dim):
        return list(range(len(x.shape)))
    dims = [dim] if isinstance(dim, int) else dim
    return [d % len(x.shape) for d in dims] if x.shape else []


def count(x: Field, dims: Sequence[int]) -> int:
    """How many elements each result is made from."""
    total = 1
    for dim in dims:
        total = total * x.shape[dim]
    return total


@lowers(aten.sum.default, aten.sum.dim_IntList)
def sum_(cx: Lowering, x: Field, dim: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    """In the result's dtype, or wider where that is a half."""
    return cx.fold("sum", x.to(wide(cx.result.dtype)), dims_of(x, dim), keep)


@lowers(aten.mean.default, aten.mean.dim)
def mean(cx: Lowering, x: Field, dim: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    """The sum over the count."""
    dims = dims_of(x, dim)
    return cx.fold("sum", x.to(wide(cx.result.dtype)), dims, keep) / float(count(x, dims))


@lowers(aten.prod.default, aten.prod.dim_int)
def prod(cx: Lowering, x: Field, dim: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    """As for a sum."""
    return cx.fold("prod", x.to(wide(cx.result.dtype)), dims_of(x, dim), keep)


@lowers(aten.amax.default, aten.max.default)
def amax(cx: Lowering, x: Field, dim: Any = None, keep: bool = False) -> Any:
    """The greatest, or NaN if there is one."""
    return cx.fold("max", x, dims_of(x, dim), keep)


@lowers(aten.amin.default, aten.min.default)
def amin(cx: Lowering, x: Field, dim: Any = None, keep: bool = False) -> Any:
    """The least, or NaN if there is one."""
    return cx.fold("min", x, dims_of(x, dim), keep)


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def any_(cx: Lowering, x: Field, dim: Any = None, keep: bool = False) -> Any:
    """Whether one is not zero."""
    return _truth(cx, "any", x, dim, keep)


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def all_(cx: Lowering, x: Field, dim: Any = None, keep: bool = False) -> Any:
    """Whether none is zero."""
    return _truth(cx, "all", x, dim, keep)


def _truth(cx: Lowering, combiner: str, x: Field, dim: Any, keep: bool) -> Any:
    if cx.result.dtype is not torch.bool or (
        dim is not None and not isinstance(dim, int) and not dim
    ):
        return NotImplemented
    return cx.fold(combiner, x.to(torch.bool), dims_of(x, dim), keep)


@lowers(aten.argmax.default, aten.argmin.default)
def arg_extreme(cx: Lowering, x: Field, dim: int | None = None, keep: bool = False) -> Any:
    """Where the first of the extremes stands."""
    which = "max" if cx.node.target is aten.argmax.default else "min"
    if not x.shape or (dim is None and len(x.shape) != 1):
        return NotImplemented
    return _extreme(cx, which, x, dims_of(x, dim)[0], keep)[1]


@lowers(aten.max.dim, aten.min.dim)
def extreme_dim(cx: Lowering, x: Field, dim: int, keep: bool = False) -> Any:
    """The extreme and where it stands."""
    which = "max" if cx.node.target is aten.max.dim else "min"
    if not x.shape:
        return NotImplemented
    return _extreme(cx, which, x, dim % len(x.shape), keep)


def _extreme(cx: Lowering, which: str, x: Field, dim: int, keep: bool) -> tuple[Field, Field]:
    """Two reductions: the extreme, then the least position that holds it (or a NaN, if it is)."""
    x = lift(in_memory, x)  # rounding makes numbers equal, of which the first counts
    best = cx.fold(which, x, [dim])

    def place_of(place: Place) -> Expression:
        value, top = x.at(place), best.at((*place[:dim], Index({}), *place[dim + 1 :]))
        found = op("eq", value, top)
        if x.dtype.is_floating_point:
            found = op("or", found, op("isnan", value))
        return where(found, Position(place[dim]), int(x.shape[dim]))

    where_ = cx.fold("min", Field(x.shape, torch.int64, place_of), [dim], keep)
    return (best if keep else squeezed(best, [dim])), where_


def squeezed(x: Field, dims: Sequence[int]) -> Field:
    """Without dimensions of size 1."""
    gone = set(dims)

    def at(place: Place) -> Expression:
        rest = iter(place)
        return x.at(tuple(Index({}) if d in gone else next(rest) for d in range(len(x.shape))))

    return Field(tuple(s for d, s in enumerate(x.shape) if d not in gone), x.dtype, at)


@lowers(aten.var.correction, aten.std.correction, aten.var_mean.correction)
def variance(
    cx: Lowering, x: Field, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Any:
    """In two passes: the mean, then the squares of what differs from it."""
    dims = dims_of(x, dim)
    total = count(x, dims)
    free = total - (1 if correction is None else correction)
    if not isinstance(total, int) or free <= 0 or not x.dtype.is_floating_point:
        return NotImplemented
    var, mean_ = moments(cx, x.to(wide(x.dtype)), dims, float(free))
    shown = [v if keepdim else squeezed(v, dims) for v in (var, mean_)]
    if cx.node.target is aten.var_mean.correction:
        return tuple(shown)
    return shown[0] if cx.node.target is aten.var.correction else apply("sqrt", shown[0])


def moments(
    cx: Lowering, x: Field, dims: Sequence[int], free: float | None = None
) -> tuple[Field, Field]:
    """The variance and the mean, with the dimensions kept."""
    total = float(count(x, dims))
    mean_ = cx.fold("sum", x, dims) / total
    centred = x - mean_
    return cx.fold("sum", centred * centred, dims) / (free or total), mean_


@lowers(aten._softmax.default)
def softmax(cx: Lowering, x: Field, dim: int, half_to_float: bool) -> Any:
    """``exp(x - max)`` over its sum; a NaN in the sum is one everywhere, so max need not see it."""
    if not x.shape or not x.dtype.is_floating_point:
        return NotImplemented
    x, dims = x.to(wide(x.dtype)), dims_of(x, dim)
    powers = cx.keep(apply("falling_exp", x - cx.fold("most", x, dims)))
    return powers * apply("reciprocal", cx.fold("sum", powers, dims))


@lowers(aten._log_softmax.default)
def log_softmax(cx: Lowering, x: Field, dim: int, half_to_float: bool) -> Any:
    """``x - max - log(sum of exp(x - max))``."""
    if not x.shape or not x.dtype.is_floating_point:
        return NotImplemented
    x, dims = x.to(wide(x.dtype)), dims_of(x, dim)
    shifted = x - cx.fold("most", x, dims)
    return shifted - apply("log", cx.fold("sum", apply("falling_exp", shifted), dims))


@lowers(aten.logsumexp.default)
def logsumexp(cx: Lowering, x: Field, dim: Any, keep: bool = False) -> Any:
    """Infinite maxima are left out of the shift, for they would give NaN."""
    if not x.shape or not x.dtype.is_floating_point:
        return NotImplemented
    x, dims = x.to(wide(x.dtype)), dims_of(x, dim)
    shift = lift(lambda m: where(op("isinf", m), 0, m), cx.fold("most", x, dims))
    total = apply("log", cx.fold("sum", apply("flushed_exp", x - shift), dims)) + shift
    return total if keep else squeezed(total, dims)


@lowers(aten._softmax_backward_data.default)
def softmax_backward(cx: Lowering, g: Field, y: Field, dim: int, dtype: torch.dtype) -> Any:
    """``(g - sum(g * y)) * y``."""
    if not y.shape:
        return NotImplemented
    g, y = g.to(wide(g.dtype)), y.to(wide(y.dtype))
    return (g - cx.fold("sum", g * y, dims_of(y, dim))) * y


@lowers(aten._log_softmax_backward_data.default)
def log_softmax_backward(cx: Lowering, g: Field, y: Field, dim: int, dtype: torch.dtype) -> Any:
    """``g - exp(y) * sum(g)``."""
    if not y.shape:
        return NotImplemented
    g, y = g.to(wide(g.dtype)), y.to(wide(y.dtype))
    return g - apply("exp", y) * cx.fold("sum", g, dims_of(y, dim))


@lowers(aten.linalg_vector_norm.default)
def vector_norm(
    cx: Lowering,
    x: Field,
    order: Any = 2,
    dim: Any = None,
    keep: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """The orders that are sums or extremes."""
    x = x.to(wide(cx.result.dtype))
    dims, size = dims_of(x, dim), apply("abs", x)
    if count(x, dims) == 1 and order:  # a square might be too large
        return size if keep else squeezed(size, dims)
    if order == 2:
        return apply("sqrt", cx.fold("sum", x * x, dims, keep))
    if order == 1:
        return cx.fold("sum", size, dims, keep)
    if order in (float("inf"), float("-inf")):
        return cx.fold("max" if order > 0 else "min", size, dims, keep)
    return NotImplemented


@lowers(aten.native_layer_norm.default)
def layer_norm(
    cx: Lowering,
    x: Field,
    shape: Sequence[int],
    weight: Field | None,
    bias: Field | None,
    eps: float,
) -> Any:
    """Mean and variance of each row, then one pass that uses them."""
    if not normalizes(x, weight, bias):
        return NotImplemented
    x = x.to(wide(x.dtype))
    dims = list(range(len(x.shape) - len(shape), len(x.shape)))
    var, mean_ = moments(cx, x, dims)
    rstd = apply("rsqrt", var + eps)
    return affine((x - mean_) * rstd, weight, bias), mean_, rstd


def normalizes(x: Field, *parameters: Field | None) -> bool:
    """Whether a norm takes its parameters: those of its own dtype, or float32 beside halves."""
    wanted = (x.dtype, wide(x.dtype))
    given = {each.dtype for each in parameters if each is not None}
    return x.dtype.is_floating_point and len(given) <= 1 and given.issubset(wanted)


def affine(x: Field, weight: Field | None, bias: Field | None) -> Field:
    """``x * weight + bias`` with what there is of the two."""
    if weight is not None:
        x = x * weight.to(x.dtype)
    return x if bias is None else x + bias.to(x.dtype)


@lowers(aten.native_layer_norm_backward.default)
def layer_norm_backward(
    cx: Lowering, g: Field, x: Field, shape: Sequence[int], mean_: Field, rstd: Field,
    weight: Field | None, bias: Field | None, mask: Sequence[bool],
) -> Any:  # fmt: skip
    """The gradient of the rows needs two sums over each, those of weight and bias one each down."""
    g, x = g.to(wide(g.dtype)), x.to(wide(x.dtype))
    outer = list(range(len(x.shape) - len(shape)))
    inner = list(range(len(outer), len(x.shape)))
    normal = (x - mean_.to(x.dtype)) * rstd.to(x.dtype)
    of_input = of_weight = of_bias = None
    if mask[0]:
        scaled = g if weight is None else g * weight.to(g.dtype)
        total = float(count(x, inner))
        along = cx.fold("sum", scaled, inner) / total
        across = cx.fold("sum", scaled * normal, inner) / total
        of_input = (scaled - along - normal * across) * rstd.to(x.dtype)
    if mask[1]:
        of_weight = cx.fold("sum", g * normal, outer, keep=False)
    if mask[2]:
        of_bias = cx.fold("sum", g, outer, keep=False)
    return of_input, of_weight, of_bias


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm(
    cx: Lowering, x: Field, weight: Field | None, bias: Field | None, mean_: Field, var: Field,
    momentum: float, eps: float,
) -> Any:  # fmt: skip
    """With statistics that are given: a line for each channel, and nothing to save."""
    if any(user.users and user.args[1] != 0 for user in cx.node.users):
        return NotImplemented
    if not normalizes(x, weight, bias, mean_, var):
        return NotImplemented
    dtype = wide(x.dtype)
    scale = _channels(apply("rsqrt", var.to(dtype) + eps), x)
    weight, bias = (None if v is None else _channels(v.to(dtype), x) for v in (weight, bias))
    normal = (x.to(dtype) - _channels(mean_.to(dtype), x)) * scale
    return affine(normal, weight, bias), None, None


def _channels(per_channel: Field, x: Field) -> Field:
    """One number for each channel, to broadcast against ``x``."""
    shape = tuple(size if d == 1 else 1 for d, size in enumerate(x.shape))
    return Field(shape, per_channel.dtype, lambda place: per_channel.at((place[1],)))


@lowers(aten.native_batch_norm.default)
def native_batch_norm(
    cx: Lowering, x: Field, weight: Field | None, bias: Field | None, mean_: Field | None,
    var: Field | None, training: bool, momentum: float, eps: float,
) -> Any:  # fmt: skip
    """In evaluation; in training it changes its statistics in place."""
    if training or mean_ is None or var is None:
        return NotImplemented
    return batch_norm(cx, x, weight, bias, mean_, var, momentum, eps)


@lowers(aten.native_group_norm.default)
def group_norm(
    cx: Lowering, x: Field, weight: Field | None, bias: Field | None, n: int, channels: int,
    area: int, groups: int, eps: float,
) -> Any:  # fmt: skip
    """Mean and variance of each group of channels of each sample."""
    if x.buffer is None or any(not isinstance(s, int) for s in x.shape):
        return NotImplemented
    if not normalizes(x, weight, bias):
        return NotImplemented
    dtype, each = wide(x.dtype), channels // groups
    space = x.shape[2:]

    def at(place: Place) -> Expression:
        sample, group, channel, *rest = place
        return x.at((sample, group * each + channel, *rest)).to(dtype)

    split = Field((n, groups, each, *space), dtype, at)
    var, mean_ = moments(cx, split, list(range(2, len(split.shape))))
    rstd = apply("rsqrt", var + eps)

    def of_group(per_group: Field) -> Field:
        def at(place: Place) -> Expression:
            ones = (Index({}),) * (len(split.shape) - 2)
            return per_group.at((place[0], place[1] // each, *ones))

        return Field(x.shape, dtype, at)

    normal = (x.to(dtype) - of_group(mean_)) * of_group(rstd)
    weight, bias = (None if v is None else _channels(v, x) for v in (weight, bias))
    dims = list(range(2, len(split.shape)))
    return affine(normal, weight, bias), squeezed(mean_, dims), squeezed(rstd, dims)


@lowers(aten.mse_loss.default)
def mse_loss(cx: Lowering, x: Field, target: Field, reduction: int = 1) -> Any:
    """The square of the difference: each, the mean, or the sum."""
    dtype = wide(cx.result.dtype)
    difference = x.to(dtype) - target.to(dtype)
    squares = difference * difference
    if reduction == 0:
        return squares
    dims = dims_of(squares, None)
    total = cx.fold("sum", squares, dims, keep=False)
    return total / float(count(squares, dims)) if reduction == 1 else total
