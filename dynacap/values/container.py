"""Containers: tuples, lists, dicts, sets, deques and slices, made inside or mirrored lazily.

A mirror reads an element of the outside object when it is first asked for, under one guard, and
keeps writes to itself; the side-effect log replays them.  Subclasses of the built-in containers
share the storage classes here; ``attrs`` then mirrors their ``__dict__``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dynacap.guards.source import Source
from dynacap.values.base import DELETED, Lazy, NotConstant, Sentinel, Value
from dynacap.values.symbol import constant_inside
from dynacap.values.tracer import Tracer

Key = Any  # a hashable that equals another exactly when the Python objects do


class Stored(Value):
    """An object with storage of a built-in type, perhaps of a subclass, perhaps from outside."""

    __slots__ = ("attrs", "real", "type_")

    def __init__(self, type_: type, real: Any = None, source: Source | None = None) -> None:
        self.source = source
        self.type_ = type_
        self.real = real
        self.attrs: DictValue | None = None

    @property
    def cls(self) -> type:
        return self.type_

    def release(self) -> None:
        self.real = self.attrs = None


class TupleValue(Stored):
    """A tuple or an instance of a subclass (named tuples, torch.Size, torch's return types)."""

    __slots__ = ("items",)

    def __init__(
        self,
        items: list[Value],
        type_: type = tuple,
        real: Any = None,
        source: Source | None = None,
    ) -> None:
        super().__init__(type_, real, source)
        self.items = items

    def constant(self) -> Any:
        if self.type_ is not tuple and self.attrs is not None:
            raise NotConstant(self)
        if self.real is not None and self.source is None:
            return self.real
        items = [_constant_item(item) for item in self.items]
        return tuple(items) if self.type_ is tuple else _as_subclass(self, items)

    def known(self) -> Any:
        raise NotConstant(self)


class ListValue(Stored):
    """A list or a deque: ``items`` is what it holds now.

    One from outside is looked at when its items are first asked for (``load``); until then
    elements can be appended without knowing, or guarding, what it holds.  ``state`` tells
    iterators of a deque that elements came or went.
    """

    __slots__ = ("_items", "_load", "appended", "maxlen", "state")

    def __init__(
        self,
        items: list[Value] | Callable[[], list[Value]],
        type_: type = list,
        real: Any = None,
        source: Source | None = None,
        maxlen: int | None = None,
    ) -> None:
        super().__init__(type_, real, source)
        self._items: list[Value] | None = items if isinstance(items, list) else None
        self._load = None if isinstance(items, list) else items
        self.appended: list[Value] = []
        self.maxlen = maxlen
        self.state = 0

    @property
    def is_loaded(self) -> bool:
        """Whether all of what it holds is known."""
        return self._items is not None

    @property
    def items(self) -> list[Value]:
        """What it holds now; may be changed in place."""
        if self._items is None:
            assert self._load is not None
            self._items = self._load() + self.appended
            self.appended = []
        return self._items

    @items.setter
    def items(self, items: list[Value]) -> None:
        self._items = items
        self.appended = []

    def extend(self, items: list[Value]) -> None:
        """Put elements behind the last."""
        (self.appended if self._items is None else self._items).extend(items)


class SliceValue(Stored):
    """A slice whose bounds are not all constants."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Value, ...], *outside: Any) -> None:
        super().__init__(slice, *outside)
        self.parts = parts

    def constant(self) -> Any:
        return slice(*(part.constant() for part in self.parts))


class SetValue(Stored):
    """A set or frozenset; ``items`` maps keys to the elements, in insertion order.

    ``shadow`` is a real set of the keys to which the same was done, for it has the order that
    CPython would show; None while elements were only added.  ``steps`` are the methods called on
    it since it was made or came in, each with its argument: the order of the elements hangs on
    them, so they are called again outside.  ``guessed``: the shadow began as the copy of an outside
    set, whose table may be another.
    """

    __slots__ = ("guessed", "items", "made", "shadow", "steps")

    def __init__(
        self,
        items: dict[Key, Value],
        type_: type = set,
        real: Any = None,
        source: Source | None = None,
        shadow: Any = None,
    ) -> None:
        super().__init__(type_, real, source)
        self.items = items
        self.shadow: Any = shadow if shadow is not None else real
        self.guessed = False
        self.made: frozenset[Any] | None = None  # the constant, once it was asked for
        self.steps: list[tuple[str, Value | None]] = []
        if real is None:
            self.steps += [("add", items[key]) for key in (items if shadow is None else shadow)]

    def table(self) -> Any:
        """The shadow, to be read."""
        if self.shadow is None:
            self.shadow = set()
            for key in self.items:
                self.shadow.add(key)
        return self.shadow

    def changing(self) -> set[Key]:
        """The shadow, to be changed."""
        if self.table() is self.real:
            self.shadow, self.guessed = set(self.real), True
        changed: set[Key] = self.shadow
        return changed

    def add(self, key: Key, item: Value) -> None:
        """Add an element unless it is there."""
        if key not in self.items:
            self.items[key] = item
            self.steps.append(("add", item))
        if self.shadow is not None:
            self.changing().add(key)

    def discard(self, key: Key) -> bool:
        """Remove an element; False if it was not there."""
        self.changing().discard(key)
        item = self.items.pop(key, None)
        if item is not None:
            self.steps.append(("discard", item))
        return item is not None

    def clear(self) -> None:
        """Remove all elements."""
        self.items, self.shadow, self.guessed = {}, set(), False
        self.steps = [("clear", None)] if self.real is not None else []

    def constant(self) -> Any:
        if self.type_ is not frozenset:
            raise NotConstant(self)
        if self.made is None:
            self.made = frozenset(_constant_item(item) for item in self.items.values())
        return self.made if self.real is None else self.real  # which may show another order


class DictValue(Stored):
    """A dict, or an instance's ``__dict__``, or a function's globals.

    ``over`` holds what was read or written here; keys in ``fresh`` stand behind the outside
    dict's own, in insertion order, with the count of effects then; ``dirty`` are the keys to
    replay; ``gone`` counts removals; ``swept``: places of keys that went were given to others, by
    ``clear`` or ``popitem``.  ``owner`` is the object whose ``__dict__`` this is.
    ``outside`` are the outside keys, once they are guarded; ``listed`` are all keys, and for which
    counts of removals and of fresh ones.
    """

    __slots__ = (
        "default",
        "dirty",
        "fresh",
        "gone",
        "keyvals",
        "listed",
        "outside",
        "over",
        "owner",
        "swept",
    )

    def __init__(self, type_: type = dict, real: Any = None, source: Source | None = None) -> None:
        super().__init__(type_, real, source)
        self.over: dict[Key, Value | Sentinel] = {}
        self.fresh: dict[Key, int] = {}
        self.dirty: dict[Key, None] = {}
        self.keyvals: dict[Key, Value] = {}
        self.owner: Value | None = None
        self.outside: list[Key] | None = None
        self.listed: tuple[tuple[int, int], list[Key]] = (-1, 0), []
        self.gone, self.swept = 0, False
        self.default: Value | None = None  # the factory of a defaultdict

    def get(self, t: Tracer, key: Key) -> Value | None:
        """The value under a key, or None; guards what it learns of an outside dict."""
        found = self.over.get(key)
        if type(found) is Lazy:
            found = self.over[key] = t.force(found)
        elif found is None and self.real is not None:
            found = t.read_outside_dict(self, key)
        if isinstance(found, Value):
            return found
        t.lacks(key)
        return None

    def set(self, t: Tracer, key: Key, keyval: Value, value: Value) -> None:
        """Store a value; the outside dict sees it when the side effects are replayed."""
        present = self.get(t, key)
        if present is None:
            self.dirty.pop(key, None)  # replayed in the order of what is fresh
            self.fresh[key] = t.effects
            self.keyvals[key] = keyval
        else:
            t.let_go(present)
        self.over[key] = value
        if self.real is not None:
            self.dirty[key] = None
        t.touch(self)

    def delete(self, t: Tracer, key: Key) -> bool:
        """Remove a key; False if it was not there."""
        present = self.get(t, key)
        if present is None:
            return False
        t.let_go(present)
        self.gone += 1
        self.fresh.pop(key, None)
        if self.real is None:
            del self.over[key]
            self.keyvals.pop(key, None)
        else:
            self.over[key] = DELETED
            self.dirty[key] = None
        t.touch(self)
        return True

    def keys(self, t: Tracer) -> list[Key]:
        """The keys now, in order; guards an outside dict's keys."""
        if self.real is None:
            return list(self.fresh)
        outside = t.outside_keys(self)
        state, over, fresh = (self.gone, len(self.fresh)), self.over, self.fresh
        if self.listed[0] != state:
            kept = [k for k in outside if k not in fresh and over.get(k) is not DELETED]
            self.listed = state, kept + list(fresh)
        return self.listed[1]

    def key_value(self, t: Tracer, key: Key) -> Value:
        """The key as a value."""
        found = self.keyvals.get(key)
        if found is None:
            found = self.keyvals[key] = t.outside_key_value(self, key)
        return found

    def values(self, t: Tracer) -> list[Value]:
        """The values in order."""
        return [self._present(t, key) for key in self.keys(t)]

    def items(self, t: Tracer) -> list[tuple[Value, Value]]:
        """Pairs of key and value in order."""
        return [(self.key_value(t, key), self._present(t, key)) for key in self.keys(t)]

    def _present(self, t: Tracer, key: Key) -> Value:
        value = self.get(t, key)
        assert value is not None
        return value

    def release(self) -> None:
        super().release()
        self.owner = None
        self.over.clear()
        self.keyvals.clear()

    def clear(self, t: Tracer) -> None:
        """Remove everything."""
        self.swept = True
        for key in self.keys(t):
            self.delete(t, key)


def fresh_dict(t: Tracer, items: Iterable[tuple[Value, Value]], type_: type = dict) -> DictValue:
    """A dict made inside."""
    made = DictValue(type_)
    for key, value in items:
        made.set(t, t.key_of(key), key, value)
    return made


def _constant_item(item: Value) -> Any:
    if type(item) is Lazy:
        raise NotConstant(item)
    return constant_inside(item)


def _as_subclass(value: TupleValue, items: list[Any]) -> Any:
    if value.type_.__new__ is tuple.__new__ or hasattr(value.type_, "_fields"):
        return tuple.__new__(value.type_, items)
    try:
        return value.type_(items)
    except TypeError:
        raise NotConstant(value) from None
