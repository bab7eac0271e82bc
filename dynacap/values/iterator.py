"""Iterators made inside: each knows its position and how to make it again.

``recipe`` is for generated code: a callable and the values to call it with, which give an
iterator of the same type in the same state.
"""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from types import FunctionType
from typing import Any, ClassVar

from dynacap.values.base import Const, Known, UserRaise, Value, fields, or_none
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue
from dynacap.values.recipe import Rebuildable, Recipe, Writer
from dynacap.values.tracer import Tracer

_KINDS = ("keys", "values", "items")
_FEW_KEYS = 5  # for which the smallest dict has places, those that are gone among them


@fields
class IteratorValue(Rebuildable):
    """An iterator with a position of its own; ``next`` gives None at the end.

    ``final``: once exhausted it stays so, whatever becomes of what it walks.
    """

    final: ClassVar[bool] = True
    done: bool = field(default=False, kw_only=True)

    def next(self, t: Tracer) -> Value | None:
        """The next element, or None once there is none."""
        if self.done:
            return None
        try:
            found = self.step(t)
        except UserRaise as raised:
            if not issubclass(raised.exc.cls, StopIteration):
                raise
            return None  # a function that the iterator called ended it for now
        if found is None and self.final:
            self.done = True
        return found

    def step(self, t: Tracer) -> Value | None:
        """The next element, or None."""
        raise NotImplementedError

    def moved(self, t: Tracer) -> bool:
        """Whether elements came or went since it was made, of what does not allow it."""
        return False

    def rebuild(self, writer: Writer) -> str:
        if self.done and self.cls in ENDED:
            return f"{writer.helper(ended)}({writer.exprs([Known(self.cls)])})"
        if not self.done and self.moved(writer.machine):
            writer.machine.graph_break("cannot-rebuild", "an iterator of what has changed since")
        text = Rebuildable.rebuild(self, writer)
        if writer.late:
            writer.machine.graph_break("user-hash", "an iterator over what is filled later")
        return text


def iterator_at(over: Iterable[Any], index: int, make: Any) -> Iterator[Any]:
    """What ``iter`` or ``reversed`` makes of a sequence, moved to a position."""
    iterator: Iterator[Any] = make(over)
    iterator.__setstate__(index)  # type: ignore[attr-defined]
    return iterator


def advanced(iterator: Iterator[Any], steps: int) -> Iterator[Any]:
    """An iterator after so many steps, or at its end."""
    for _ in range(steps):
        next(iterator, None)
    return iterator


def made_at(make: Callable[..., Iterator[Any]], steps: int, *operands: Any) -> Iterator[Any]:
    """The iterator that a call gives, after so many steps."""
    return advanced(make(*operands), steps)


def walk_dict(over: dict[Any, Any], kind: str, backwards: bool) -> Iterator[Any]:
    """A dict's iterator over keys, values or items, in either direction."""
    view = getattr(over, kind)()
    return reversed(view) if backwards else iter(view)


class _Empty:
    """A sequence without ``__iter__`` that holds nothing."""

    def __getitem__(self, index: int) -> Any:
        raise IndexError(index)


_EMPTIES: tuple[Any, ...] = ([], (), "", b"", set(), _Empty())
_MAKERS: tuple[Any, ...] = (
    *(functools.partial(iter, empty) for empty in _EMPTIES),
    *(functools.partial(walk_dict, {}, kind, back) for kind in _KINDS for back in (False, True)),
    lambda: walk_dict(OrderedDict(), "keys", False), lambda: reversed([]), lambda: iter(int, 0),
    itertools.chain, lambda: itertools.islice((), 0), lambda: itertools.pairwise(()),
    lambda: reversed(()),
    lambda: itertools.dropwhile(bool, ()), lambda: itertools.takewhile(bool, ()),
    lambda: getattr(itertools, "batched", itertools.islice)((), 1),
)  # fmt: skip
ENDED: dict[type, Callable[[], Iterator[Any]]] = {type(make()): make for make in _MAKERS}


def ended(cls: type) -> Iterator[Any]:
    """An iterator of that type at its end, which has let go of what it walked."""
    iterator = ENDED[cls]()
    next(iterator, None)
    return iterator


@fields
class IndexIterator(IteratorValue):
    """Walks what it is ``over`` by an index, to which CPython's own can be set."""

    make: ClassVar[Any] = iter
    over: Any
    index: int = 0

    def recipe(self, t: Tracer) -> Recipe:
        return iterator_at, [self.over, Const(self.index), Known(self.make)]


class ListIterator(IndexIterator):
    """Walks a tuple, or a list as it is at each step, as CPython does."""

    __slots__ = ()

    @property
    def cls(self) -> type:
        return type(iter(() if isinstance(self.over, TupleValue) else []))

    def step(self, t: Tracer) -> Value | None:
        items = self.over.items
        if self.index >= len(items):
            return None
        self.index += 1
        return t.force_item(items, self.index - 1)


class ReversedListIterator(IndexIterator):
    """``reversed(list)``; ``index`` is where the next element lies."""

    __slots__ = ()
    cls: ClassVar[type] = type(reversed([]))
    make: ClassVar[Any] = reversed

    def step(self, t: Tracer) -> Value | None:
        if not 0 <= self.index < len(self.over.items):
            return None
        self.index -= 1
        return t.force_item(self.over.items, self.index + 1)


class ConstIterator(IndexIterator):
    """Walks a range, a string or bytes."""

    __slots__ = ()

    @property
    def cls(self) -> type:
        return type(iter(self.over.value))

    def step(self, t: Tracer) -> Value | None:
        try:  # a range may be longer than len() can say
            found = self.over.value[self.index]
        except IndexError:
            return None
        self.index += 1
        return t.wrap(found, None)


@fields
class DictIterator(IteratorValue):
    """Walks a dict's keys, values or items; a change of size meanwhile is an error."""

    over: DictValue
    kind: str
    keys: list[Any]
    backwards: bool = False
    index: int = 0
    size: int = 0
    seen: tuple[int, int] = (0, 0)  # gone from the dict, and effects, up to which keys are known

    @property
    def cls(self) -> type:
        empty = OrderedDict[Any, Any]() if issubclass(self.over.cls, OrderedDict) else {}
        return type(walk_dict(empty, self.kind, self.backwards))

    def step(self, t: Tracer) -> Value | None:
        ordered, now = issubclass(self.over.cls, OrderedDict), self.over.keys(t)
        if ordered and self.index < self.size and self.moved(t):
            self._expect_places(t, not self.over.swept)
            self.done = True
            t.raise_error(RuntimeError, "OrderedDict mutated during iteration")
        if not ordered and len(now) != self.size:
            self.size = -1  # and says so again and again
            t.raise_error(RuntimeError, "dictionary changed size during iteration")
        if not ordered and self.seen[0] != self.over.gone:
            self._look_again(t, now)
        if self.index >= len(self.keys):
            return None
        if self.index >= self.size:
            self.done = True
            t.raise_error(RuntimeError, "dictionary keys changed during iteration")
        self.index += 1
        return dict_entry(t, self.over, self.keys[self.index - 1], self.kind)

    def moved(self, t: Tracer) -> bool:
        now = self.over.keys(t)[:: -1 if self.backwards else 1]
        return self.seen[0] != self.over.gone or now != self.keys

    def _expect_places(self, t: Tracer, known: bool) -> None:
        if not known:
            t.graph_break("cannot-rebuild", "where the keys of a dict came to lie is not known")

    def _look_again(self, t: Tracer, now: list[Any]) -> None:
        """Keys have gone, and others, perhaps the same, have come behind the rest."""
        grows = self.over.real is not None or len(now) + self.over.gone > _FEW_KEYS
        self._expect_places(t, not (grows or self.over.swept))
        past, fresh = self.keys[: self.index], self.over.fresh
        anew = [key for key in now if fresh.get(key, -1) >= self.seen[1]]
        kept = [key for key in self.keys[self.index :] if key in now and key not in anew]
        self.keys = [*past, *kept, *([] if self.backwards else anew)]
        self.seen = self.over.gone, t.effects

    def recipe(self, t: Tracer) -> Recipe:
        how = [Const(self.kind), Const(self.backwards)]
        return made_at, [Known(walk_dict), Const(self.index), self.over, *how]


def walks(t: Tracer, over: DictValue, kind: str, backwards: bool = False) -> DictIterator:
    """The iterator over what a dict holds now."""
    keys = over.keys(t)[:: -1 if backwards else 1]
    return DictIterator(over, kind, keys, backwards, 0, len(keys), (over.gone, t.effects))


def dict_entry(t: Tracer, over: DictValue, key: object, kind: str) -> Value:
    """A dict's entry as ``keys()``, ``values()`` or ``items()`` shows it."""
    if kind == "keys":
        return over.key_value(t, key)
    value = over.present(t, key)
    return value if kind == "values" else TupleValue([over.key_value(t, key), value])


class SequenceIterator(IndexIterator):
    """Walks an object with ``__getitem__`` and no ``__iter__`` until IndexError."""

    __slots__ = ()
    cls: ClassVar[type] = type(iter(_Empty()))

    def step(self, t: Tracer) -> Value | None:
        ends = IndexError, StopIteration
        found = or_none(ends, lambda: t.get_item(self.over, Const(self.index)))
        self.index += found is not None
        return found


class ReversedSequenceIterator(IndexIterator):
    """``reversed`` of an object with ``__len__`` and ``__getitem__``."""

    __slots__ = ()
    cls: ClassVar[type] = reversed
    make: ClassVar[Any] = reversed

    def step(self, t: Tracer) -> Value | None:
        if self.index < 0:
            return None
        self.index -= 1
        return t.get_item(self.over, Const(self.index + 1))

    def recipe(self, t: Tracer) -> Recipe:
        if isinstance(t.lookup(self.over.cls, "__len__"), FunctionType):
            t.graph_break("cannot-rebuild", "reversed() would ask for the length again")
        return IndexIterator.recipe(self, t)


@fields
class SetIterator(IteratorValue):
    """Walks a set in the order that CPython would, which ``order`` gives."""

    cls: ClassVar[type] = type(iter(set()))
    over: SetValue
    order: list[Value]
    index: int = 0
    spoilt: bool = False

    def step(self, t: Tracer) -> Value | None:
        if self.moved(t):
            self.spoilt = True  # and says so again and again
            t.raise_error(RuntimeError, "Set changed size during iteration")
        if self.index >= len(self.order):
            return None
        self.index += 1
        return self.order[self.index - 1]

    def recipe(self, t: Tracer) -> Recipe:
        return made_at, [Known(iter), Const(self.index), self.over]

    def moved(self, t: Tracer) -> bool:
        return self.spoilt or len(self.over.items) != len(self.order)


@fields
class DequeIterator(IteratorValue):
    """Walks a deque, perhaps backwards; what comes or goes meanwhile is an error."""

    over: ListValue
    state: int
    backwards: bool = False
    index: int = 0

    @property
    def cls(self) -> type:
        return type(reversed(deque()) if self.backwards else iter(deque()))

    def step(self, t: Tracer) -> Value | None:
        items = self.over.items
        if self.moved(t):
            t.raise_error(RuntimeError, "deque mutated during iteration")
        if self.index >= len(items):
            return None
        self.index += 1
        return t.force_item(items, -self.index if self.backwards else self.index - 1)

    def recipe(self, t: Tracer) -> Recipe:
        make = Known(reversed if self.backwards else iter)
        return made_at, [make, Const(self.index), self.over]

    def moved(self, t: Tracer) -> bool:
        return self.over.state != self.state
