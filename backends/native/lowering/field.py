"""A tensor as a function from an index to an expression, so that formulas read as in NumPy.

A field costs nothing until it becomes an equation: ``(x - mean) * rstd`` on fields broadcasts and
composes, and stands for what its elements are computed from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Expression, Load, op
from dynacap.backends.native.loops.index import ZERO, Index, Size
from dynacap.backends.native.loops.program import Buffer, Number

Place = tuple[Index, ...]
Scalar = Number | bool | int | float


@dataclass(eq=False)
class Field:
    """``at(index)`` is the element there; ``buffer`` is the memory, where it is that unchanged."""

    shape: tuple[Size, ...]
    dtype: torch.dtype
    at: Callable[[Place], Expression]
    buffer: Buffer | None = None

    def to(self, dtype: torch.dtype) -> Field:
        """The values as another dtype."""
        if dtype is self.dtype:
            return self
        return Field(self.shape, dtype, lambda place: self.at(place).to(dtype))

    def sample(self) -> Expression:
        """Its first element, for a look at what it is made of."""
        return self.at((ZERO,) * len(self.shape))

    def __add__(self, other: Field | Scalar) -> Field:
        return lift(Expression.__add__, self, other)

    def __sub__(self, other: Field | Scalar) -> Field:
        return lift(Expression.__sub__, self, other)

    def __rsub__(self, other: Scalar) -> Field:
        return lift(Expression.__rsub__, self, other)

    def __mul__(self, other: Field | Scalar) -> Field:
        return lift(Expression.__mul__, self, other)

    def __truediv__(self, other: Field | Scalar) -> Field:
        return lift(Expression.__truediv__, self, other)


def memory(buffer: Buffer, root: Buffer) -> Field:
    """A buffer's elements, read from the buffer that owns the memory."""

    def at(place: Place) -> Expression:
        offset = ZERO + buffer.offset
        for index, stride in zip(place, buffer.strides, strict=True):
            offset = offset + index * stride
        return Load(root, offset)

    return Field(buffer.shape, buffer.dtype, at, buffer)


def lift(function: Callable[..., Expression], *operands: Field | Scalar | None) -> Field:
    """A function of expressions applied to fields element by element, with broadcasting."""
    fields = [x for x in operands if isinstance(x, Field)]
    shape = broadcast([field.shape for field in fields])

    def at(place: Place) -> Expression:
        return function(*(x.at(aligned(place, x)) if isinstance(x, Field) else x for x in operands))

    return Field(shape, fields[0].dtype, at)


def apply(name: str, *operands: Field | Scalar) -> Field:
    """A scalar operation by name on fields."""
    return lift(lambda *args: op(name, *args), *operands)


def aligned(place: Place, field: Field) -> Place:
    """The place in a field that a place in what it broadcasts to reads from."""
    own = place[len(place) - len(field.shape) :]
    return tuple(
        ZERO if isinstance(size, int) and size == 1 else index
        for index, size in zip(own, field.shape, strict=True)
    )


def broadcast(shapes: Sequence[tuple[Size, ...]]) -> tuple[Size, ...]:
    """The shape that several broadcast to."""
    result: list[Any] = [1] * max(map(len, shapes))
    for shape in shapes:
        for dim, size in enumerate(shape, len(result) - len(shape)):
            if not (isinstance(size, int) and size == 1):
                result[dim] = size
    return tuple(result)
