"""Iterators of ``builtins`` over other iterators: map, filter, zip, enumerate, calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from dynacap.values.base import Const, UserRaise, Value, fields
from dynacap.values.container import TupleValue
from dynacap.values.data_model import advance, binary_op, compare, drain, is_same, iterate, truth
from dynacap.values.iterator import IteratorValue
from dynacap.values.recipe import Recipe
from dynacap.values.tracer import Tracer


@fields
class MapIterator(IteratorValue):
    """``map(function, *iterators)`` and ``itertools.starmap``."""

    final: ClassVar[bool] = False
    function: Value
    sources: list[Value]
    cls: type = map

    def step(self, t: Tracer) -> Value | None:
        taken = []
        for source in self.sources:
            found = advance(t, source)
            if found is None:
                return None
            taken.append(found)
        return t.call(self.function, taken)

    def recipe(self, t: Tracer) -> Recipe:
        return self.cls, [self.function, *self.sources]


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
    return drain(t, iterate(t, obj))


@fields
class FilterIterator(IteratorValue):
    """``filter``, ``filterfalse``: elements for which a function (None: truth) says yes or no."""

    final: ClassVar[bool] = False
    function: Value
    origin: Value
    cls: type = filter

    def step(self, t: Tracer) -> Value | None:
        wanted = self.cls is filter
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
        return self.cls, [self.function, self.origin]


@fields
class ZipIterator(IteratorValue):
    """``zip(*iterators, strict=...)``."""

    cls: ClassVar[type] = zip
    final: ClassVar[bool] = False
    origins: list[Value]
    strict: bool

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


@fields
class EnumerateIterator(IteratorValue):
    """``enumerate(iterator, start)``."""

    cls: ClassVar[type] = enumerate
    final: ClassVar[bool] = False
    origin: Value
    at: Value

    def step(self, t: Tracer) -> Value | None:
        found = advance(t, self.origin)
        if found is None:
            return None
        pair = TupleValue([self.at, found])
        self.at = binary_op(t, "+", self.at, Const(1))
        return pair

    def recipe(self, t: Tracer) -> Recipe:
        return enumerate, [self.origin, self.at]


@fields
class CallIterator(IteratorValue):
    """``iter(function, sentinel)``."""

    cls: ClassVar[type] = type(iter(int, 1))
    function: Value
    sentinel: Value

    def step(self, t: Tracer) -> Value | None:
        try:
            found = t.call(self.function, [])
        except UserRaise as raised:
            self.done = issubclass(raised.exc.cls, StopIteration)
            raise
        same = is_same(t, found, self.sentinel)
        if self.done or same or truth(t, compare(t, "==", self.sentinel, found)):
            return None  # the function itself may have reached the end, by this iterator
        return found

    def recipe(self, t: Tracer) -> Recipe:
        return iter, [self.function, self.sentinel]
