"""A graph between its capture and the end of its C compile: who waits, and what runs meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from dynacap import log
from dynacap.config import config

Run = Callable[..., Any]


class Pending:
    """What a graph calls while it has no library.

    The first call waits for the library, unless ``waits`` is False: then calls run ``eager`` until
    it is there.  If it cannot be made, all calls do, and one warning says why.
    """

    def __init__(self, library: Future[Path], eager: Run, *, waits: bool) -> None:
        self._library = library
        self._eager = eager
        self._waits = waits
        self._failed = False

    def call(self, graph: Any, args: tuple[Any, ...]) -> Any:
        """Run the graph's library if it is there, or the graph itself."""
        if self._failed or not (self._waits or self._library.done()):
            return self._eager(*args)
        try:
            graph.load(str(self._library.result()))
        except Exception as error:
            if config.raise_internal_errors:
                raise
            self._failed = True
            log.warn(
                f"a graph runs eagerly: its C code could not be built or loaded: {error}",
                error=type(error).__name__,
            )
            return self._eager(*args)
        return graph(*args)
