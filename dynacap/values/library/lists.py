"""Methods that change a list, and what makes one."""

from __future__ import annotations

from collections import deque
from typing import Any

from dynacap.values.base import Const, Value
from dynacap.values.container import ListValue
from dynacap.values.data_model import advance, as_sequence, compare, iterate, truth, unpack
from dynacap.values.data_model.items import ask_length
from dynacap.values.iterator import ReversedListIterator
from dynacap.values.library.handlers import giving_self, handles, is_none
from dynacap.values.library.sequences import find
from dynacap.values.stand_in import run
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

handles(list.__new__, deque.__new__)(lambda t, cls, /, *args, **kwargs: ListValue([], cls.known()))


@handles(list.__init__)
def _init(t: Tracer, self: ListValue, iterable: Value | None = None, /) -> None:
    if self.items:
        t.touch(self)
        self.items.clear()
    if iterable is not None:
        extend(t, self, iterable)


@handles(list.append)
def append(t: Tracer, self: ListValue, item: Value, /) -> None:
    """``list.append``."""
    self.extend([item])
    t.touch(self)


@handles(list.extend)
def extend(t: Tracer, self: ListValue, iterable: Value, /) -> None:
    """``list.extend``: element by element, since the iterable may look at the list."""
    t.touch(self)  # first: the iterable may raise in the middle
    if iterable is self:
        self.items.extend(list(self.items))
    else:
        _extend_from(t, self, iterable)


def _extend_from(t: Tracer, self: ListValue, iterable: Value) -> None:
    iterator = iterate(t, iterable)
    ask_length(t, iterable)
    while (item := advance(t, iterator)) is not None:
        self.extend([item])


handles(list.__iadd__)(giving_self(extend))


@handles(list.remove)
def _remove(t: Tracer, self: ListValue, item: Value, /) -> None:
    found = find(t, self, item, 0, len(self.items))
    if found is None:
        t.raise_real(error_of(list.remove, [], None))
    del self.items[found]
    t.touch(self)


@handles(list.__setitem__)
def _setitem(t: Tracer, self: ListValue, key: Value, value: Value, /) -> None:
    given = as_sequence(t, value) if key.cls is slice else value
    run(t, lambda at: self.items.__setitem__(at, given), [key], {})
    t.touch(self)


handles(list.__reversed__)(lambda t, self, /: ReversedListIterator(self, len(self.items) - 1))


class _Ranked:
    """An element under sorting: ``<`` asks the traced program, so the order of questions is
    CPython's own.
    """

    __slots__ = ("item", "key", "t")

    def __init__(self, t: Tracer, item: Value, key: Value) -> None:
        self.t = t
        self.item = item
        self.key = key

    def __lt__(self, other: _Ranked) -> bool:
        return truth(self.t, compare(self.t, "<", self.key, other.key))


def _ranked(t: Tracer, items: list[Value], key: Value) -> list[Any]:
    return [_Ranked(t, item, item if is_none(key) else t.call(key, [item])) for item in items]


@handles(list.sort)
def _sort(
    t: Tracer, self: ListValue, *, key: Value = Const(None), reverse: Value = Const(False)
) -> None:
    """Meanwhile the list is empty; where a comparison raises, it stays half sorted."""
    t.touch(self)
    order = [t.force_item(self.items, index) for index in range(len(self.items))]
    self.items.clear()
    try:
        ranked = _ranked(t, order, key)
        try:
            ranked.sort(reverse=truth(t, reverse))
        finally:
            order = [one.item for one in ranked]
    finally:
        modified = bool(self.items)
        self.items[:] = order
    if modified:
        t.raise_error(ValueError, "list modified during sort")


@handles(sorted)
def _sorted(
    t: Tracer, iterable: Value, /, *, key: Value = Const(None), reverse: Value = Const(False)
) -> Value:
    ranked = _ranked(t, unpack(t, iterable), key)
    ranked.sort(reverse=truth(t, reverse))
    return ListValue([one.item for one in ranked])
