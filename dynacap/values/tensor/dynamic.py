"""Which sizes and numbers are symbolic: told by the user, or seen to vary.

The first capture of a place takes every size as constant.  What differs the next time is symbolic
from then on, and only that.  Sizes of 0 and 1 stay constant, since broadcasting and contiguity
hang on them, and so do the sizes of parameters.
"""

from __future__ import annotations

import math
from types import CodeType
from typing import Any

import torch

from dynacap.config import config
from dynacap.guards.source import Source

INT64 = 1 << 63


class History:
    """What the captures of one place have seen.

    ``dynamic`` is the argument of ``compile``; ``floats`` says whether the backend takes numbers
    that are no ints.  While ``idle``, since no capture had a graph, what varies is not worth a
    symbol.  ``crowded``: there are so many entries that none should be for one key of a cache.
    """

    def __init__(self, dynamic: bool | None = None, floats: bool = True) -> None:
        self.idle = True
        self.crowded = False
        self._dynamic = dynamic
        self.floats = floats
        self._shapes: dict[Source, tuple[int, ...]] = {}
        self._varied: dict[Source, set[int]] = {}
        self._numbers: dict[Source, int | float] = {}
        self._varied_numbers: set[Source] = set()
        self.generators: dict[CodeType, int] = {}  # how often one was captured from where it stood

    @property
    def first(self) -> tuple[dict[Source, tuple[int, ...]], dict[Source, int | float]]:
        """The sizes and the numbers that were seen last, for another process to begin with."""
        return self._shapes, self._numbers

    def begin(self, shapes: dict[Source, tuple[int, ...]], numbers: dict[Source, Any]) -> None:
        """Know what another process had seen when it made the first entry."""
        self._shapes |= shapes
        self._numbers |= numbers

    def dims(self, source: Source | None, real: torch.Tensor) -> frozenset[int]:
        """The dimensions of a tensor that are symbolic."""
        if source is None or self._dynamic is False:
            return frozenset()
        if type(real) is torch.nn.Parameter and config.force_parameter_static_shapes:
            return frozenset()
        marked: set[int] = getattr(real, "_dynamo_dynamic_indices", set())
        wanted = set(marked) | self._vary(source, tuple(real.shape))
        wanted |= getattr(real, "_dynamo_weak_dynamic_indices", set())
        if self._dynamic or not config.assume_static_by_default:
            wanted |= set(range(real.dim()))
        wanted -= getattr(real, "_dynamo_static_indices", set()) - marked
        return frozenset(dim for dim in wanted if real.shape[dim] > 1)

    def _vary(self, source: Source, shape: tuple[int, ...]) -> set[int]:
        varied = self._varied.setdefault(source, set())
        before = self._shapes.get(source)
        self._shapes[source] = shape
        if before is not None and len(before) != len(shape):
            varied.clear()  # another rank is another program
        elif before is not None and config.automatic_dynamic_shapes:
            varied |= {dim for dim, size in enumerate(shape) if size != before[dim]}
        return set() if self.idle else varied

    def varies(self, source: Source, number: int | float) -> bool:
        """Whether a number from outside is symbolic."""
        if type(number) is int:
            fits = -INT64 <= number < INT64 and number not in (0, 1)
            allowed = not config.specialize_int
        else:
            fits, allowed = math.isfinite(number), self.floats and not config.specialize_float
        if self._dynamic is False or not allowed or not config.automatic_dynamic_shapes:
            return False
        before = self._numbers.get(source)
        self._numbers[source] = number
        if before is not None and type(before) is type(number) and before != number:
            self._varied_numbers.add(source)
        if not fits:
            return False
        return (source in self._varied_numbers and not self.idle) or (
            self._dynamic is True and type(number) is int
        )
