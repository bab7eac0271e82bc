"""``set`` and ``frozenset``.

Where a program can see the order of the elements, it is that of a real set of constants to which
the same was done; elements whose hash capture does not know break there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynacap.guards.raw import storage
from dynacap.values.base import Const, Value, is_const
from dynacap.values.container import DictValue, DictView, ListValue, SetValue, fresh_dict
from dynacap.values.data_model import advance, iterate, walk
from dynacap.values.iterator import SetIterator
from dynacap.values.iterator_builtins import elements
from dynacap.values.library.handlers import (
    NONE,
    as_storage,
    handles,
    handles_both,
    methods,
    not_implemented,
    raise_with,
)
from dynacap.values.library.misuse import bad_arguments
from dynacap.values.stand_in import for_real
from dynacap.values.tracer import Tracer

Keyed = dict[Any, Value]  # what stands for an element as a key -> the element
Combine = Callable[[Keyed, Keyed], Keyed]
_BOTH = (set, frozenset)


def keyed_elements(t: Tracer, items: Iterable[Value]) -> Keyed:
    """Elements by what stands for them; of equal ones the first stays."""
    keyed: Keyed = {}
    for item in items:
        keyed.setdefault(t.key_of(item, set), item)
    return keyed


def keyed_of(t: Tracer, iterable: Value) -> Keyed:
    """The elements of any iterable."""
    if isinstance(iterable, SetValue):
        return iterable.items
    stored = as_storage(t, iterable)
    if isinstance(stored, SetValue):
        return stored.items
    return keyed_elements(t, elements(t, iterable))


def table_of(t: Tracer, iterable: Value) -> Any:
    """A real set, dict or list of keys, with which a real set does what it would do with the
    iterable.
    """
    stored = as_storage(t, iterable)
    if isinstance(stored, SetValue):
        return stored.table()
    keys = list(keyed_of(t, iterable))
    if isinstance(iterable, DictView):
        return dict.fromkeys(keys).keys()
    return dict.fromkeys(keys) if iterable.cls is dict else keys


def snapshot(t: Tracer, iterable: Value) -> Value:
    """The same as a value: what a set was given, as it was then."""
    stored = as_storage(t, iterable)
    if isinstance(stored, SetValue):
        return stored.snapshot()
    if isinstance(iterable, DictView):
        return DictView(fresh_dict(t, iterable.over.items(t)), iterable.kind)
    items = [*keyed_of(t, iterable).values()]
    if iterable.cls is dict:
        return fresh_dict(t, ((item, NONE) for item in items))
    return ListValue(items)


def made_by(
    t: Tracer, function: Callable[..., Any], operands: Sequence[Value], items: Keyed
) -> SetValue:
    """The set that a function gives for operands, which holds these elements."""
    table = function(*(table_of(t, each) for each in operands))
    made = SetValue(items, frozenset if isinstance(table, frozenset) else set, shadow=table)
    made.origin = function, [snapshot(t, each) for each in operands], len(made.steps)
    made.guessed = any(getattr(each, "guessed", False) for each in operands)
    return made


def method_of(self: Value, name: str) -> Any:
    """The method of its built-in type."""
    return vars(frozenset if issubclass(self.cls, frozenset) else set)[name]


def ordered(t: Tracer, self: SetValue) -> list[Value]:
    """The elements in the order in which a real set shows them."""
    items, table = self.items, self.table()
    if len(items) > 1 and not all(is_const(item) for item in items.values()):
        t.graph_break("set-order", "the order of a set's elements hangs on their addresses")
    if len(items) > 1 and self.guessed:
        t.graph_break("set-order", "that of an outside set hangs on what was in it before")
    kind = frozenset if isinstance(table, frozenset) else set
    return [items[key] for key in storage(kind, table)]


handles(set.__new__)(lambda t, cls, /, *args, **kwargs: SetValue({}, cls.known()))


def update(t: Tracer, self: SetValue, iterable: Value) -> None:
    """``set.update`` with one iterable; what was added stays where the iterable raises."""
    t.touch(self)
    if isinstance(as_storage(t, iterable), (SetValue, DictValue)):
        apply(t, self, "update", unite, iterable)
        return
    for item in walk(t, iterable):
        self.add(t.key_of(item, set), item)


def walked_once(t: Tracer, iterable: Value) -> Value:
    """Iterators cannot be asked twice; their elements can."""
    if isinstance(as_storage(t, iterable), (SetValue, DictValue, DictView)):
        return iterable
    return ListValue(elements(t, iterable))


@handles(set.__init__)
def _init(t: Tracer, self: SetValue, iterable: Value | None = None, /) -> None:
    if self.items:
        _clear(t, self)
    if iterable is not None:
        update(t, self, iterable)


@handles(frozenset.__new__)
def _new_frozen(t: Tracer, cls: Value, iterable: Value | None = None, /) -> Value:
    if iterable is None:
        return SetValue({}, cls.known())
    if cls.known() is iterable.cls is frozenset:
        return iterable
    given = walked_once(t, iterable)
    made = made_by(t, frozenset, [given], {**keyed_of(t, given)})
    if cls.known() is not frozenset and made.origin is not None:
        made.cls, (_, operands, count) = cls.known(), made.origin
        made.origin = frozenset.__new__, [cls, *operands], count
    return made


handles(*methods("__len__", *_BOTH))(lambda t, self, /: Const(len(self.items)))


@handles(*methods("__contains__", *_BOTH))
def _contains(t: Tracer, self: SetValue, item: Value, /) -> Value:
    return Const(_element_key(t, item) in self.items)


def _element_key(t: Tracer, item: Value) -> Any:
    """A set is looked up in a set as the frozenset of its elements."""
    if isinstance(item, SetValue) and t.lookup(item.cls, "__hash__") is None:
        item = SetValue(item.items, frozenset)
    return t.key_of(item, set)


handles(*methods("__iter__", *_BOTH))(lambda t, self, /: SetIterator(self, ordered(t, self)))


@handles(set.add)
def add(t: Tracer, self: SetValue, item: Value, /) -> None:
    """``set.add``."""
    self.add(t.key_of(item, set), item)
    t.touch(self)


@handles(set.discard)
def _discard(t: Tracer, self: SetValue, item: Value, /) -> None:
    self.discard(_element_key(t, item))
    t.touch(self)


@handles(set.remove)
def _remove(t: Tracer, self: SetValue, item: Value, /) -> None:
    if not self.discard(_element_key(t, item)):
        raise_with(t, KeyError, item)
    t.touch(self)


@handles(set.pop)
def _pop(t: Tracer, self: SetValue, /) -> Value:
    if not self.items:
        t.raise_error(KeyError, "pop from an empty set")
    if self.real is not None:
        t.graph_break("set-order", "where an outside set stands after earlier pops is not known")
    ordered(t, self)
    item = self.items.pop(self.changing().pop())
    self.steps.append(("pop", None))
    t.touch(self)
    return item


@handles(set.clear)
def _clear(t: Tracer, self: SetValue, /) -> None:
    self.clear()
    t.touch(self)


@handles(*methods("copy", *_BOTH))
def _copy(t: Tracer, self: SetValue, /) -> Value:
    if self.cls is frozenset:
        return self
    return made_by(t, method_of(self, "copy"), [self], {**self.items})


def unite(left: Keyed, right: Keyed) -> Keyed:
    """All elements of both; the left ones stay where both have equal ones."""
    return {**left, **{key: item for key, item in right.items() if key not in left}}


def intersect(left: Keyed, right: Keyed) -> Keyed:
    """The elements of the smaller that the larger has too, as CPython walks them."""
    small, large = (right, left) if len(right) > len(left) else (left, right)
    return {key: item for key, item in small.items() if key in large}


def subtract(left: Keyed, right: Keyed) -> Keyed:
    """The elements of the left that the right has not."""
    return {key: item for key, item in left.items() if key not in right}


def differ(left: Keyed, right: Keyed) -> Keyed:
    """The elements that only one of the two has."""
    return {**subtract(left, right), **subtract(right, left)}


def apply(t: Tracer, self: SetValue, method: str, combine: Combine, other: Value) -> None:
    """Call a method that changes the set by what another iterable holds."""
    other = walked_once(t, other)
    given = snapshot(t, other)
    self.guessed = self.guessed or (isinstance(given, SetValue) and given.guessed)
    getattr(self.changing(), method)(table_of(t, other))
    self.items = combine(self.items, keyed_of(t, other))
    self.steps.append((method, given))


def _register_operators(symbol: str, inplace: str, combine: Combine) -> None:
    """``a | b``, ``a |= b`` or their kin, between sets only."""

    def combined(t: Tracer, left: Value, right: Value, /) -> Value:
        left, right = as_storage(t, left), as_storage(t, right)
        if not isinstance(left, SetValue) or not isinstance(right, SetValue):
            return not_implemented()
        method = method_of(left, f"__{symbol}__")
        return made_by(t, method, [left, right], combine(left.items, right.items))

    handles_both(symbol, combined, *_BOTH)

    @handles(*methods(f"__i{symbol}__", *_BOTH))
    def operate_inplace(t: Tracer, self: SetValue, other: Value, /) -> Value:
        if not isinstance(as_storage(t, other), SetValue):
            return not_implemented()
        apply(t, self, inplace, combine, other)
        t.touch(self)
        return self


def _register_methods(plain: str, inplace: str, combine: Combine) -> None:
    """``a.union(*others)`` and ``a.update(*others)``, or their kin, with any iterables."""

    def check_count(t: Tracer, name: str, self: SetValue, others: tuple[Value, ...]) -> None:
        if plain == "symmetric_difference" and len(others) != 1:
            bad_arguments(t, method_of(self, name), [self, *others], {})

    @handles(*methods(plain, *_BOTH))
    def method(t: Tracer, self: SetValue, /, *others: Value) -> SetValue:
        check_count(t, plain, self, others)
        walked = [walked_once(t, other) for other in others]
        keyed = functools.reduce(combine, (keyed_of(t, each) for each in walked), {**self.items})
        return made_by(t, method_of(self, plain), [self, *walked], keyed)

    @handles(*methods(inplace, *_BOTH))
    def method_inplace(t: Tracer, self: SetValue, /, *others: Value) -> None:
        check_count(t, inplace, self, others)
        t.touch(self)
        if plain == "intersection":  # all of it or nothing
            others = tuple(walked_once(t, other) for other in others)
        for other in others:
            if plain == "union":
                update(t, self, other)
            else:
                apply(t, self, inplace, combine, other)


def _register_operation(symbol: str, plain: str, inplace: str, combine: Combine) -> None:
    _register_operators(symbol, inplace, combine)
    _register_methods(plain, inplace, combine)


_register_operation("or", "union", "update", unite)
_register_operation("and", "intersection", "intersection_update", intersect)
_register_operation("sub", "difference", "difference_update", subtract)
_register_operation("xor", "symmetric_difference", "symmetric_difference_update", differ)

RELATIONS: dict[str, Callable[[set[Any], set[Any]], bool]] = {
    "__eq__": set.__eq__,
    "__ne__": set.__ne__,
    "__lt__": set.__lt__,
    "__le__": set.__le__,
    "__gt__": set.__gt__,
    "__ge__": set.__ge__,
    "issubset": set.__le__,
    "issuperset": set.__ge__,
    "isdisjoint": set.isdisjoint,
}

_UNTIL = {"issuperset": True, "isdisjoint": False}  # these stop at the first item that decides


def _all_are(t: Tracer, inside: bool, self: SetValue, iterator: Value) -> bool:
    while (item := advance(t, iterator)) is not None:
        if (t.key_of(item, set) in self.items) is not inside:
            return False
    return True


def _register_relation(name: str, method: bool) -> None:
    @handles(*methods(name, *_BOTH))
    def relate(t: Tracer, self: SetValue, other: Value, /) -> Value:
        if not method and not isinstance(as_storage(t, other), SetValue):
            return not_implemented()
        if name in _UNTIL and not isinstance(as_storage(t, other), SetValue):
            return Const(_all_are(t, _UNTIL[name], self, iterate(t, other)))
        return Const(RELATIONS[name](set(self.items), set(keyed_of(t, other))))


for _name in RELATIONS:
    _register_relation(_name, not _name.startswith("__"))


handles(frozenset.__hash__)(lambda t, self, /: Const(for_real(t, hash, [self.constant()], {})))
