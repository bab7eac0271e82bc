"""What every checker and every table of entries can do, whichever language it is written in."""

import weakref
from collections.abc import Callable
from typing import Any, Protocol

from dynacap.guards.explain import Failure
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.source import Source

Flat = tuple[object, ...]


class Checker(Protocol):
    """Checks the guards of one entry over a flat vector.

    C: ``fastcheck.c``; Python: ``checker.py``.
    """

    @property
    def guards(self) -> GuardSet:
        """What is checked."""

    @property
    def slots(self) -> tuple[Source, ...]:
        """The sources whose values a successful check gives, in order."""

    def check(self, flat: Flat, /) -> Flat | None:
        """The slots' values if all guards hold, else None; raises nothing but KeyboardInterrupt."""

    def explain(self, flat: Flat, /) -> Failure | None:
        """The first guard that does not hold, or None; raises nothing."""

    def watch(self, died: "Callable[[weakref.ref[Any]], object]", /) -> tuple[object, ...]:
        """Have ``died`` called when an object dies without which no check can succeed.

        The call happens while what is returned is kept.
        """


class Entry(Protocol):
    """A checker and the function that runs where its guards hold."""

    @property
    def checker(self) -> Checker:
        """What decides whether the entry fits."""

    @property
    def fn(self) -> Callable[..., object]:
        """What runs, with the slots' values."""

    @property
    def hits(self) -> int:
        """How often it ran."""

    @property
    def dead(self) -> bool:
        """Whether an object died without which the guards cannot hold."""


class EntryTable(Protocol):
    """Entries, the one that ran last first.  C: ``entry_table.c``; Python: ``table.py``."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries in the order in which they are tried."""

    @property
    def miss(self) -> Callable[..., object]:
        """Called with the flat vector's values where no entry fits."""

    def add(self, checker: Checker, fn: Callable[..., object], /) -> Entry:
        """A new entry, tried first."""

    def remove(self, entry: Any, /) -> bool:
        """Take an entry out; whether it was there."""

    def clear(self) -> None:
        """Take all entries out."""

    def __call__(self, *flat: object) -> object:
        """Run the first entry whose guards hold; with none, ``miss(*flat)``."""
