"""Weak caches keyed by the identity of a code object."""

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Generic, TypeVar

V = TypeVar("V")


class CodeCache(Generic[V]):
    """Maps code objects to values by identity, and lets go of both when the code object dies.

    Code objects compare by value, so that two functions with equal text share one key in a plain
    dictionary; what we remember (nested code objects, positions) belongs to one of them only.
    A value must not hold the code object strongly, or neither would ever be freed.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[CodeType], V]] = {}

    def get(self, code: CodeType) -> V | None:
        """Return what is stored for this very code object."""
        entry = self._entries.get(id(code))
        if entry is None or entry[0]() is not code:
            return None
        return entry[1]

    def set(self, code: CodeType, value: V) -> V:
        """Store a value for this very code object and return it."""
        key = id(code)
        self._entries[key] = (weakref.ref(code, self._forget(key)), value)
        return value

    def _forget(self, key: int) -> Callable[[weakref.ref[CodeType]], None]:
        entries = self._entries

        def forget(dead: weakref.ref[CodeType]) -> None:
            # The id may belong to a younger code object by now.
            if (entry := entries.get(key)) is not None and entry[0] is dead:
                del entries[key]

        return forget
