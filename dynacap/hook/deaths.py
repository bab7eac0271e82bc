"""In which order what a frame holds dies: weak references with callbacks tell of it."""

from __future__ import annotations

import weakref
from typing import Any


def _first_local_dies_first() -> bool:
    gone: list[int] = []
    kept: list[Any] = []

    def frame() -> None:
        first: set[int] = set()
        last: set[int] = set()
        kept.append(weakref.ref(first, lambda _: gone.append(1)))
        kept.append(weakref.ref(last, lambda _: gone.append(2)))

    frame()
    return gone == [1, 2]


_IN_ORDER = _first_local_dies_first()  # until 3.13


def let_go(values: list[Any]) -> None:
    """Empty a list of what a frame held as a frame that ends does it."""
    if _IN_ORDER:
        values.reverse()  # a list lets go of its last item first
    values.clear()
