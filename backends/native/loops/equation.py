"""An equation: one tensor, said as a formula for its elements.

``t[128*i + j] = exp(x[128*i + j])`` or, with a combiner, ``s[i] = sum over j of t[128*i + j]``.
Lowering makes one for each tensor of the graph; the schedule decides which become loops of their
own, which share a loop nest, and which are only ever substituted into others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dynacap.backends.native.loops.expression import Expression
from dynacap.backends.native.loops.index import ZERO, Axis, Index, Size
from dynacap.backends.native.loops.program import Buffer, Call

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class Equation:
    """``buffer[offset] = value`` for all ``axes``; with a combiner, of all ``reduced`` values.

    The axes stand in the order of the buffer's memory.  ``whole`` says that they cover the buffer
    densely, so that position and offset are one number; an equation that is not fills a part.
    ``call`` is the operator that it says, before anything was substituted into it.
    """

    buffer: Buffer
    axes: tuple[Axis, ...]
    offset: Index
    value: Expression
    reduced: tuple[Axis, ...] = ()
    combiner: str = ""
    origins: tuple[torch.fx.Node, ...] = ()
    whole: bool = True
    call: Call | None = None

    def __str__(self) -> str:
        value = str(self.value)
        if self.combiner:
            over = ", ".join(f"{axis} < {axis.size}" for axis in self.reduced)
            value = f"{self.combiner} over {over} of {value}"
        loops = ", ".join(f"{axis} < {axis.size}" for axis in self.axes)
        return f"{self.buffer.name}[{self.offset}] = {value} for {loops}"


def position(axes: tuple[Axis, ...]) -> Index:
    """The number of an iteration of a loop nest, counted in order."""
    result = ZERO
    for axis in axes:
        result = result * axis.size + Index({axis: 1})
    return result


def extent(axes: tuple[Axis, ...]) -> Size:
    """How many iterations a loop nest has."""
    total: Size = 1
    for axis in axes:
        total = total * axis.size
    return total


def row_major(sizes: tuple[Size, ...]) -> tuple[Size, ...]:
    """The strides of an array whose last dimension runs fastest."""
    strides: list[Size] = [1]
    for size in reversed(sizes[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))
