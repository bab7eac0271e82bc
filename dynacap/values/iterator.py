"""Iterators made inside: each knows its position and how to make it again.

``recipe`` is for generated code: a callable and the values to call it with, which give an
iterator of the same type in the same state.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

from dynacap.values.base import Const, UserRaise, Value
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue
from dynacap.values.recipe import Rebuildable, Recipe

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer


class IteratorValue(Rebuildable):
    """An iterator with a position of its own; ``next`` gives None at the end.

    ``final``: once exhausted it stays so, whatever becomes of what it walks.
    """

    __slots__ = ("done",)
    type_: type = object
    final = True

    def __init__(self) -> None:
        self.source = None
        self.done = False

    @property
    def cls(self) -> type:
        return self.type_

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


def frozenset_iterator_at(over: frozenset[Any], steps: int) -> Iterator[Any]:
    """A frozen set's iterator after so many steps."""
    return advanced(iter(over), steps)


class ListIterator(IteratorValue):
    """Walks a list as it is at each step, as CPython does; ``step`` -1 for ``reversed``."""

    __slots__ = ("index", "over")
    type_: type = type(iter([]))

    def __init__(self, over: ListValue) -> None:
        super().__init__()
        self.over = over
        self.index = 0

    def step(self, t: Tracer) -> Value | None:
        items = self.over.items
        if self.index >= len(items):
            return None
        self.index += 1
        return t.force_item(items, self.index - 1)

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            return exhausted, [ListIterator(ListValue([]))]
        return iterator_at, [self.over, Const(self.index)]


class ReversedListIterator(IteratorValue):
    """``reversed(list)``."""

    __slots__ = ("index", "over")
    type_: type = type(reversed([]))

    def __init__(self, over: ListValue) -> None:
        super().__init__()
        self.over = over
        self.index = len(over.items) - 1

    def step(self, t: Tracer) -> Value | None:
        if not 0 <= self.index < len(self.over.items):
            return None
        self.index -= 1
        return t.force_item(self.over.items, self.index + 1)

    def recipe(self, t: Tracer) -> Recipe:
        if self.done:
            return reversed_at, [ListValue([]), Const(-1)]
        return reversed_at, [self.over, Const(self.index)]


class TupleIterator(IteratorValue):
    """Walks a tuple."""

    __slots__ = ("index", "over")
    type_ = type(iter(()))

    def __init__(self, over: TupleValue) -> None:
        super().__init__()
        self.over = over
        self.index = 0

    def step(self, t: Tracer) -> Value | None:
        if self.index >= len(self.over.items):
            return None
        self.index += 1
        return t.force_item(self.over.items, self.index - 1)

    def recipe(self, t: Tracer) -> Recipe:
        return iterator_at, [self.over, Const(self.index)]


class ConstIterator(IteratorValue):
    """Walks an immutable constant: a range, a string, bytes, a frozenset."""

    __slots__ = ("index", "items", "over")

    def __init__(self, over: Const) -> None:
        super().__init__()
        self.over = over
        self.items = over.value if isinstance(over.value, (range, str, bytes)) else list(over.value)
        self.index = 0

    @property
    def cls(self) -> type:
        return type(iter(self.over.value))

    def step(self, t: Tracer) -> Value | None:
        if self.index >= len(self.items):
            return None
        self.index += 1
        return t.wrap(self.items[self.index - 1], None)

    def recipe(self, t: Tracer) -> Recipe:
        if isinstance(self.over.value, frozenset):
            return frozenset_iterator_at, [self.over, Const(self.index)]
        return iterator_at, [self.over, Const(self.index)]


class DictIterator(IteratorValue):
    """Walks a dict's keys, values or items; a change of size meanwhile is an error."""

    __slots__ = ("backwards", "index", "keys", "kind", "over")

    def __init__(self, t: Tracer, over: DictValue, kind: str, backwards: bool = False) -> None:
        super().__init__()
        self.over = over
        self.kind = kind
        self.backwards = backwards
        self.keys = over.keys(t)[:: -1 if backwards else 1]
        self.index = 0

    @property
    def cls(self) -> type:
        empty = OrderedDict[Any, Any]() if issubclass(self.over.cls, OrderedDict) else {}
        return type(walk_dict(empty, self.kind, self.backwards))

    def step(self, t: Tracer) -> Value | None:
        if len(self.over.keys(t)) != len(self.keys):
            t.raise_error(RuntimeError, "dictionary changed size during iteration")
        if self.index >= len(self.keys):
            return None
        key = self.keys[self.index]
        self.index += 1
        return dict_entry(t, self.over, key, self.kind)

    def recipe(self, t: Tracer) -> Recipe:
        state = [Const(self.kind), Const(self.backwards)]
        if self.done:
            empty = DictValue(OrderedDict if issubclass(self.over.cls, OrderedDict) else dict)
            return exhausted, [DictIterator(t, empty, self.kind, self.backwards)]
        return dict_iterator_at, [self.over, *state, Const(self.index)]


def dict_entry(t: Tracer, over: DictValue, key: object, kind: str) -> Value:
    """A dict's entry as ``keys()``, ``values()`` or ``items()`` shows it."""
    if kind == "keys":
        return over.key_value(t, key)
    value = over.get(t, key)
    assert value is not None
    if kind == "values":
        return value
    return TupleValue([over.key_value(t, key), value])


class SequenceIterator(IteratorValue):
    """Walks an object with ``__getitem__`` and no ``__iter__`` until IndexError."""

    __slots__ = ("index", "over")
    type_ = type(iter(type("Seq", (), {"__getitem__": lambda self, i: i})()))

    def __init__(self, over: Value) -> None:
        super().__init__()
        self.over = over
        self.index = 0

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


class ReversedSequenceIterator(IteratorValue):
    """``reversed`` of an object with ``__len__`` and ``__getitem__``."""

    __slots__ = ("index", "over")
    type_ = reversed

    def __init__(self, over: Value, length: int) -> None:
        super().__init__()
        self.over = over
        self.index = length - 1

    def step(self, t: Tracer) -> Value | None:
        if self.index < 0:
            return None
        self.index -= 1
        return t.get_item(self.over, Const(self.index + 1))

    def recipe(self, t: Tracer) -> Recipe:
        if isinstance(t.lookup(self.over.cls, "__len__"), FunctionType):
            t.graph_break("cannot-rebuild", "reversed() would ask for the length again")
        return reversed_at, [self.over, Const(self.index)]


class SetIterator(IteratorValue):
    """Walks a set in the order that CPython would, which ``order`` gives."""

    __slots__ = ("index", "order", "over")
    type_: type = type(iter(set()))

    def __init__(self, over: SetValue, order: list[Value]) -> None:
        super().__init__()
        self.over = over
        self.order = order
        self.index = 0

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
        return set_iterator_at, [self.over, Const(self.index)]


def set_iterator_at(over: set[Any], steps: int) -> Iterator[Any]:
    """A set's iterator after so many steps."""
    return advanced(iter(over), steps)


class DequeIterator(ListIterator):
    """Walks a deque; a change of length meanwhile is an error."""

    __slots__ = ("length",)
    type_: type = type(iter(deque()))

    def __init__(self, over: ListValue) -> None:
        super().__init__(over)
        self.length = len(over.items)

    def step(self, t: Tracer) -> Value | None:
        if len(self.over.items) != self.length:
            t.raise_error(RuntimeError, "deque mutated during iteration")
        return super().step(t)

    def recipe(self, t: Tracer) -> Recipe:
        return deque_iterator_at, [self.over, Const(self.index)]


class ReversedDequeIterator(DequeIterator):
    """``reversed(deque)``."""

    __slots__ = ()
    type_: type = type(reversed(deque()))

    def step(self, t: Tracer) -> Value | None:
        items = self.over.items
        if len(items) != self.length:
            t.raise_error(RuntimeError, "deque mutated during iteration")
        if self.index >= len(items):
            return None
        self.index += 1
        return t.force_item(items, len(items) - self.index)

    def recipe(self, t: Tracer) -> Recipe:
        return reversed_deque_at, [self.over, Const(self.index)]


def reversed_deque_at(over: deque[Any], steps: int) -> Iterator[Any]:
    """A deque's reverse iterator after so many steps."""
    return advanced(reversed(over), steps)


def deque_iterator_at(over: deque[Any], steps: int) -> Iterator[Any]:
    """A deque's iterator after so many steps."""
    return advanced(iter(over), steps)
