"""The table of entries in Python: finds the entry whose guards hold and runs it."""

import weakref
from collections.abc import Callable
from typing import Any

from dynacap.guards.protocol import Checker


class PythonEntry:
    """A checker and the function that runs where its guards hold."""

    __slots__ = ("__weakref__", "_watched", "checker", "dead", "fn", "hits")

    def __init__(self, checker: Checker, fn: Callable[..., object]) -> None:
        self.checker = checker
        self.fn = fn
        self.hits = 0
        self.dead = False
        self._watched: tuple[object, ...] = ()

    def watch(self, table: "PythonEntryTable") -> None:
        """Have the table drop this entry when an object dies that it cannot do without."""
        own, home = weakref.ref(self), weakref.ref(table)

        def died(_: "weakref.ref[Any]") -> None:
            entry, owner = own(), home()
            if entry is not None:
                entry.dead = True
                if owner is not None:
                    owner.remove(entry)

        self._watched = self.checker.watch(died)


class PythonEntryTable:
    """Entries, the one that ran last first.

    The list of entries is never changed in place: a walk goes on over the list that it began
    with, whatever guards, other threads and dying objects do to the table meanwhile.
    """

    def __init__(self, miss: Callable[..., object]) -> None:
        self.miss = miss
        self.entries: tuple[PythonEntry, ...] = ()

    def add(self, checker: Checker, fn: Callable[..., object], /) -> PythonEntry:
        """A new entry, tried first."""
        entry = PythonEntry(checker, fn)
        entry.watch(self)
        self.entries = (entry, *self.entries)
        if entry.dead:  # something died meanwhile
            self.remove(entry)
        return entry

    def remove(self, entry: PythonEntry, /) -> bool:
        """Take an entry out; whether it was there."""
        before = self.entries
        self.entries = tuple(kept for kept in before if kept is not entry)
        return len(self.entries) < len(before)

    def clear(self) -> None:
        """Take all entries out."""
        self.entries = ()

    def __call__(self, *flat: object) -> object:
        """Run the first entry whose guards hold; with none, ``miss(*flat)``."""
        entries = self.entries
        for entry in entries:
            values = None if entry.dead else entry.checker.check(flat)
            if values is not None:
                entry.hits += 1
                if entry is not entries[0]:
                    self._to_front(entry)
                return entry.fn(*values)
        return self.miss(*flat)

    def _to_front(self, entry: PythonEntry) -> None:
        if entry in self.entries:  # it may have been removed while it was checked
            self.entries = (entry, *(kept for kept in self.entries if kept is not entry))
