"""A fused loop nest: what runs, in which order, with nothing left to decide but how to spell it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dynacap.backends.native.loops.expression import Expression, Local, numbers_in
from dynacap.backends.native.loops.index import Axis, Index
from dynacap.backends.native.loops.program import Buffer, Number

if TYPE_CHECKING:
    import torch


@dataclass(eq=False)
class Store:
    """``buffer[offset] = value``; with a combiner, combined with what is there."""

    buffer: Buffer
    offset: Index
    value: Expression
    combiner: str = ""

    def lines(self) -> Iterator[str]:
        """The statement as text."""
        yield f"{self.buffer.name}[{self.offset}] {self.combiner}= {self.value}"


@dataclass(eq=False)
class Fold:
    """``result`` is what ``value``, at the end of each round of the loop, combines to.

    A wide one adds up in double precision.
    """

    result: Local
    combiner: str
    value: Expression
    wide: bool = False


@dataclass(eq=False)
class Loop:
    """``axis`` from 0 to its size over ``body``; in vectors, on several cores, or both.

    With ``lanes`` its rounds fold into so many accumulators by turns.
    """

    axis: Axis
    body: list[Statement]
    vector: bool = False
    parallel: bool = False
    folds: list[Fold] = field(default_factory=list)
    lanes: int = 0

    def lines(self) -> Iterator[str]:
        """The loop as text."""
        how = "parallel " * self.parallel + "vector " * self.vector
        yield f"{how}for {self.axis} < {self.axis.size}:"
        for statement in self.body:
            yield from (f"    {line}" for line in statement.lines())
        for fold in self.folds:
            yield f"    {fold.result} = {fold.combiner} of {fold.value}"


Statement = Store | Loop


@dataclass(eq=False)
class Kernel:
    """Loops that read and write buffers; ``scratch`` buffers live in one round of the outer loop.

    As a function it takes the pointers of ``reads``, then of ``writes``, then ``sizes``, then
    ``numbers()``; one that ``faults`` another pointer, to an integer that it sets where an index
    lies outside.
    """

    name: str
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    body: list[Statement]
    scratch: tuple[Buffer, ...] = ()
    sizes: tuple[object, ...] = ()
    origins: tuple[torch.fx.Node, ...] = ()
    faults: bool = False
    in_team: bool = False  # whether the threads that share its loop are there when it is called

    def numbers(self) -> tuple[Number, ...]:
        """The floats that it computes with, and is given."""
        return tuple(numbers_in(*_values(self.body)))

    def __str__(self) -> str:
        head = [
            f"kernel {self.name}({', '.join(b.name for b in self.reads)})"
            f" -> {', '.join(b.name for b in self.writes)}:"
        ]
        head += [f"    scratch {buffer}" for buffer in self.scratch]
        lines = (line for statement in self.body for line in statement.lines())
        return "\n".join([*head, *(f"    {line}" for line in lines)])


def _values(body: Sequence[Statement]) -> Iterator[Expression]:
    for statement in body:
        if isinstance(statement, Store):
            yield statement.value
            continue
        yield from _values(statement.body)
        yield from (fold.value for fold in statement.folds)
