"""``bisect``: where a value goes in a sorted list."""

import bisect
from collections.abc import Callable
from typing import Any

from dynacap.values.natives import polyfill

Key = Callable[[Any], Any] | None


def _end(a: Any, lo: int, hi: int | None) -> int:
    if lo < 0:
        raise ValueError("lo must be non-negative")
    return len(a) if hi is None else hi


@polyfill(bisect.bisect_right)
def bisect_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Key = None) -> int:
    """The index behind all elements that are not larger."""
    high = _end(a, lo, hi)
    while lo < high:
        middle = (lo + high) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            high = middle
        else:
            lo = middle + 1
    return lo


@polyfill(bisect.bisect_left)
def bisect_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Key = None) -> int:
    """The index before all elements that are not smaller."""
    high = _end(a, lo, hi)
    while lo < high:
        middle = (lo + high) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            high = middle
    return lo


@polyfill(bisect.insort_right)
def insort_right(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Key = None) -> None:
    """Insert behind all elements that are not larger."""
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


@polyfill(bisect.insort_left)
def insort_left(a: Any, x: Any, lo: int = 0, hi: int | None = None, *, key: Key = None) -> None:
    """Insert before all elements that are not smaller."""
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)
