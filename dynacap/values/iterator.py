"""Iterators made inside: each knows its position and how CPython would make it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynacap.values.base import Const, UserRaise, Value
from dynacap.values.container import DictValue, ListValue, TupleValue

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer


class IteratorValue(Value):
    """An iterator with a position of its own; ``next`` gives None at the end, and stays there."""

    __slots__ = ("done",)
    type_: type = object

    def __init__(self) -> None:
        self.source = None
        self.done = False

    @property
    def cls(self) -> type:
        return self.type_

    def next(self, t: Tracer) -> Value | None:
        """The next element, or None once there is none; exhaustion is final."""
        if self.done:
            return None
        found = self.step(t)
        if found is None:
            self.done = True
        return found

    def step(self, t: Tracer) -> Value | None:
        """The next element, or None."""
        raise NotImplementedError


class ListIterator(IteratorValue):
    """Walks a list as it is at each step, as CPython does; ``step`` -1 for ``reversed``."""

    __slots__ = ("index", "over")
    type_ = type(iter([]))

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


class ReversedListIterator(IteratorValue):
    """``reversed(list)``."""

    __slots__ = ("index", "over")
    type_ = type(reversed([]))

    def __init__(self, over: ListValue) -> None:
        super().__init__()
        self.over = over
        self.index = len(over.items) - 1

    def step(self, t: Tracer) -> Value | None:
        if not 0 <= self.index < len(self.over.items):
            return None
        self.index -= 1
        return t.force_item(self.over.items, self.index + 1)


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


class DictIterator(IteratorValue):
    """Walks a dict's keys, values or items; a change of size meanwhile is an error."""

    __slots__ = ("index", "keys", "kind", "over")
    _types = {
        "keys": type(iter({}.keys())),
        "values": type(iter({}.values())),
        "items": type(iter({}.items())),
    }

    def __init__(self, t: Tracer, over: DictValue, kind: str) -> None:
        super().__init__()
        self.over = over
        self.kind = kind
        self.keys = over.keys(t)
        self.index = 0

    @property
    def cls(self) -> type:
        return self._types[self.kind]

    def step(self, t: Tracer) -> Value | None:
        if len(self.over.keys(t)) != len(self.keys):
            t.raise_error(RuntimeError, "dictionary changed size during iteration")
        if self.index >= len(self.keys):
            return None
        key = self.keys[self.index]
        self.index += 1
        return dict_entry(t, self.over, key, self.kind)


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
