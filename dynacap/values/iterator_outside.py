"""Iterators from outside, or from before a graph break: read ahead, and advanced after the graph.

What comes next is counted from where the iterator stands, so that a piece of a loop is captured
once for all its rounds (:mod:`dynacap.guards.iterators` reads it).  An iterator over others, such
as ``zip``, has no state but theirs, save for the number of ``enumerate``.
"""

from __future__ import annotations

import sys
from dataclasses import field
from typing import Any, ClassVar

from dynacap.guards import iterators as reading
from dynacap.guards.raw import MISSING
from dynacap.guards.source import Source
from dynacap.values.base import Value, fields
from dynacap.values.build import build_object, builds, guard_type
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.data_model import advance
from dynacap.values.iterator import IteratorValue
from dynacap.values.iterator_builtins import FilterIterator, MapIterator, ZipIterator
from dynacap.values.tracer import Tracer

MOST_TAKEN = 256  # in one region; each has guards of its own


@fields
class OutsideIterator(IteratorValue):
    """A real iterator, and by how many steps it is to be advanced once the graph has run.

    ``by_others``: how many of them another iterator takes that is advanced itself; ``missed``: how
    often there was nothing more.
    """

    source: Source = field(kw_only=True)
    cls: type
    real: Any
    taken: int = field(default=0, kw_only=True)
    by_others: int = field(default=0, kw_only=True)
    missed: int = field(default=0, kw_only=True)

    def release(self) -> None:
        self.real = None

    def place(self, t: Tracer) -> int | None:
        """Where it stands in the end, if the region has changed what it walks."""
        return None

    def _count(self, t: Tracer, found: Value | None) -> None:
        t.touch(self)
        if found is None:
            self.missed += 1
        else:
            self.taken += 1


@fields
class SimpleIterator(OutsideIterator):
    """Over a container of a builtin type; ``over`` is its mirror, once needed, if it may change."""

    ahead: reading.Ahead
    over: Value | None = None

    def step(self, t: Tracer) -> Value | None:
        held = reading.container(self.real) if self.over is None else MISSING
        if held is not MISSING:
            self.over = t.wrap(held, reading.Container(self.source))
        changed = self.over is not None and self.over in t.touched
        found = self._from_changed(t) if changed else self._from_outside(t)
        self._count(t, found)
        return found

    def place(self, t: Tracer) -> int | None:
        if not isinstance(self.over, ListValue) or self.over not in t.touched:
            return None
        _, at, stride = self.ahead
        t.guard("ConstEq", reading.Position(self.source), at)
        if self.done:  # it ended before, and stays so
            return sys.maxsize if stride > 0 else -1
        return at + self.taken * stride

    def _from_outside(self, t: Tracer) -> Value | None:
        if self.taken >= MOST_TAKEN:
            t.graph_break("outside-iterator", f"{self.taken} elements of one made elsewhere")
        found = reading.item_of(self.ahead, self.taken)
        t.guard(
            "ItemsAhead", self.source, self.taken + (found is not MISSING), found is not MISSING
        )
        return (
            None if found is MISSING else t.wrap(found, reading.NextItem(self.source, self.taken))
        )

    def _from_changed(self, t: Tracer) -> Value | None:
        """The region has changed the list: now it matters where in it the iterator stands."""
        _, at, stride = self.ahead
        if not isinstance(self.over, ListValue):
            t.graph_break("outside-iterator", f"what a {self.cls.__name__} walks has changed")
        t.guard("ConstEq", reading.Position(self.source), at)
        at += self.taken * stride
        inside = 0 <= at < len(self.over.items)
        return t.force_item(self.over.items, at) if inside else None


@fields
class OutsideEnumerate(OutsideIterator):
    """``enumerate``: advancing it advances what it counts."""

    final: ClassVar[bool] = False
    origin: Value
    leaves: list[OutsideIterator]

    def step(self, t: Tracer) -> Value | None:
        before = [leaf.taken for leaf in self.leaves]
        found = advance(t, self.origin)
        for leaf, taken in zip(self.leaves, before, strict=True):
            leaf.by_others += leaf.taken - taken
        self.done = found is None
        t.touch(self)
        if found is None:
            return None
        number = t.wrap(
            self.real.__reduce__()[1][1] + self.taken, reading.NextNumber(self.source, self.taken)
        )
        self.taken += 1
        return TupleValue([number, found])


def _leaves(value: Value) -> list[OutsideIterator] | None:
    """The iterators that an iterator advances, if real steps of it run none of the user's code."""
    if isinstance(value, OutsideEnumerate):
        return [value, *value.leaves]
    if isinstance(value, SimpleIterator):
        return [value]
    if not isinstance(value, ZipIterator):
        return None
    found: list[OutsideIterator] = []
    for origin in value.origins:
        below = _leaves(origin)
        if below is None:
            return None
        found += below
    return found


@builds(*reading.SIMPLE)
def _build_simple(t: Tracer, real: Any, source: Source | None) -> Value:
    ahead = reading.ahead(real)
    if source is None or ahead is None:
        return build_object(t, real, source)
    guard_type(t, real, source)
    return SimpleIterator(type(real), real, ahead, source=source)


@builds(*reading.COMPOSITE)
def _build_composite(t: Tracer, real: Any, source: Source | None) -> Value:
    if source is None:
        return build_object(t, real, source)
    guard_type(t, real, source)
    count, strict = shape = reading.shape(real)
    parts = [
        t.wrap(reading.part(real, index), reading.IteratorPart(source, index))
        for index in range(1 if type(real) is enumerate else count)
    ]
    if type(real) is enumerate:
        leaves = _leaves(parts[0])
        if leaves is None:
            return build_object(t, real, source)
        return OutsideEnumerate(enumerate, real, parts[0], leaves, source=source)
    t.guard("ConstEq", reading.IteratorShape(source), shape)
    if type(real) is zip:
        return ZipIterator(parts, strict, source=source)
    if type(real) is map:
        return MapIterator(parts[0], parts[1:], source=source)
    return FilterIterator(parts[0], parts[1], source=source)
