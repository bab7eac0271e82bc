"""Containers: tuples, lists, dicts, sets, deques and slices, made inside or mirrored lazily.

A mirror reads an element of the outside object when it is first asked for, under one guard, and
keeps writes to itself; the side-effect log replays them.  Subclasses of the built-in containers
share the storage classes here; ``attrs`` then mirrors their ``__dict__``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, ClassVar

from dynacap.values.base import (
    DELETED,
    Const,
    Lazy,
    NotConstant,
    OfProcess,
    Sentinel,
    Value,
    fields,
)
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.symbol import constant_inside
from dynacap.values.tracer import Tracer

Key = Any  # a hashable that equals another exactly when the Python objects do


@fields
class Stored(Value):
    """An object with storage of a built-in type, perhaps of a subclass, perhaps from outside."""

    real: Any = field(default=None, kw_only=True)
    attrs: DictValue | None = field(default=None, init=False)

    def release(self) -> None:
        self.real = self.attrs = None


@fields
class TupleValue(Stored):
    """A tuple or an instance of a subclass (named tuples, torch.Size, torch's return types)."""

    items: list[Value]
    cls: type = tuple

    def constant(self) -> Any:
        if self.cls is not tuple and self.attrs is not None:
            raise NotConstant(self)
        if self.real is not None and self.source is None:
            return self.real
        items = [_constant_item(item) for item in self.items]
        return tuple(items) if self.cls is tuple else _as_subclass(self, items)

    def known(self) -> Any:
        raise NotConstant(self)


@fields
class ListValue(Stored):
    """A list or a deque: ``items`` is what it holds now.

    One from outside is looked at when its items are first asked for (``held`` gives them then);
    until then elements can be appended without knowing, or guarding, what it holds.  ``state``
    tells iterators of a deque that elements came or went.
    """

    held: list[Value] | Callable[[], list[Value]]
    cls: type = list
    maxlen: int | None = None
    appended: list[Value] = field(default_factory=list, init=False)
    state: int = field(default=0, init=False)

    @property
    def is_loaded(self) -> bool:
        """Whether all of what it holds is known."""
        return type(self.held) is list

    @property
    def items(self) -> list[Value]:
        """What it holds now; may be changed in place."""
        if not isinstance(self.held, list):
            self.items = self.held() + self.appended
        return self.held  # type: ignore[return-value]

    @items.setter
    def items(self, items: list[Value]) -> None:
        self.held = items
        self.appended = []

    def extend(self, items: list[Value]) -> None:
        """Put elements behind the last."""
        (self.held if isinstance(self.held, list) else self.appended).extend(items)


@fields
class SliceValue(Stored):
    """A slice whose bounds are not all constants."""

    cls: ClassVar[type] = slice
    parts: tuple[Value, ...]

    def constant(self) -> Any:
        return slice(*(part.constant() for part in self.parts))


@fields
class SetValue(Stored):
    """A set or frozenset; ``items`` maps keys to the elements, in insertion order.

    ``shadow`` is a real set of the keys to which the same was done, for it has the order that
    CPython would show; None while elements were only added.  ``steps`` are the methods called on
    it since it was made or came in, each with its argument: the order of the elements hangs on
    them, so they are called again outside; one that an operation made is made so again: ``origin``
    has the function, its operands as they were then, and for how many of the steps that stands.
    ``guessed``: the shadow began as the copy of an outside set, whose table may be another.
    """

    items: dict[Key, Value]
    cls: type = set
    shadow: Any = None
    guessed: bool = field(default=False, init=False)
    made: frozenset[Any] | None = field(default=None, init=False)  # the constant, once asked for
    steps: list[tuple[str, Value | None]] = field(default_factory=list, init=False)
    origin: tuple[Callable[..., Any], list[Value], int] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.real is None:
            order = self.items if self.shadow is None else self.shadow
            self.steps += [("add", self.items[key]) for key in order]
        elif self.shadow is None:
            self.shadow = self.real

    def table(self) -> Any:
        """The shadow, to be read."""
        OfProcess.met += 1
        if self.shadow is None:  # filled one by one
            self.shadow = (frozenset if issubclass(self.cls, frozenset) else set)(iter(self.items))
        return self.shadow

    def changing(self) -> set[Key]:
        """The shadow, to be changed."""
        if self.table() is self.real:
            self.shadow, self.guessed = set(self.real), True
        changed: set[Key] = self.shadow
        return changed

    def snapshot(self) -> SetValue:
        """What stands for the set as it is now, where its order matters."""
        if self.cls is frozenset:
            return self
        made = SetValue({**self.items}, set, shadow=set(self.table()))
        made.guessed = self.guessed
        if self.real is None:
            made.steps, made.origin = [*self.steps], self.origin
        elif not self.steps:
            made.origin = itself, [self], len(made.steps)
        return made

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
        self.items, self.shadow, self.guessed, self.origin = {}, set(), False, None
        self.steps = [("clear", None)] if self.real is not None else []

    def constant(self) -> Any:
        if self.cls is not frozenset:
            raise NotConstant(self)
        if self.made is None:
            self.made = frozenset(_constant_item(item) for item in self.items.values())
        return self.made if self.real is None else self.real  # which may show another order


def itself(outside: Any) -> Any:
    """An outside set, where it is an operand unchanged."""
    return outside


@fields
class DictValue(Stored):
    """A dict, or an instance's ``__dict__``, or a function's globals.

    ``over`` holds what was read or written here; keys in ``fresh`` stand behind the outside
    dict's own, in insertion order, with the count of effects then; ``dirty`` are the keys to
    replay; ``gone`` counts removals; ``swept``: places of keys that went were given to others, by
    ``clear`` or ``popitem``.  ``owner`` is the object whose ``__dict__`` this is.
    ``outside`` are the outside keys, once they are guarded; ``listed`` are all keys, and for which
    counts of removals and of fresh ones.
    """

    cls: type = dict
    over: dict[Key, Value | Sentinel] = field(default_factory=dict, init=False)
    fresh: dict[Key, int] = field(default_factory=dict, init=False)
    dirty: dict[Key, None] = field(default_factory=dict, init=False)
    keyvals: dict[Key, Value] = field(default_factory=dict, init=False)
    owner: Value | None = None
    outside: list[Key] | None = field(default=None, init=False)
    listed: tuple[tuple[int, int], list[Key]] = field(default=((-1, 0), []), init=False)
    gone: int = field(default=0, init=False)
    swept: bool = field(default=False, init=False)
    default: Value | None = None  # the factory of a defaultdict

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

    def present(self, t: Tracer, key: Key) -> Value:
        """The value under a key that is there."""
        value = self.get(t, key)
        assert value is not None
        return value

    def items(self, t: Tracer) -> list[tuple[Value, Value]]:
        """Pairs of key and value in order."""
        return [(self.key_value(t, key), self.present(t, key)) for key in self.keys(t)]

    def release(self) -> None:
        Stored.release(self)
        self.owner = None
        self.over.clear()
        self.keyvals.clear()

    def clear(self, t: Tracer) -> None:
        """Remove everything."""
        self.swept = True
        for key in self.keys(t):
            self.delete(t, key)


@fields
class DictView(Rebuildable):
    """``dict.keys()``, ``values()`` or ``items()``: what the dict holds at each moment."""

    over: DictValue
    kind: str

    @property
    def guessed(self) -> bool:
        """Whether the order of a set made of it is not told by that of its entries' keys."""
        return self.kind == "items"

    @property
    def cls(self) -> type:
        empty: Any = OrderedDict() if issubclass(self.over.cls, OrderedDict) else {}
        return type(getattr(empty, self.kind)())

    def recipe(self, t: Tracer) -> Recipe:
        """What to call, and on what, for the same view."""
        return view_of, [self.over, Const(self.kind)]


def view_of(over: dict[Any, Any], kind: str) -> Any:
    """A dict's view, of its real type whatever a subclass may say."""
    base = OrderedDict if isinstance(over, OrderedDict) else dict
    return getattr(base, kind)(over)


def fresh_dict(t: Tracer, items: Iterable[tuple[Value, Value]], cls: type = dict) -> DictValue:
    """A dict made inside."""
    made = DictValue(cls)
    for key, value in items:
        made.set(t, t.key_of(key), key, value)
    return made


def _constant_item(item: Value) -> Any:
    if type(item) is Lazy:
        raise NotConstant(item)
    return constant_inside(item)


def _as_subclass(value: TupleValue, items: list[Any]) -> Any:
    if value.cls.__new__ is tuple.__new__ or hasattr(value.cls, "_fields"):
        return tuple.__new__(value.cls, items)
    try:
        return value.cls(items)
    except TypeError:
        raise NotConstant(value) from None
