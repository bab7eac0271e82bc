"""Tensors out of nothing, and rearrangements that are no views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynacap.backends.native.loops.expression import (
    Constant,
    Expression,
    Position,
    constant,
    op,
    where,
)
from dynacap.backends.native.loops.index import ZERO, Index
from dynacap.backends.native.loops.program import Number
from dynacap.backends.native.lowering.field import Field, Place, lift
from dynacap.backends.native.lowering.lower import DTYPES, Lowering, lowers, sizes_of
from dynacap.backends.native.lowering.promotion import HALVES

aten = torch.ops.aten


def filled(cx: Lowering, value: Any) -> Any:
    """The node's result with one number everywhere."""
    dtype = cx.result.dtype
    if not isinstance(value, Number | bool | int | float) or dtype not in DTYPES:
        return NotImplemented
    if isinstance(value, Number) and dtype in HALVES:
        return NotImplemented  # it may be too large, which is for the operator to say
    number = constant(value, dtype)
    return Field(sizes_of(cx.result.shape), dtype, lambda place: number)


@lowers(aten.full.default, aten.full_like.default, aten.new_full.default)
def full(cx: Lowering, like: Any, *args: Any, **options: Any) -> Any:
    """The number is the last argument."""
    return filled(cx, args[-1])


@lowers(aten.scalar_tensor.default)
def scalar_tensor(cx: Lowering, value: Any, **options: Any) -> Any:
    """One number."""
    return filled(cx, value)


@lowers(aten.fill.Scalar)
def fill(cx: Lowering, x: Field, value: Any) -> Any:
    """A number in the place of every element."""
    return filled(cx, value)


@lowers(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, aten.zero.default)
def zeros(cx: Lowering, *args: Any, **options: Any) -> Any:
    """Zero everywhere."""
    return filled(cx, 0)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(cx: Lowering, *args: Any, **options: Any) -> Any:
    """One everywhere."""
    return filled(cx, 1)


@lowers(aten.arange.default, aten.arange.start, aten.arange.start_step)
def arange(cx: Lowering, *numbers: Any, **options: Any) -> Any:
    """Start and step, both whole; others are rounded by eager in its own order."""
    start, _, step = {1: (0, *numbers, 1), 2: (*numbers, 1), 3: numbers}[len(numbers)]
    if not isinstance(start, int) or not isinstance(step, int):
        return NotImplemented

    def at(place: Place) -> Expression:
        return Position(place[0] * step + start).to(cx.result.dtype)

    return Field(sizes_of(cx.result.shape), cx.result.dtype, at)


def _triangle(x: Field, keeps: str, diagonal: int) -> Field:
    def at(place: Place) -> Expression:
        ahead = Position(place[-1] - place[-2])
        return where(op(keeps, ahead, diagonal), x.at(place), 0)

    return Field(x.shape, x.dtype, at)


@lowers(aten.tril.default)
def tril(cx: Lowering, x: Field, diagonal: int = 0) -> Any:
    """The lower triangle."""
    return _triangle(x, "le", diagonal)


@lowers(aten.triu.default)
def triu(cx: Lowering, x: Field, diagonal: int = 0) -> Any:
    """The upper triangle."""
    return _triangle(x, "ge", diagonal)


@lowers(aten.flip.default)
def flip(cx: Lowering, x: Field, dims: Sequence[int]) -> Any:
    """Back to front along dimensions."""
    over = {d % len(x.shape) for d in dims} if x.shape else set()

    def at(place: Place) -> Expression:
        return x.at(tuple(
            Index({}, x.shape[d] - 1) - i if d in over else i for d, i in enumerate(place)
        ))  # fmt: skip

    return Field(x.shape, x.dtype, at)


@lowers(aten.repeat.default)
def repeat(cx: Lowering, x: Field, counts: Sequence[int]) -> Any:
    """Copies side by side."""
    shape = sizes_of(cx.result.shape)

    def at(place: Place) -> Expression:
        own = place[len(shape) - len(x.shape) :]
        return x.at(tuple(
            ZERO if size == 1 else i % size for i, size in zip(own, x.shape, strict=True)
        ))  # fmt: skip

    return Field(shape, x.dtype, at)


@lowers(aten.native_dropout.default)
def dropout(cx: Lowering, x: Field, p: float, train: bool | None) -> Any:
    """Only where nothing is dropped; else the operator draws from eager's stream itself."""
    if train is not False and p != 0:
        return NotImplemented
    return lift(lambda a: a, x), lift(lambda a: Constant(True, torch.bool), x)
