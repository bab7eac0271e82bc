"""What a captured region returns at a graph break: where its frames stand, and their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacap.executor.chain import Site


class Suspend:
    """Frames that wait at ``sites`` with the flat vector ``values``.

    ``plain`` says that the innermost frame runs as plain Python to its end from there; otherwise
    one instruction of it does, and what follows is captured.  ``stack``: all of them run so, each
    called by the one that waits for it, since someone looks at the stack.  ``sites`` is None for a
    function that runs as plain Python from its start.  ``error`` is raised where the innermost
    frame stands.
    """

    __slots__ = ("error", "plain", "sites", "stack", "values")

    def __init__(
        self,
        sites: tuple[Site, ...] | None,
        values: tuple[Any, ...],
        plain: bool = False,
        stack: bool = False,
        error: BaseException | None = None,
    ) -> None:
        self.sites = sites
        self.values = values
        self.plain = plain
        self.stack = stack
        self.error = error


def suspend_plain(sites: tuple[Site, ...] | None, *flat: Any) -> Suspend:
    """Have the innermost frame, or without sites the function, run as plain Python."""
    return Suspend(sites, flat, plain=True)


def suspend_watched(sites: tuple[Site, ...], *flat: Any) -> Suspend:
    """Have all frames run on as plain Python: a trace function is told of them."""
    return Suspend(sites, flat, stack=True)


def suspend_failed(
    interruption: Callable[[], BaseException | None], sites: tuple[Site, ...] | None, *flat: Any
) -> Suspend:
    """The same where a graph failed; or what interrupted it is raised before the region begins."""
    return Suspend(sites, flat, plain=True, error=interruption())
