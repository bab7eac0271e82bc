"""Iterators of ``builtins`` over other iterators: map, filter, zip, enumerate, calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, ClassVar, NoReturn

from dynacap.values.base import Const, UserRaise, Value, fields, is_none
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
        taken = next_of_each(t, self.sources)
        return t.call(self.function, taken) if len(taken) == len(self.sources) else None

    def recipe(self, t: Tracer) -> Recipe:
        return self.cls, [self.function, *self.sources]


class StarmapIterator(MapIterator):
    """``itertools.starmap(function, iterator)``."""

    __slots__ = ()

    def step(self, t: Tracer) -> Value | None:
        found = advance(t, self.sources[0])
        return None if found is None else t.call(self.function, elements(t, found))


def next_of_each(t: Tracer, iterators: list[Value]) -> list[Value]:
    """The next element of each, up to the first that has none."""
    found = (advance(t, iterator) for iterator in iterators)
    return list(takewhile(lambda item: item is not None, found))  # type: ignore[arg-type]


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
        return truth(t, item if is_none(self.function) else t.call(self.function, [item]))

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
        taken = next_of_each(t, self.origins)
        if len(taken) == len(self.origins):
            return TupleValue(taken) if taken else None
        if self.strict:
            self._check_end(t, len(taken))
        return None

    def _check_end(self, t: Tracer, ended: int) -> None:
        if ended > 0:
            _refuse_lengths(t, ended, "shorter")
        for index in range(1, len(self.origins)):
            if advance(t, self.origins[index]) is not None:
                _refuse_lengths(t, index, "longer")

    def recipe(self, t: Tracer) -> Recipe:
        return zip_strict if self.strict else zip, self.origins


def _refuse_lengths(t: Tracer, index: int, how: str) -> NoReturn:
    others = " 1" if index == 1 else f"s 1-{index}"
    t.raise_error(ValueError, f"zip() argument {index + 1} is {how} than argument{others}")


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
