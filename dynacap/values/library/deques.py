"""``collections.deque``."""

from __future__ import annotations

from collections import deque

from dynacap.values.base import Const, UserRaise, Value
from dynacap.values.container import ListValue
from dynacap.values.data_model import walk
from dynacap.values.iterator_builtins import elements
from dynacap.values.library.handlers import giving_self, handles, index_of, is_none
from dynacap.values.library.sequences import bounded, find
from dynacap.values.stand_in import run, shown
from dynacap.values.tracer import Tracer


@handles(deque.__init__)
def _init(
    t: Tracer, self: ListValue, iterable: Value | None = None, maxlen: Value | None = None
) -> None:
    if maxlen is not None and not is_none(maxlen):
        self.maxlen = index_of(t, maxlen)
        if self.maxlen < 0:
            t.raise_error(ValueError, "maxlen must be non-negative")
    items = [] if iterable is None else elements(t, iterable)
    _fill(t, self, bounded(self, items))


def _fill(t: Tracer, self: ListValue, items: list[Value]) -> None:
    """Give it other elements, which ends its iterators."""
    self.items[:] = items
    self.state += 1
    t.touch(self)


@handles(deque.extend)
def extend(t: Tracer, self: ListValue, iterable: Value, /) -> None:
    """``deque.extend``."""
    for item in walk(t, ListValue(list(self.items)) if iterable is self else iterable):
        _fill(t, self, bounded(self, [*self.items, item]))


handles(deque.__iadd__)(giving_self(extend))


@handles(deque.extendleft)
def _extendleft(t: Tracer, self: ListValue, iterable: Value, /) -> None:
    for item in elements(t, iterable):
        _fill(t, self, [item, *self.items][: self.maxlen])


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
        run(t, lambda: deque().remove(shown(t, item)), [], {})  # says that it is not there
    assert found is not None
    _fill(t, self, [*self.items[:found], *self.items[found + 1 :]])


handles(deque.maxlen)(lambda t, self, /: Const(self.maxlen))
