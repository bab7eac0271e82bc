"""What lists, tuples and deques share: items, slices, membership, comparison, + and *."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

from dynacap.values.base import Const, Known, Value
from dynacap.values.container import ListValue, SliceValue, TupleValue
from dynacap.values.data_model import compare, is_same, truth
from dynacap.values.data_model.operators import COMPARE
from dynacap.values.data_model.refusals import like
from dynacap.values.iterator import DequeIterator, ListIterator
from dynacap.values.library.handlers import (
    NONE,
    as_storage,
    handles,
    index_of,
    methods,
    not_implemented,
)
from dynacap.values.stand_in import run, shown
from dynacap.values.symbol import SymbolValue
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

Sequence = ListValue | TupleValue
_ALL = (list, tuple, deque)
_NO_BOUND = "slice indices must be integers or have an __index__ method"


def same_or_equal(t: Tracer, left: Value, right: Value) -> bool:
    """``left is right or left == right``, as containers compare their elements."""
    if type(left) is SymbolValue or type(right) is SymbolValue:
        return truth(t, compare(t, "==", left, right))  # whether they are one object cannot matter
    return is_same(t, left, right) or truth(t, compare(t, "==", left, right))


def new_sequence(items: list[Value], like: Sequence) -> Sequence:
    """A new exact tuple, list or deque, of the same kind as another."""
    if isinstance(like, TupleValue):
        return TupleValue(items)
    if issubclass(like.cls, deque):
        return ListValue(items, deque, maxlen=like.maxlen)
    return ListValue(items)


handles(*methods("__len__", *_ALL))(lambda t, self, /: Const(len(self.items)))


@handles(*methods("__getitem__", list, tuple))
def _getitem(t: Tracer, self: Sequence, key: Value, /) -> Value:
    size = len(self.items)
    if type(key) is Const and type(key.value) is int and -size <= key.value < size:
        return t.force_item(self.items, key.value)
    held: Any = tuple(self.items) if isinstance(self, TupleValue) else self.items
    found = run(t, held.__getitem__, [key], {})
    if isinstance(found, Value):
        return t.force(found)
    return self if found is held and self.cls is tuple else new_sequence([*found], self)


@handles(*methods("__contains__", *_ALL))
def _contains(t: Tracer, self: Sequence, item: Value, /) -> Value:
    return Const(find(t, self, item, 0, sys.maxsize) is not None)


def find(t: Tracer, self: Sequence, item: Value, start: int, stop: int) -> int | None:
    """The first index at which an element is or equals ``item``."""
    index, size = start, len(self.items)
    while index < min(stop, len(self.items)):
        same = same_or_equal(t, t.force_item(self.items, index), item)
        if len(self.items) != size and issubclass(self.cls, deque):
            t.raise_error(RuntimeError, "deque mutated during iteration")
        if same:
            return index
        index += 1
    return None


@handles(*methods("index", *_ALL))
def _index(
    t: Tracer, self: Sequence, item: Value, start: Value | None = None, stop: Value | None = None, /
) -> Value:
    size = len(self.items)
    low = 0 if start is None else index_of(t, start, _NO_BOUND)
    high = sys.maxsize if stop is None else index_of(t, stop, _NO_BOUND)
    low = max(low + size, 0) if low < 0 else low
    high = high + size if high < 0 else high
    found = find(t, self, item, low, high)
    if found is None:
        kind = next(kind for kind in _ALL if issubclass(self.cls, kind))
        run(t, lambda: kind().index(shown(t, item)), [], {})  # says that it is not there
    return Const(found)


@handles(*methods("count", *_ALL))
def _count(t: Tracer, self: Sequence, item: Value, /) -> Value:
    count = 0
    found = find(t, self, item, 0, sys.maxsize)
    while found is not None:
        count += 1
        found = find(t, self, item, found + 1, sys.maxsize)
    return Const(count)


def of_subclass(t: Tracer, self: ListValue, method: Any, *operands: Value) -> Value:
    """A deque's subclass copies itself as its class says; the rest is done to the copy."""
    most = [] if self.maxlen is None else [Const(self.maxlen)]
    made = t.call(t.class_value(self.cls), [self, *most])
    if not issubclass(made.cls, deque):
        t.raise_error(TypeError, f"{self.title}() must return a deque, not {made.title}")
    return t.call(Known(method), [made, *operands]) if operands else made


def _register_comparison(name: str, symbol: str) -> None:
    @handles(*methods(name, *_ALL))
    def compare_sequences(t: Tracer, self: Sequence, other: Value, /) -> Value:
        other = as_storage(t, other)
        if not isinstance(other, (ListValue, TupleValue)) or not _same_kind(self, other):
            return not_implemented()
        return _compare(t, symbol, self, other)


def _same_kind(left: Sequence, right: Sequence) -> bool:
    return any(issubclass(left.cls, kind) and issubclass(right.cls, kind) for kind in _ALL)


def _compare(t: Tracer, symbol: str, left: Sequence, right: Sequence) -> Value:
    """The first elements that differ decide; if there are none, the lengths do."""
    same_length = len(left.items) == len(right.items)
    if symbol in ("==", "!=") and isinstance(left, ListValue) and not same_length:
        return Const(symbol == "!=")
    index = 0
    while index < min(len(left.items), len(right.items)):
        a, b = t.force_item(left.items, index), t.force_item(right.items, index)
        if not same_or_equal(t, a, b):
            break
        index += 1
    if index < min(len(left.items), len(right.items)):  # still: it may have taken some away
        return Const(symbol == "!=") if symbol in ("==", "!=") else compare(t, symbol, a, b)
    return compare(t, symbol, Const(len(left.items)), Const(len(right.items)))


for _symbol, (_name, *_) in COMPARE.items():
    _register_comparison(_name, _symbol)


@handles(*methods("__add__", *_ALL))
def _add(t: Tracer, self: Sequence, other: Value, /) -> Value:
    kind = next(kind for kind in _ALL if issubclass(self.cls, kind))
    other = as_storage(t, other)
    if not isinstance(other, (ListValue, TupleValue)) or not issubclass(other.cls, kind):
        t.raise_real(error_of(vars(kind)["__add__"], kind(), like(other)))
    if kind is deque and self.cls is not deque and isinstance(self, ListValue):
        return of_subclass(t, self, deque.__iadd__, other)
    if kind is tuple and self.cls is other.cls is tuple and not (self.items and other.items):
        return self if self.items else other
    return new_sequence(bounded(self, self.items + other.items), self)


def bounded(self: Sequence, items: list[Value]) -> list[Value]:
    """The items that a deque with a maximal length keeps: the last ones."""
    return [*deque(items, self.maxlen)] if isinstance(self, ListValue) else items


handles(list.__iter__, tuple.__iter__)(lambda t, self, /: ListIterator(self))
handles(deque.__iter__)(lambda t, self, /: DequeIterator(self, self.state))
handles(deque.__reversed__)(lambda t, self, /: DequeIterator(self, self.state, backwards=True))


@handles(slice)
def _slice(t: Tracer, first: Value, second: Value | None = None, step: Value = NONE, /) -> Value:
    return SliceValue((NONE, first, step) if second is None else (first, second, step))


def _register_bound(place: int, name: str) -> None:
    @handles(vars(slice)[name])
    def bound(t: Tracer, self: Value, /) -> Value:
        if isinstance(self, SliceValue):
            return self.parts[place]
        return Const(getattr(self.constant(), name))


for _place, _name in enumerate(("start", "stop", "step")):
    _register_bound(_place, _name)


handles(slice.__new__)(lambda t, cls, /, *bounds, **kwargs: t.call(cls, list(bounds), kwargs))
