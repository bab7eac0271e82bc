"""Iterators of builtin types: what they are going to give, read without advancing them.

A piece of a loop is captured once for all its rounds: its guards ask what comes next, counted from
where the iterator stands, and not where it stands.  Iterators over others (``zip``, ``map``) have
these as their parts.
"""

import collections
import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dynacap.guards import raw
from dynacap.guards.kinds import Origin, SourceGuard, register
from dynacap.guards.raw import MISSING
from dynacap.guards.show import show
from dynacap.guards.source import Step

MOST_COPIED = 256  # looking into the iterator of a dict or set copies what it has yet to give

Ahead = tuple[Sequence[Any], int, int]
"""A sequence, the index of what comes next, and the step from there."""

_NOTHING: Ahead = ((), 0, 1)
_SEQUENCES: tuple[type, ...] = (list, tuple, range, str, bytes, bytearray)
_sequences: tuple[Any, ...] = ([], (), "a", "\xff", b"", bytearray(), range(0), range(1 << 70))
_dict: dict[Any, Any] = {}
_BY_INDEX = frozenset(type(iter(over)) for over in _sequences)
_BACKWARDS: type = type(reversed(_sequences[0]))
_BY_COPY = frozenset(
    (
        type(iter(set[Any]())),
        *(type(iter(over)) for over in (_dict.keys(), _dict.values(), _dict.items())),
        *(type(reversed(over)) for over in (_dict.keys(), _dict.values(), _dict.items())),
    )
)
SIMPLE: frozenset[type] = _BY_INDEX | _BY_COPY | {_BACKWARDS}
_DICTS: tuple[Any, ...] = ({}, collections.OrderedDict())
VIEWS = frozenset(
    type(getattr(made, kind)()) for made in _DICTS for kind in ("keys", "values", "items")
)
COMPOSITE: frozenset[type] = frozenset({zip, enumerate, map, filter})


def ahead(iterator: Any) -> Ahead | None:
    """What an iterator over a builtin container is going to give; None where it cannot be told."""
    try:
        return _ahead(iterator)
    except (RuntimeError, AttributeError):  # a dict of another size; ``iter`` is no longer there
        return None


def _ahead(iterator: Any) -> Ahead | None:
    kind = type(iterator)
    if kind in _BY_INDEX or kind is _BACKWARDS:
        _, (over,), *state = iterator.__reduce__()
        if kind is _BACKWARDS:
            return (over, state[0], -1) if state else _NOTHING
        return over, state[0] if state and state[0] is not None else 0, 1
    if kind in _BY_COPY and iterator.__length_hint__() <= MOST_COPIED:
        return iterator.__reduce__()[1][0], 0, 1
    return None


def count_ahead(iterator: Any) -> int:
    """How many elements an iterator is going to give; -1 where it cannot be told."""
    found = ahead(iterator)
    if found is None:
        return -1
    over, at, step = found
    length: int = _builtin(over).__len__(over)
    return max(length - at if step > 0 else min(at + 1, length), 0)


def item_ahead(value: Any, key: Any) -> Any:
    """The element that comes after ``key`` others."""
    found = ahead(value)
    return MISSING if found is None else item_of(found, key)


def item_of(found: Ahead, index: int) -> Any:
    """The element at an index of what was found ahead."""
    over, at, step = found
    kind, at = _builtin(over), at + index * step
    return kind.__getitem__(over, at) if 0 <= at < kind.__len__(over) else MISSING


def _builtin(over: object) -> Any:
    """The type whose storage a sequence has, whatever methods its class adds."""
    return next(kind for kind in _SEQUENCES if raw.is_a(over, kind))


def container(iterator: Any) -> Any:
    """The mutable container that an iterator walks, or the dict that a view shows."""
    if type(iterator) in SIMPLE or type(iterator) in VIEWS:
        for held in gc.get_referents(iterator):
            if raw.is_a(held, list) or raw.is_a(held, dict) or raw.is_a(held, set):
                return held
    return MISSING


def part(value: Any, key: Any) -> Any:
    """What an iterator over others was made of: functions, iterators, a number."""
    if type(value) not in COMPOSITE:
        return MISSING
    parts = value.__reduce__()[1]
    return parts[key] if key < len(parts) else MISSING


def shape(iterator: Any) -> Any:
    """How many parts an iterator over others has, and whether they must end together."""
    if type(iterator) not in COMPOSITE:
        return MISSING
    _, parts, *strict = iterator.__reduce__()
    return len(parts), bool(strict)


class Read(Step):
    """A step that a function takes."""

    __slots__ = ()

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        """What it reads of the base's value, or MISSING."""
        raise NotImplementedError

    def step(self, value: object) -> object:
        return self.take(value, self.key)

    def name(self) -> str:
        key = "" if self.key is None else f", {self.key}"
        return f"{self.op}({self.base.name()}{key})"


class NextItem(Read):
    """The element that an iterator gives after ``key`` others."""

    __slots__ = ()
    op = "next_item"
    take = staticmethod(item_ahead)


class NextNumber(Read):
    """The number that ``enumerate`` gives after ``key`` others."""

    __slots__ = ()
    op = "next_number"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        return part(value, 1) + key if type(value) is enumerate else MISSING


class Container(Read):
    """The list, dict or set that an iterator walks, or a view shows."""

    __slots__ = ()
    op = "container"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        return container(value)


class Position(Read):
    """Where in its list an iterator stands."""

    __slots__ = ()
    op = "position"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        found = ahead(value)
        return MISSING if found is None else found[1]


class IteratorPart(Read):
    """One of the things that a ``zip``, ``map`` and the like was made of."""

    __slots__ = ()
    op = "iterator_part"
    take = staticmethod(part)


class IteratorShape(Read):
    """How many of them there are, and whether the zip is strict."""

    __slots__ = ()
    op = "iterator_shape"

    @staticmethod
    def take(value: Any, key: Any) -> Any:
        return shape(value)


READS: tuple[type[Read], ...] = (
    NextItem, NextNumber, Container, Position, IteratorPart, IteratorShape,
)  # fmt: skip


@register
@dataclass(frozen=True)
class ItemsAhead(SourceGuard):
    """An iterator has so many elements yet to give, or at least so many."""

    kind = "ahead"
    count: int
    at_least: bool
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        left = count_ahead(values[0])
        return left >= self.count if self.at_least else left == self.count

    def expectation(self) -> str:
        return f"gives {self.count} items{' or more' if self.at_least else ''}"

    def finding(self, *values: object) -> str:
        left = count_ahead(values[0])
        return show(values[0]) if left < 0 else f"{left} items"
