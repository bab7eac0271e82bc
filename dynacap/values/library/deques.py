"""``collections.deque``."""

from __future__ import annotations

from collections import deque

from dynacap.values.base import Const, UserRaise, Value
from dynacap.values.container import ListValue
from dynacap.values.data_model import advance, iterate
from dynacap.values.iterator_builtins import elements
from dynacap.values.library.handlers import handles, index_of, is_none
from dynacap.values.library.sequences import bounded, find, new_sequence, position
from dynacap.values.stand_in import shown
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of


@handles(deque.__new__)
def _new(t: Tracer, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
    return ListValue([], cls.known())


@handles(deque.__init__)
def _init(
    t: Tracer, self: ListValue, iterable: Value | None = None, maxlen: Value | None = None
) -> None:
    if maxlen is not None and not is_none(maxlen):
        self.maxlen = index_of(t, maxlen)
        if self.maxlen < 0:
            t.raise_error(ValueError, "maxlen must be non-negative")
    items = [] if iterable is None else elements(t, iterable)
    self.items[:] = bounded(self, items)
    t.touch(self)


@handles(deque.append)
def _append(t: Tracer, self: ListValue, item: Value, /) -> None:
    self.items.append(item)
    self.items[:] = bounded(self, self.items)
    t.touch(self)


@handles(deque.appendleft)
def _appendleft(t: Tracer, self: ListValue, item: Value, /) -> None:
    self.items.insert(0, item)
    if self.maxlen is not None:
        del self.items[self.maxlen :]
    t.touch(self)


@handles(deque.extend)
def extend(t: Tracer, self: ListValue, iterable: Value, /) -> None:
    """``deque.extend``."""
    if iterable is self:
        iterable = ListValue(list(self.items))
    iterator = iterate(t, iterable)
    while (item := advance(t, iterator)) is not None:
        _append(t, self, item)
    t.touch(self)


@handles(deque.__iadd__)
def _iadd(t: Tracer, self: ListValue, iterable: Value, /) -> Value:
    extend(t, self, iterable)
    return self


@handles(deque.extendleft)
def _extendleft(t: Tracer, self: ListValue, iterable: Value, /) -> None:
    for item in elements(t, iterable):
        _appendleft(t, self, item)


@handles(deque.pop)
def _pop(t: Tracer, self: ListValue, /) -> Value:
    return _take(t, self, -1)


@handles(deque.popleft)
def _popleft(t: Tracer, self: ListValue, /) -> Value:
    return _take(t, self, 0)


def _take(t: Tracer, self: ListValue, at: int) -> Value:
    if not self.items:
        t.raise_error(IndexError, "pop from an empty deque")
    found = t.force_item(self.items, at)
    del self.items[at]
    t.touch(self)
    return found


@handles(deque.remove)
def _remove(t: Tracer, self: ListValue, item: Value, /) -> None:
    size = len(self.items)
    try:
        found = find(t, self, item, 0, size)
    except UserRaise:
        if len(self.items) != size:
            t.raise_error(IndexError, "deque mutated during remove().")
        raise
    if found is None:
        t.raise_real(error_of(deque.remove, deque(), shown(t, item)))
    del self.items[found]
    t.touch(self)


@handles(deque.clear)
def _clear(t: Tracer, self: ListValue, /) -> None:
    self.items.clear()
    t.touch(self)


@handles(deque.reverse)
def _reverse(t: Tracer, self: ListValue, /) -> None:
    self.items.reverse()
    t.touch(self)


@handles(deque.rotate)
def _rotate(t: Tracer, self: ListValue, steps: Value = Const(1), /) -> None:
    turned = deque(self.items)
    turned.rotate(index_of(t, steps))
    self.items[:] = turned
    t.touch(self)


@handles(deque.insert)
def _insert(t: Tracer, self: ListValue, index: Value, item: Value, /) -> None:
    if self.maxlen is not None and len(self.items) >= self.maxlen:
        t.raise_error(IndexError, "deque already at its maximum size")
    self.items.insert(index_of(t, index), item)
    t.touch(self)


@handles(deque.copy, deque.__copy__)
def _copy(t: Tracer, self: ListValue, /) -> Value:
    return new_sequence(list(self.items), self)


@handles(deque.__getitem__)
def _getitem(t: Tracer, self: ListValue, key: Value, /) -> Value:
    return t.force_item(self.items, _position(t, self, key))


@handles(deque.__setitem__)
def _setitem(t: Tracer, self: ListValue, key: Value, value: Value, /) -> None:
    self.items[_position(t, self, key)] = value
    t.touch(self)


@handles(deque.__delitem__)
def _delitem(t: Tracer, self: ListValue, key: Value, /) -> None:
    del self.items[_position(t, self, key)]
    t.touch(self)


def _position(t: Tracer, self: ListValue, key: Value) -> int:
    return position(t, self, key, "sequence", "deque index out of range")


@handles(deque.maxlen)
def _maxlen(t: Tracer, self: ListValue, /) -> Value:
    return Const(self.maxlen)
