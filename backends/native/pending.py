"""A graph between its capture and the end of its C compile: who waits, and what runs meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from dynacap import log
from dynacap.config import config

Run = Callable[..., Any]


def warn_eager(why: str) -> None:
    """Say, once for each reason, that a graph is not run as C."""
    log.warn_once(("native", why), f"a graph of backend 'native' runs eagerly: {why}")


class Pending:
    """What a graph calls while it has no library.

    The first call waits for the library, unless ``waits`` is False: then calls run ``eager`` until
    it is there.  If it cannot be made, all calls do, and one warning says why.  ``begin()`` begins
    to make it; a process that was forked meanwhile begins again, since the threads that wait for
    the compiler are its parent's.  ``meanwhile``: what a call that waits does first, such as to
    begin with the library of the backward pass.
    """

    def __init__(
        self,
        begin: Callable[[], Future[Path]],
        eager: Run,
        *,
        waits: bool,
        meanwhile: Sequence[Callable[[], object]] = (),
    ) -> None:
        self._begin = begin
        self._library, self._process = begin(), os.getpid()
        self._eager = eager
        self._waits = waits
        self._failed = False
        self._meanwhile = meanwhile

    def call(self, graph: Any, args: tuple[Any, ...]) -> Any:
        """Run the graph's library if it is there, or the graph itself.

        A graph that has its library hands on what does not fit into C's integers.
        """
        if not graph.ready and not self._library.done() and self._process != os.getpid():
            self._library, self._process = self._begin(), os.getpid()
        if graph.ready or self._failed or not (self._waits or self._library.done()):
            return self._eager(*args)
        try:
            if not self._library.done():
                for each in self._meanwhile:
                    each()
            graph.load(str(self._library.result()))
        except Exception as error:
            if config.raise_internal_errors:
                raise
            self._failed = True
            warn_eager(f"its C code could not be built or loaded: {error}")
            return self._eager(*args)
        return graph(*args)
