"""A table keyed by code objects themselves, which it does not keep alive.

Code objects compare by content and take a microsecond to hash; here identity is meant.
"""

import weakref
from types import CodeType
from typing import Generic, TypeVar

T = TypeVar("T")


class CodeTable(Generic[T]):
    """Code object → value, by identity; an entry goes when its code object does."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[weakref.ref[CodeType], T]] = {}

    def get(self, code: CodeType) -> T | None:
        """The value, or None."""
        entry = self._entries.get(id(code))
        return entry[1] if entry is not None else None

    def __contains__(self, code: object) -> bool:
        return id(code) in self._entries

    def __setitem__(self, code: CodeType, value: T) -> None:
        key, entries = id(code), self._entries
        entries[key] = weakref.ref(code, lambda _: entries.pop(key, None)), value

    def pop(self, code: CodeType) -> None:
        """Forget the entry, if there is one."""
        self._entries.pop(id(code), None)

    def clear(self) -> None:
        """Forget all entries."""
        self._entries.clear()

    def values(self) -> list[T]:
        """The values of the entries there are now."""
        return [value for _, value in tuple(self._entries.values())]
