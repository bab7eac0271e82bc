"""Tensors put together from parts: each part is an equation that fills its region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Constant, Expression, as_dtype
from dynacap.backends.native.loops.index import Size
from dynacap.backends.native.lowering.field import Field, Place
from dynacap.backends.native.lowering.lower import Lowering, lowers, sizes_of

aten = torch.ops.aten


@lowers(aten.cat.default)
def cat(cx: Lowering, parts: Sequence[Field], dim: int = 0) -> Any:
    """One region for each part."""
    shape = sizes_of(cx.result.shape)
    parts = [part for part in parts if len(part.shape) == len(shape)]
    dim %= len(shape)
    starts, start = [], 0
    for part in parts:
        starts.append(start)
        start = start + part.shape[dim]
    if start != shape[dim] or not cx.plain(parts):
        return NotImplemented
    return cx.assemble([
        (tuple(s if d == dim else 0 for d in range(len(shape))), part)
        for s, part in zip(starts, parts, strict=True)
    ])  # fmt: skip


@lowers(aten.stack.default)
def stack(cx: Lowering, parts: Sequence[Field], dim: int = 0) -> Any:
    """Parts along a dimension of their own."""
    ndim = len(cx.result.shape)
    dim %= ndim
    if not cx.plain(parts):
        return NotImplemented
    return cx.assemble([
        (tuple(n if d == dim else 0 for d in range(ndim)), _unsqueezed(part, dim))
        for n, part in enumerate(parts)
    ])  # fmt: skip


def _unsqueezed(x: Field, dim: int) -> Field:
    shape = (*x.shape[:dim], 1, *x.shape[dim:])
    return Field(shape, x.dtype, lambda place: x.at((*place[:dim], *place[dim + 1 :])))


@lowers(aten.constant_pad_nd.default)
def pad(cx: Lowering, x: Field, widths: Sequence[int], value: Any = 0) -> Any:
    """The tensor in the middle of a constant; negative widths cut it."""
    before = [0] * len(x.shape)
    inner = list(x.shape)
    cut = [0] * len(x.shape)
    for n in range(len(widths) // 2):
        dim, low, high = len(x.shape) - 1 - n, widths[2 * n], widths[2 * n + 1]
        before[dim], cut[dim] = max(low, 0), max(-low, 0)
        inner[dim] = inner[dim] + min(low, 0) + min(high, 0)
    if not isinstance(value, bool | int | float) or any(size <= 0 for size in inner):
        return NotImplemented
    return framed(cx, _slice(x, cut, inner), before, value)


def _slice(x: Field, starts: Sequence[Size], shape: Sequence[Size]) -> Field:
    def at(place: Place) -> Expression:
        return x.at(tuple(i + s for i, s in zip(place, starts, strict=True)))

    return Field(tuple(shape), x.dtype, at)


def framed(
    cx: Lowering, x: Field, starts: Sequence[Size], value: Any, shape: Sequence[Size] | None = None
) -> Field:
    """A field at a place in the result, or in something of a shape, and a constant around it."""
    given, shape = shape, sizes_of(cx.result.shape) if shape is None else shape
    number = Constant(as_dtype(value, cx.result.dtype), cx.result.dtype)
    parts: list[tuple[tuple[Size, ...], Field]] = [(tuple(starts), x)]
    for dim in range(len(shape)):
        end = starts[dim] + x.shape[dim]
        for start, size in ((0, starts[dim]), (end, shape[dim] - end)):
            if size == 0:
                continue
            corner = (*starts[:dim], start, *(0 for _ in shape[dim + 1 :]))
            region = (*x.shape[:dim], size, *shape[dim + 1 :])
            parts.append((corner, Field(region, cx.result.dtype, lambda place: number)))
    return cx.assemble(parts, given)


@lowers(aten.slice_backward.default)
def slice_backward(
    cx: Lowering, g: Field, sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Any:
    """Zero around the gradient of a slice."""
    dim %= len(sizes)
    size = sizes[dim]
    if step != 1 or not all(isinstance(n, int) for n in (size, start)) or 0 in g.shape:
        return NotImplemented
    start = min(max(start + size, 0) if start < 0 else start, size)
    return framed(cx, g, [start if d == dim else 0 for d in range(len(sizes))], 0)


@lowers(aten.select_backward.default)
def select_backward(cx: Lowering, g: Field, sizes: Sequence[int], dim: int, index: int) -> Any:
    """Zero around the gradient of one place."""
    dim %= len(sizes)
    if not isinstance(sizes[dim], int) or not isinstance(index, int):
        return NotImplemented
    at = [index % sizes[dim] if d == dim else 0 for d in range(len(sizes))]
    return framed(cx, _unsqueezed(g, dim), at, 0)
