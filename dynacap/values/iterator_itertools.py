"""Iterators of ``itertools``, each after the equivalent Python in its documentation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import field
from typing import Any, ClassVar

from dynacap.values.base import Const, Known, Value, fields, is_none
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.data_model import advance, binary_op, compare, is_same, iterate, truth
from dynacap.values.iterator import IteratorValue, advanced, made_at
from dynacap.values.recipe import Recipe
from dynacap.values.tracer import Tracer


@fields
class ChainIterator(IteratorValue):
    """``itertools.chain``: ``outer`` gives the iterables, ``inner`` walks the current one."""

    cls: ClassVar[type] = itertools.chain
    outer: Value
    inner: Value | None = None

    def step(self, t: Tracer) -> Value | None:
        while True:
            if self.inner is None:
                following = advance(t, self.outer)
                if following is None:
                    return None
                self.inner = iterate(t, following)
            found = advance(t, self.inner)
            if found is not None:
                return found
            self.inner = None

    def recipe(self, t: Tracer) -> Recipe:
        if self.inner is None:
            return itertools.chain.from_iterable, [self.outer]
        return chain_from, [self.inner, self.outer]


def chain_from(inner: Iterator[Any], outer: Iterator[Any]) -> Iterator[Any]:
    """A chain that is in the middle of one iterator, with others to come."""
    return itertools.chain.from_iterable(itertools.chain((inner,), outer))


@fields
class CountIterator(IteratorValue):
    """``itertools.count(at, step)``."""

    cls: ClassVar[type] = itertools.count
    at: Value
    by: Value

    def step(self, t: Tracer) -> Value | None:
        found = self.at
        self.at = binary_op(t, "+", found, self.by)
        return found

    def recipe(self, t: Tracer) -> Recipe:
        return itertools.count, [self.at, self.by]


@fields
class RepeatIterator(IteratorValue):
    """``itertools.repeat(item, times)``; ``left`` is None for ever."""

    cls: ClassVar[type] = itertools.repeat
    item: Value
    left: int | None

    def step(self, t: Tracer) -> Value | None:
        if self.left is None:
            return self.item
        if self.left <= 0:
            return None
        self.left -= 1
        return self.item

    def recipe(self, t: Tracer) -> Recipe:
        times = [] if self.left is None else [Const(self.left)]
        return itertools.repeat, [self.item, *times]


@fields
class CycleIterator(IteratorValue):
    """``itertools.cycle``: the first round is saved."""

    cls: ClassVar[type] = itertools.cycle
    origin: Value | None
    saved: list[Value] = field(default_factory=list)
    index: int = 0

    def step(self, t: Tracer) -> Value | None:
        if self.origin is not None:
            found = advance(t, self.origin)
            if found is not None:
                self.saved.append(found)
                return found
            self.origin = None
        if not self.saved:
            return None
        self.index = (self.index + 1) % len(self.saved)
        return self.saved[self.index - 1]

    def recipe(self, t: Tracer) -> Recipe:
        if self.origin is None:
            saved = ListValue(list(self.saved))
            return made_at, [Known(itertools.cycle), Const(self.index), saved]
        if not self.saved:
            return itertools.cycle, [self.origin]
        return cycle_from, [ListValue(list(self.saved)), self.origin]


def cycle_from(saved: list[Any], origin: Iterator[Any]) -> Iterator[Any]:
    """A cycle in its first round: what it gave already comes again after the rest."""
    return advanced(itertools.cycle(itertools.chain(saved, origin)), len(saved))


@fields
class SliceIterator(IteratorValue):
    """``itertools.islice``: ``at`` elements were taken; the next wanted is number ``start``."""

    cls: ClassVar[type] = itertools.islice
    origin: Value
    start: int
    stop: int | None
    step_by: int
    at: int = 0

    def step(self, t: Tracer) -> Value | None:
        stop = self.start + 1 if self.stop is None else self.stop
        limit = min(self.start, stop)
        while self.at < limit:
            if self._take(t) is None:
                return None
        if self.at >= stop:
            return None
        found = self._take(t)
        if found is not None:
            self.start += self.step_by
        return found

    def _take(self, t: Tracer) -> Value | None:
        found = advance(t, self.origin)
        if found is not None:
            self.at += 1
        return found

    def recipe(self, t: Tracer) -> Recipe:
        at = self.at
        stop = None if self.stop is None else max(self.stop - at, 0)
        start = max(self.start - at, 0)
        return itertools.islice, [self.origin, Const(start), Const(stop), Const(self.step_by)]


@fields
class LongestZipIterator(IteratorValue):
    """``itertools.zip_longest``: an origin that has ended is None."""

    cls: ClassVar[type] = itertools.zip_longest
    origins: list[Value | None]
    fill: Value

    def step(self, t: Tracer) -> Value | None:
        taken = []
        for index, origin in enumerate(self.origins):
            found = None if origin is None else advance(t, origin)
            if found is None:
                self.origins[index] = None
                if not any(self.origins):
                    return None
            taken.append(self.fill if found is None else found)
        return TupleValue(taken) if taken else None

    def recipe(self, t: Tracer) -> Recipe:
        return zip_longest_from, [self.fill, *(o or TupleValue([]) for o in self.origins)]


def zip_longest_from(fill: Any, *origins: Any) -> Iterator[Any]:
    """``itertools.zip_longest`` with its fill value first."""
    return itertools.zip_longest(*origins, fillvalue=fill)


@fields
class AccumulateIterator(IteratorValue):
    """``itertools.accumulate``; ``total`` is None before the first step."""

    cls: ClassVar[type] = itertools.accumulate
    final: ClassVar[bool] = False
    origin: Value
    function: Value
    initial: Value | None
    total: Value | None = None

    def step(self, t: Tracer) -> Value | None:
        if self.initial is not None:
            self.total, self.initial = self.initial, None
            return self.total
        found = advance(t, self.origin)
        if found is None:
            return None
        self.total = found if self.total is None else self._add(t, self.total, found)
        return self.total

    def _add(self, t: Tracer, total: Value, found: Value) -> Value:
        if is_none(self.function):
            return binary_op(t, "+", total, found)
        return t.call(self.function, [total, found])

    def recipe(self, t: Tracer) -> Recipe:
        if self.total is not None:
            return accumulate_from, [self.origin, self.function, self.total, Const(True)]
        initial = self.initial or Const(None)
        return accumulate_from, [self.origin, self.function, initial, Const(False)]


def accumulate_from(origin: Any, function: Any, initial: Any, given: bool) -> Iterator[Any]:
    """An accumulation with a total so far, which may have been given already."""
    if given:
        return advanced(itertools.accumulate(itertools.chain((initial,), origin), function), 1)
    return itertools.accumulate(origin, function, initial=initial)


@fields
class WhileIterator(IteratorValue):
    """``takewhile`` and ``dropwhile``; ``started`` once dropwhile lets everything through."""

    function: Value
    origin: Value
    cls: type
    started: bool = False

    def step(self, t: Tracer) -> Value | None:
        if self.cls is itertools.takewhile:
            found = advance(t, self.origin)
            if found is None or not truth(t, t.call(self.function, [found])):
                return None
            return found
        while (found := advance(t, self.origin)) is not None:
            if self.started or not truth(t, t.call(self.function, [found])):
                self.started = True
                return found
        return None

    def recipe(self, t: Tracer) -> Recipe:
        if self.started:
            return self.cls, [Known(_never), self.origin]
        return self.cls, [self.function, self.origin]


def _never(item: Any) -> bool:
    return False


@fields
class CompressIterator(IteratorValue):
    """``itertools.compress(data, selectors)``."""

    cls: ClassVar[type] = itertools.compress
    final: ClassVar[bool] = False
    data: Value
    selectors: Value

    def step(self, t: Tracer) -> Value | None:
        while (found := advance(t, self.data)) is not None:
            chosen = advance(t, self.selectors)
            if chosen is None:
                return None
            if truth(t, chosen):
                return found
        return None

    def recipe(self, t: Tracer) -> Recipe:
        return itertools.compress, [self.data, self.selectors]


@fields
class PairwiseIterator(IteratorValue):
    """``itertools.pairwise``; ``old`` is the last element seen."""

    cls: ClassVar[type] = itertools.pairwise
    origin: Value
    old: Value | None = None

    def step(self, t: Tracer) -> Value | None:
        old = self.old  # the origin may ask for pairs itself
        if old is None:
            old = self.old = advance(t, self.origin)
        found = None if old is None else advance(t, self.origin)
        if old is None or found is None:
            return None
        self.old = found
        return TupleValue([old, found])

    def recipe(self, t: Tracer) -> Recipe:
        if self.old is None:
            return itertools.pairwise, [self.origin]
        return pairwise_from, [self.old, self.origin]


def pairwise_from(old: Any, origin: Any) -> Iterator[Any]:
    """``itertools.pairwise`` that has seen one element."""
    return itertools.pairwise(itertools.chain((old,), origin))


@fields
class BatchedIterator(IteratorValue):
    """``itertools.batched`` (from Python 3.12 on): tuples of ``size``, the last may be shorter."""

    cls: ClassVar[type] = getattr(itertools, "batched", IteratorValue)
    origin: Value
    size: int

    def step(self, t: Tracer) -> Value | None:
        taken = list[Value]()
        self.done = True  # as it is once the origin fails
        while len(taken) < self.size and (found := advance(t, self.origin)) is not None:
            taken.append(found)
        self.done = not taken
        return TupleValue(taken) if taken else None

    def recipe(self, t: Tracer) -> Recipe:
        return self.cls, [self.origin, Const(self.size)]


@fields
class ComputedIterator(IteratorValue):
    """``product``, ``permutations`` and their kin: ``items`` is all that they will give."""

    cls: type
    operands: list[Value]
    items: list[list[Value]]
    index: int = 0

    def step(self, t: Tracer) -> Value | None:
        if self.index >= len(self.items):
            return None
        self.index += 1
        return TupleValue(list(self.items[self.index - 1]))

    def recipe(self, t: Tracer) -> Recipe:
        return made_at, [Known(self.cls), Const(self.index), *self.operands]


@fields
class TeeIterator(IteratorValue):
    """One branch of ``itertools.tee``: all branches share ``seen`` and the origin."""

    cls: ClassVar[type] = type(itertools.tee(())[0])
    final: ClassVar[bool] = False
    origin: Value
    seen: list[Value]
    index: int = 0

    def step(self, t: Tracer) -> Value | None:
        if self.index == len(self.seen):
            found = advance(t, self.origin)
            if found is None:
                return None
            self.seen.append(found)
        self.index += 1
        return self.seen[self.index - 1]


@fields
class GroupIterator(IteratorValue):
    """``itertools.groupby``: the state is that of the equivalent Python in its documentation."""

    cls: ClassVar[type] = itertools.groupby
    origin: Value
    rule: Value
    current: Value | None = None
    current_key: Value | None = None
    target_key: Value | None = None
    group: GroupMember | None = None

    def step(self, t: Tracer) -> Value | None:
        self.group = None
        while self.current_key is None or self.in_group(t):
            if not self.take(t):
                return None
        key = self.current_key
        self.target_key = key
        self.group = GroupMember(self)
        return TupleValue([key, self.group])

    def in_group(self, t: Tracer) -> bool:
        """Whether the current element still belongs to the group asked for last."""
        current, target = self.current_key, self.target_key
        if target is None or current is None:
            return False
        return is_same(t, current, target) or truth(t, compare(t, "==", current, target))

    def take(self, t: Tracer) -> bool:
        """Move on by one element; False at the end."""
        found = advance(t, self.origin)
        if found is None:
            return False
        self.current = found
        self.current_key = found if is_none(self.rule) else t.call(self.rule, [found])
        return True


@fields
class GroupMember(IteratorValue):
    """The elements of one group; it ends when its parent moves on."""

    cls: ClassVar[type] = type(next(itertools.groupby("a"))[1])
    final: ClassVar[bool] = False
    parent: GroupIterator

    def step(self, t: Tracer) -> Value | None:
        parent = self.parent
        if parent.group is not self:
            return None
        if parent.current is None and not parent.take(t):
            return None
        if not parent.in_group(t):
            return None
        found, parent.current = parent.current, None
        return found
