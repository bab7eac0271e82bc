"""What one ``compile`` call owns: its places with their entries, and what it learned.

Each place has a table of entries: the entry of a function, or the point at which frames go on after
a graph break.  A miss captures (:mod:`dynacap.place`).  Nothing here refers to what owns it other
than weakly, so that a compiled model which is dropped is freed at once.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from dynacap.backends import eager
from dynacap.backends.registry import Backend
from dynacap.errors import GraphBreak
from dynacap.executor.chain import Site
from dynacap.fxlite import GraphModule
from dynacap.guards import Failure
from dynacap.resume import Point

KEPT_CAPTURES = 64  # for ``explain``; what recompiles all the time must not grow


@dataclass(frozen=True)
class Capture:
    """A record of one capture, for ``explain``.

    ``skipped`` says why the place runs as plain Python, ``code`` is the generated function.
    """

    place: str
    graph: GraphModule | None
    op_count: int
    guards: tuple[Any, ...]
    reason: GraphBreak | None
    seconds: float
    skipped: str | None = None
    code: str = ""


@dataclass(frozen=True)
class Recompile:
    """A record of one capture of what had entries, none of which fitted.

    ``failures`` has the first guard that did not hold of each entry, the latest entry first.
    ``seconds`` is what capture and backend took.
    """

    place: str
    failures: tuple[Failure, ...]
    seconds: float


@dataclass(frozen=True)
class Options:
    """The arguments of ``compile`` that capture needs.

    ``everything``: what holds no tensor operation runs as captured too, and what plain frames call
    may be captured; for tests of capture itself.
    """

    backend: Backend = eager
    fullgraph: bool = False
    dynamic: bool | None = None
    everything: bool = False


@dataclass(eq=False)
class Session:
    """Everything that belongs to one ``compile`` call.

    ``make_place`` makes the place of some code, at its start or, with sites, where frames go on.
    """

    options: Options
    make_place: Callable[[Session, tuple[Site, ...] | None, CodeType], Any]
    captures: deque[Capture] = field(default_factory=lambda: deque(maxlen=KEPT_CAPTURES))
    recompiles: deque[Recompile] = field(default_factory=lambda: deque(maxlen=KEPT_CAPTURES))
    lock: threading.Lock = field(default_factory=threading.Lock)
    when_cleared: weakref.WeakMethod[Any] | None = None
    _functions: dict[int, Any] = field(default_factory=dict)
    _pieces: dict[tuple[Site, ...], Any] = field(default_factory=dict)
    _sites: dict[tuple[int, Point], Site] = field(default_factory=dict)

    def function_place(self, code: CodeType) -> Any:
        """The place at the start of a function's code."""
        found = self._functions.get(id(code))
        return found if found is not None else self._add(self._functions, id(code), None, code)

    def piece(self, sites: tuple[Site, ...]) -> Any:
        """The place at which frames at these sites go on."""
        found = self._pieces.get(sites)
        return found if found is not None else self._add(self._pieces, sites, sites, sites[-1].code)

    def site(self, code: CodeType, point: Point) -> Site:
        """The one site for a code object and a point."""
        key = (id(code), point)
        found = self._sites.get(key)
        return found if found is not None else self._sites.setdefault(key, Site(code, point))

    def places(self) -> list[Any]:
        """All places: functions first, then where frames go on."""
        return [*self._functions.values(), *self._pieces.values()]

    def _add(
        self, places: dict[Any, Any], key: Any, sites: tuple[Site, ...] | None, code: CodeType
    ) -> Any:
        with self.lock:
            if key not in places:
                places[key] = self.make_place(self, sites, code)
            return places[key]

    def clear(self) -> None:
        """Drop every entry.  Functions keep their places, since callables hold their tables."""
        for place in self.places():
            place.clear()
        self._pieces.clear()
        self._sites.clear()
        self.captures.clear()
        self.recompiles.clear()
        cleared = self.when_cleared() if self.when_cleared is not None else None
        if cleared is not None:
            cleared()
