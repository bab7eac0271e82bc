"""Iterators made inside: each knows its position and how to make it again.

``recipe`` is for generated code: a callable and the values to call it with, which give an
iterator of the same type in the same state.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import field
from types import FunctionType
from typing import Any, ClassVar

from dynacap.values.base import Const, UserRaise, Value, fields
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tracer import Tracer


@fields
class IteratorValue(Rebuildable):
    """An iterator with a position of its own; ``next`` gives None at the end.

    ``final``: once exhausted it stays so, whatever becomes of what it walks.
    """

    final: ClassVar[bool] = True
    done: bool = field(default=False, kw_only=True)

    def next(self, t: Tracer) -> Value | None:
        """The next element, or None once there is none."""
        if self.done:
            return None
        try:
            found = self.step(t)
        except UserRaise as raised:
            if not issubclass(raised.exc.cls, StopIteration):
                raise
            return None  # a function that the iterator called ended it for now
        if found is None and self.final:
            self.done = True
        return found

    def step(self, t: Tracer) -> Value | None:
        """The next element, or None."""
        raise NotImplementedError


def iterator_at(over: Iterable[Any], index: int) -> Iterator[Any]:
    """The iterator of a list, tuple, range, text or sequence, moved to a position."""
    iterator = iter(over)
    iterator.__setstate__(index)  # type: ignore[attr-defined]
    return iterator


def reversed_at(over: list[Any], index: int) -> Iterator[Any]:
    """A list's reverse iterator, moved to a position."""
    iterator: Any = reversed(over)
    iterator.__setstate__(index)
    made: Iterator[Any] = iterator
    return made


def advanced(iterator: Iterator[Any], steps: int) -> Iterator[Any]:
    """An iterator after so many steps."""
    for _ in range(steps):
        next(iterator)
    return iterator


def walked(over: Iterable[Any], steps: int) -> Iterator[Any]:
    """The iterator of a set or deque after so many steps."""
    return advanced(iter(over), steps)


def exhausted(iterator: Iterator[Any]) -> Iterator[Any]:
    """An iterator at its end."""
    for _ in iterator:
        pass
    return iterator


def walk_dict(over: dict[Any, Any], kind: str, backwards: bool) -> Iterator[Any]:
    """A dict's iterator over keys, values or items, in either direction."""
    view = getattr(over, kind)()
    return reversed(view) if backwards else iter(view)


def dict_iterator_at(over: dict[Any, Any], kind: str, backwards: bool, steps: int) -> Iterator[Any]:
    """A dict's iterator after so many steps."""
    return advanced(walk_dict(over, kind, backwards), steps)


class _Empty:
    """A sequence without ``__iter__`` that holds nothing."""

    def __getitem__(self, index: int) -> Any:
        raise IndexError(index)


def exhausted_sequence() -> Iterator[Any]:
    """The iterator of an object that has ``__getitem__`` alone, at its end."""
    return exhausted(iter(_Empty()))


@fields
class ListIterator(IteratorValue):
    """Walks a list as it is at each step, as CPython does."""

    cls: ClassVar[type] = type(iter([]))
    over: Any
    index: int = 0

    def step(self, t: Tracer) -> Value | None:
        items = self.over.items
        if self.index >= len(items):
            return None
        self.index += 1
        return t.force_item(items, self.index - 1)

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:  # it lets go of what it walked
            return exhausted, [type(self)(type(self.over)([]))]
        return iterator_at, [self.over, Const(self.index)]


class TupleIterator(ListIterator):
    """Walks a tuple."""

    __slots__ = ()
    cls: ClassVar[type] = type(iter(()))


@fields
class ReversedListIterator(IteratorValue):
    """``reversed(list)``; ``index`` is where the next element lies."""

    cls: ClassVar[type] = type(reversed([]))
    over: ListValue
    index: int

    def step(self, t: Tracer) -> Value | None:
        if not 0 <= self.index < len(self.over.items):
            return None
        self.index -= 1
        return t.force_item(self.over.items, self.index + 1)

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            return reversed_at, [ListValue([]), Const(-1)]
        return reversed_at, [self.over, Const(self.index)]


@fields
class ConstIterator(IteratorValue):
    """Walks a range, a string or bytes."""

    over: Const
    index: int = 0

    @property
    def cls(self) -> type:
        return type(iter(self.over.value))

    def step(self, t: Tracer) -> Value | None:
        if self.index >= len(self.over.value):
            return None
        self.index += 1
        return t.wrap(self.over.value[self.index - 1], None)

    def recipe(self, t: Tracer) -> Recipe:
        return iterator_at, [self.over, Const(self.index)]


@fields
class DictIterator(IteratorValue):
    """Walks a dict's keys, values or items; a change of size meanwhile is an error."""

    over: DictValue
    kind: str
    keys: list[Any]
    backwards: bool = False
    index: int = 0

    @property
    def cls(self) -> type:
        empty = OrderedDict[Any, Any]() if issubclass(self.over.cls, OrderedDict) else {}
        return type(walk_dict(empty, self.kind, self.backwards))

    def step(self, t: Tracer) -> Value | None:
        ordered, now = issubclass(self.over.cls, OrderedDict), self.over.keys(t)
        if ordered and self.index < len(self.keys) and now != self.keys:
            self.done = True
            t.raise_error(RuntimeError, "OrderedDict mutated during iteration")
        if not ordered and len(now) != len(self.keys):
            t.raise_error(RuntimeError, "dictionary changed size during iteration")
        if self.index >= len(self.keys):
            return None
        key = self.keys[-1 - self.index if self.backwards else self.index]
        self.index += 1
        return dict_entry(t, self.over, key, self.kind)

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            empty = DictValue(OrderedDict if issubclass(self.over.cls, OrderedDict) else dict)
            return exhausted, [DictIterator(empty, self.kind, [], self.backwards)]
        state = [Const(self.kind), Const(self.backwards), Const(self.index)]
        return dict_iterator_at, [self.over, *state]


def dict_entry(t: Tracer, over: DictValue, key: object, kind: str) -> Value:
    """A dict's entry as ``keys()``, ``values()`` or ``items()`` shows it."""
    if kind == "keys":
        return over.key_value(t, key)
    value = over.get(t, key)
    assert value is not None
    if kind == "values":
        return value
    return TupleValue([over.key_value(t, key), value])


@fields
class SequenceIterator(IteratorValue):
    """Walks an object with ``__getitem__`` and no ``__iter__`` until IndexError."""

    cls: ClassVar[type] = type(iter(_Empty()))
    over: Value
    index: int = 0

    def step(self, t: Tracer) -> Value | None:
        try:
            found = t.get_item(self.over, Const(self.index))
        except UserRaise as raised:
            if issubclass(raised.exc.cls, (IndexError, StopIteration)):
                return None
            raise
        self.index += 1
        return found

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            return exhausted_sequence, []
        return iterator_at, [self.over, Const(self.index)]


@fields
class ReversedSequenceIterator(IteratorValue):
    """``reversed`` of an object with ``__len__`` and ``__getitem__``."""

    cls: ClassVar[type] = reversed
    over: Value
    index: int

    def step(self, t: Tracer) -> Value | None:
        if self.index < 0:
            return None
        self.index -= 1
        return t.get_item(self.over, Const(self.index + 1))

    def recipe(self, t: Tracer) -> Recipe:
        if isinstance(t.lookup(self.over.cls, "__len__"), FunctionType):
            t.graph_break("cannot-rebuild", "reversed() would ask for the length again")
        return reversed_at, [self.over, Const(self.index)]


@fields
class SetIterator(IteratorValue):
    """Walks a set in the order that CPython would, which ``order`` gives."""

    cls: ClassVar[type] = type(iter(set()))
    over: SetValue
    order: list[Value]
    index: int = 0

    def step(self, t: Tracer) -> Value | None:
        if len(self.over.items) != len(self.order):
            t.raise_error(RuntimeError, "Set changed size during iteration")
        if self.index >= len(self.order):
            return None
        self.index += 1
        return self.order[self.index - 1]

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            return exhausted, [SetIterator(SetValue({}), [])]
        return walked, [self.over, Const(self.index)]


@fields
class DequeIterator(IteratorValue):
    """Walks a deque, perhaps backwards; what comes or goes meanwhile is an error."""

    over: ListValue
    state: int
    backwards: bool = False
    index: int = 0

    @property
    def cls(self) -> type:
        return type(reversed(deque()) if self.backwards else iter(deque()))

    def step(self, t: Tracer) -> Value | None:
        items = self.over.items
        if self.over.state != self.state:
            t.raise_error(RuntimeError, "deque mutated during iteration")
        if self.index >= len(items):
            return None
        self.index += 1
        return t.force_item(items, -self.index if self.backwards else self.index - 1)

    def recipe(self, t: Tracer) -> Recipe:
        return walked_back if self.backwards else walked, [self.over, Const(self.index)]


def walked_back(over: deque[Any], steps: int) -> Iterator[Any]:
    """A deque's reverse iterator after so many steps."""
    return advanced(reversed(over), steps)
