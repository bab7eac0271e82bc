"""The fewest operations of a graph on which a backend still differs from eager.

Delta debugging over the graph's nodes: a part of them is kept, what the part takes from the rest
becomes an input with the value that eager gave it, and what the rest takes from the part becomes a
result.  So each part is a whole program that can be judged by itself.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from dynacap.backends.verify.copies import copied
from dynacap.backends.verify.part import Unit, Values, part, recorded, units
from dynacap.backends.verify.run import run
from dynacap.fxlite import GraphModule

Differs = Callable[[GraphModule, Sequence[Any]], bool]
T = TypeVar("T")
SECONDS = 60.0


@dataclass
class Reduced:
    """A graph with its inputs that still differs, and how many operations the first one had.

    ``invented``: the floating-point inputs are those of :func:`invented`, seeded by their places.
    """

    graph_module: GraphModule
    inputs: Sequence[Any]
    before: int
    invented: bool = False

    @property
    def operations(self) -> int:
        """How many operations are left."""
        return count(self.graph_module)


def count(graph_module: GraphModule) -> int:
    """The operations of a graph."""
    return sum(node.op.startswith("call_") for node in graph_module.graph.nodes)


def reduced(
    graph_module: GraphModule, inputs: Sequence[Any], differs: Differs, seconds: float = SECONDS
) -> Reduced:
    """The smallest part of the graph found in that time; the whole graph if no part differs.

    ``differs`` compiles a part and judges it on inputs.
    """
    whole = Reduced(graph_module, inputs, count(graph_module))
    trial = _Trial(graph_module, differs, time.monotonic() + seconds)
    try:
        trial.values = recorded(graph_module, copied(inputs).values)
        kept = smallest(units(graph_module), trial.differs)
        found = trial.part(kept)
    except Exception:
        return whole  # what is wrong with the graph is told by the mismatch that brought us here
    if found is None or not trial.differs(kept):
        return whole
    module, values = found
    other = [invented_like(value, seed) for seed, value in enumerate(values)]
    if trial.judged(module, other):
        return Reduced(module, other, whole.before, invented=True)
    return Reduced(module, values, whole.before)


@dataclass
class _Trial:
    """Asks whether a part of a graph differs; after ``end`` no part does."""

    graph_module: GraphModule
    judge: Differs
    end: float
    values: Values = field(default_factory=dict)
    known: dict[tuple[int, ...], bool] = field(default_factory=dict)

    def part(self, kept: Sequence[Unit]) -> tuple[GraphModule, list[Any]] | None:
        return part(self.graph_module, kept, self.values)

    def differs(self, kept: Sequence[Unit]) -> bool:
        key = tuple(unit.number for unit in kept)
        if key not in self.known:
            if time.monotonic() > self.end:
                return False
            made = self.part(kept)
            self.known[key] = made is not None and self.judged(*made)
        return self.known[key]

    def judged(self, module: GraphModule, inputs: Sequence[Any]) -> bool:
        """A part that eager cannot run shows nothing."""
        if run(module.forward, copied(inputs)).error is not None:
            return False
        return self.judge(module, inputs)


def invented_like(value: Any, seed: int) -> Any:
    """Random numbers for floating-point ones; whole ones mean something (an index) and stay."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    made = invented(tuple(value.shape), value.stride(), value.dtype, seed)
    return made.requires_grad_(value.requires_grad)


def invented(
    shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype, seed: int
) -> torch.Tensor:
    """A tensor of that layout, the same numbers for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.empty_strided(shape, stride, dtype=dtype)
    size = made.untyped_storage().nbytes() // made.element_size()
    numbers = torch.randn(size, generator=generator).to(dtype)
    return numbers.as_strided(shape, stride)


def smallest(items: list[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """A list from which no part can be left out so that it still fails (Zeller's ddmin).

    The order is kept; neighbours are tried together first.
    """
    pieces = 2
    while len(items) > 1:
        for candidate in _candidates(items, min(pieces, len(items))):
            if fails(candidate):
                pieces = 2 if 2 * len(candidate) <= len(items) else max(pieces - 1, 2)
                items = candidate
                break
        else:
            if pieces >= len(items):
                break
            pieces *= 2
    return items


def _candidates(items: list[T], pieces: int) -> Iterator[list[T]]:
    """Each piece by itself, then all but each piece."""
    bounds = [len(items) * index // pieces for index in range(pieces + 1)]
    spans = list(itertools.pairwise(bounds))
    yield from (items[start:end] for start, end in spans)
    if pieces > 2:
        yield from (items[:start] + items[end:] for start, end in spans)
