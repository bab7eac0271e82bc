"""Iterators of ``builtins`` over other iterators: map, filter, zip, enumerate, calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dynacap.values.base import Const, Known, UserRaise, Value
from dynacap.values.container import TupleValue
from dynacap.values.data_model import advance, binary_op, compare, is_same, iterate, truth
from dynacap.values.iterator import IteratorValue, exhausted
from dynacap.values.recipe import Recipe

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer


class MapIterator(IteratorValue):
    """``map(function, *iterators)`` and ``itertools.starmap``."""

    __slots__ = ("function", "sources", "type_")
    final = False

    def __init__(self, function: Value, sources: list[Value], type_: type = map) -> None:
        super().__init__()
        self.function = function
        self.sources = sources
        self.type_ = type_

    def step(self, t: Tracer) -> Value | None:
        taken = []
        for source in self.sources:
            found = advance(t, source)
            if found is None:
                return None
            taken.append(found)
        return t.call(self.function, taken)

    def recipe(self, t: Tracer) -> Recipe:
        return self.type_, [self.function, *self.sources]


class StarmapIterator(MapIterator):
    """``itertools.starmap(function, iterator)``."""

    __slots__ = ()

    def step(self, t: Tracer) -> Value | None:
        found = advance(t, self.sources[0])
        if found is None:
            return None
        return t.call(self.function, elements(t, found))


def elements(t: Tracer, obj: Value) -> list[Value]:
    """All that iterating over an object gives."""
    iterator = iterate(t, obj)
    taken = []
    while (found := advance(t, iterator)) is not None:
        taken.append(found)
    return taken


class FilterIterator(IteratorValue):
    """``filter``, ``filterfalse``: elements for which a function (None: truth) says yes or no."""

    __slots__ = ("function", "origin", "type_")
    final = False

    def __init__(self, function: Value, origin: Value, type_: type = filter) -> None:
        super().__init__()
        self.function = function
        self.origin = origin
        self.type_ = type_

    def step(self, t: Tracer) -> Value | None:
        wanted = self.type_ is filter
        while (found := advance(t, self.origin)) is not None:
            if self._holds(t, found) == wanted:
                return found
        return None

    def _holds(self, t: Tracer, item: Value) -> bool:
        function = self.function
        if type(function) is Const and function.value is None:
            return truth(t, item)
        return truth(t, t.call(function, [item]))

    def recipe(self, t: Tracer) -> Recipe:
        return self.type_, [self.function, self.origin]


class ZipIterator(IteratorValue):
    """``zip(*iterators, strict=...)``."""

    __slots__ = ("origins", "strict")
    type_ = zip
    final = False

    def __init__(self, origins: list[Value], strict: bool) -> None:
        super().__init__()
        self.origins = origins
        self.strict = strict

    def step(self, t: Tracer) -> Value | None:
        if not self.origins:
            return None
        taken = []
        for index, origin in enumerate(self.origins):
            found = advance(t, origin)
            if found is None:
                if self.strict:
                    self._check_end(t, index)
                return None
            taken.append(found)
        return TupleValue(taken)

    def _check_end(self, t: Tracer, ended: int) -> None:
        if ended > 0:
            t.raise_error(
                ValueError, f"zip() argument {ended + 1} is shorter than argument{_plural(ended)}"
            )
        for index in range(1, len(self.origins)):
            if advance(t, self.origins[index]) is not None:
                t.raise_error(
                    ValueError,
                    f"zip() argument {index + 1} is longer than argument{_plural(index)}",
                )

    def recipe(self, t: Tracer) -> Recipe:
        return zip_strict if self.strict else zip, self.origins


def _plural(count: int) -> str:
    return " 1" if count == 1 else f"s 1-{count}"


def zip_strict(*origins: Any) -> Iterator[Any]:
    """``zip(..., strict=True)``."""
    return zip(*origins, strict=True)


class EnumerateIterator(IteratorValue):
    """``enumerate(iterator, start)``."""

    __slots__ = ("at", "origin")
    type_ = enumerate
    final = False

    def __init__(self, origin: Value, at: Value) -> None:
        super().__init__()
        self.origin = origin
        self.at = at

    def step(self, t: Tracer) -> Value | None:
        found = advance(t, self.origin)
        if found is None:
            return None
        pair = TupleValue([self.at, found])
        self.at = binary_op(t, "+", self.at, Const(1))
        return pair

    def recipe(self, t: Tracer) -> Recipe:
        return enumerate, [self.origin, self.at]


class CallIterator(IteratorValue):
    """``iter(function, sentinel)``."""

    __slots__ = ("function", "sentinel")
    type_ = type(iter(int, 1))

    def __init__(self, function: Value, sentinel: Value) -> None:
        super().__init__()
        self.function = function
        self.sentinel = sentinel

    def step(self, t: Tracer) -> Value | None:
        try:
            found = t.call(self.function, [])
        except UserRaise as raised:
            self.done = issubclass(raised.exc.cls, StopIteration)
            raise
        same = is_same(t, found, self.sentinel)
        if same or truth(t, compare(t, "==", found, self.sentinel)):
            return None
        return found

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            return exhausted, [CallIterator(Known(int), Const(0))]
        return iter, [self.function, self.sentinel]
