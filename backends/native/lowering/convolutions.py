"""Convolutions that loops and products of matrices do sooner than oneDNN has begun.

It brings images and weights into a layout of its own and back, by a primitive each.  A convolution
of single points is a product of matrices as it lies in memory; so is a small one, once its patches
stand side by side; and one that keeps channels apart is a few products for each element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Expression
from dynacap.backends.native.loops.index import ZERO, Size
from dynacap.backends.native.loops.program import Buffer
from dynacap.backends.native.lowering.field import Field, Place
from dynacap.backends.native.lowering.joining import framed
from dynacap.backends.native.lowering.lower import Lowering, contiguous, lowers, sizes_of

aten = torch.ops.aten
_MOST_TAPS = 25  # of a filter, whose products are written out
_MOST_PATCHES = 1 << 17  # elements, which a cache holds


@lowers(aten.convolution.default)
def convolution(
    cx: Lowering, x: Field, weight: Field, bias: Field | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, more: Sequence[int],
    groups: int,
) -> Any:  # fmt: skip
    """Of images, where it is one of these."""
    if transposed or len(x.shape) != 4 or x.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    if sizes_of(cx.result.stride()) != contiguous(sizes_of(cx.result.shape)):
        return NotImplemented
    window = _Window(cx, x, weight, stride, padding, dilation)
    apart = groups == x.shape[1] == weight.shape[0] and groups > 1
    alike = groups == 1 and _is_dense(weight.buffer) and window.is_small()
    if not alike and not (apart and math.prod(weight.shape[2:]) <= _MOST_TAPS):
        return NotImplemented
    # Beside the zeros around an image, which oneDNN leaves out, infinite weights would give NaN.
    if any(window.padding) and not cx.sees_finite(weight):
        return NotImplemented
    total = _product(window) if alike else _apart(window)
    if bias is None:
        return total
    return total + Field((1, *bias.shape, 1, 1), bias.dtype, lambda place: bias.at((place[1],)))


class _Window:
    """What a filter sees of an image."""

    def __init__(
        self, cx: Lowering, x: Field, weight: Field, stride: Sequence[int],
        padding: Sequence[int], dilation: Sequence[int],
    ) -> None:  # fmt: skip
        self.cx, self.x, self.weight = cx, x, weight
        self.stride, self.padding, self.dilation = map(_pair, (stride, padding, dilation))
        self.shape = sizes_of(cx.result.shape)
        self.taps = weight.shape[2:]

    def is_point(self) -> bool:
        """Whether the filter sees one point, each once, in memory where they stand in order."""
        steps = (*self.taps, *self.stride)
        return set(steps) == {1} and not any(self.padding) and _is_dense(self.x.buffer)

    def is_small(self) -> bool:
        """Whether its patches may stand side by side; points do already."""
        patches = self.x.shape[0] * math.prod((*self.weight.shape[1:], *self.shape[2:]))
        return self.is_point() or patches <= _MOST_PATCHES

    def image(self) -> Field:
        """The image with zeros around it."""
        if not any(self.padding):
            return self.x
        widths = (0, 0, *self.padding)
        shape = tuple(s + 2 * w for s, w in zip(self.x.shape, widths, strict=True))
        return framed(self.cx, self.x, widths, 0, shape)

    def place(self, sample: Any, channel: Any, tap: Sequence[Any], at: Sequence[Any]) -> Place:
        """Where the image has what a tap of the filter meets at a place of the result."""
        spots = (
            t * d + a * s for t, d, a, s in zip(tap, self.dilation, at, self.stride, strict=True)
        )
        return (sample, channel, *spots)


def _pair(numbers: Sequence[int]) -> Sequence[int]:
    """Two, where one may stand for both."""
    return numbers if len(numbers) == 2 else (*numbers, *numbers)


def _is_dense(buffer: Buffer | None) -> bool:
    return buffer is not None and buffer.strides == contiguous(buffer.shape)


def _apart(window: _Window) -> Field:
    """A sum over the taps, for each channel alone."""
    image, weight = window.image(), window.weight
    high, wide = window.taps

    def at(place: Place) -> Expression:
        sample, channel, *spot = place
        products = (
            image.at(window.place(sample, channel, (ZERO + y, ZERO + x), spot))
            * weight.at((channel, ZERO, ZERO + y, ZERO + x))
            for y in range(high)
            for x in range(wide)
        )
        return reduce(Expression.__add__, products)

    return Field(window.shape, image.dtype, at)


def _product(window: _Window) -> Field:
    """Weights by patches, for each image."""
    cx, (samples, filters, *spots) = window.cx, window.shape
    seen, area = math.prod(window.weight.shape[1:]), math.prod(spots)
    assert window.weight.buffer is not None
    weights = cx.seen(window.weight.buffer, (samples, filters, seen), (0, seen, 1))
    patches = cx.seen(_patches(window), (samples, seen, area), (seen * area, area, 1))
    product = cx.called(aten.bmm.default, (samples, filters, area), weights, patches)
    assert product.buffer is not None
    return cx.field(cx.seen(product.buffer, window.shape, contiguous(window.shape)))


def _patches(window: _Window) -> Buffer:
    """For each channel and tap, what that meets at all places of the result."""
    if window.is_point():
        assert window.x.buffer is not None
        return window.x.buffer
    image = window.image()

    def at(place: Place) -> Expression:
        sample, channel, *rest = place
        return image.at(window.place(sample, channel, rest[:2], rest[2:]))

    samples, channels = image.shape[:2]
    shape: tuple[Size, ...] = (samples, channels, *window.taps, *window.shape[2:])
    buffer = window.cx.keep(Field(shape, image.dtype, at)).buffer
    assert buffer is not None
    return buffer
