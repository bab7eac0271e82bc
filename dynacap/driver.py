"""Runs a function piece by piece: the captured regions, and the instructions between them.

A loop, not a recursion: a region returns either the result or the state of its frames at a graph
break (:class:`~dynacap.suspend.Suspend`); the breaking instruction runs as a step of real bytecode,
with the frame hook active so that what it calls may be captured; the next region follows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from dynacap.cache import Session
from dynacap.errors import ResumeError
from dynacap.executor.chain import Site
from dynacap.hook import Hook
from dynacap.opcodes import decode
from dynacap.resume import RETURN, Point, Step, call_plain, plain_code, step_code
from dynacap.suspend import Suspend

_NO_FRAMES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Driver:
    """The trampoline of one ``compile`` call."""

    def __init__(self, session: Session, hook: Hook, wanted: Callable[[FunctionType], bool]):
        self.session = session
        self.hook = hook
        self.wanted = wanted
        self.callback = self._offer

    def finish(self, suspend: Any) -> Any:
        """Go on from a suspended region until the outermost frame returns."""
        while type(suspend) is Suspend:
            sites, values = suspend.sites, suspend.values
            sites, values = self._advance(sites, values, suspend.plain)
            if not sites:
                return values[0]
            suspend = self._run_piece(sites, values)
        return suspend

    def _run_piece(self, sites: tuple[Site, ...], values: tuple[Any, ...]) -> Any:
        """Capture or run the region that starts here."""
        return self.session.piece(sites).table(*values)

    def _advance(
        self, sites: tuple[Site, ...], values: tuple[Any, ...], plain: bool
    ) -> tuple[tuple[Site, ...], tuple[Any, ...]]:
        """Run the innermost frame on: one instruction of it, or all if ``plain``."""
        site = sites[-1]
        split = len(values) - site.count
        outer, own = values[:split], values[split:]
        try:
            outcome, result = self._run_frame(site, own, plain)
        except BaseException as error:
            return _throw(sites[:-1], outer, error)
        if outcome is not None:
            cells = own[: 1 + len(site.code.co_cellvars) + len(site.code.co_freevars)]
            return (*sites[:-1], Site(site.code, outcome)), (*outer, *cells, *result)
        return sites[:-1], (*outer, result[0])

    def _run_frame(
        self, site: Site, own: tuple[Any, ...], plain: bool
    ) -> tuple[Point | None, tuple[Any, ...]]:
        """Where the frame stands then, and its locals and stack; or None and its result."""
        function, values = own[0], own[1:]
        step = None if plain else _step(site)
        code = plain_code(site.code, site.point) if step is None else step.code
        if not self.hook.is_marked(code):
            self.hook.mark_never(code)
        token = self.hook.enter(self.callback)
        try:
            if step is None:
                return None, (call_plain(function, code, (), values),)
            k, result = call_plain(function, code, (), values)
        finally:
            self.hook.exit(token)
        outcome = step.outcomes[k]
        return (None if outcome is RETURN else outcome), result

    def _offer(self, function: FunctionType) -> Any:
        """The hook's question: what runs in place of a frame of this function."""
        if function.__code__.co_flags & _NO_FRAMES or not self.wanted(function):
            return None
        place = self.session.function_place(function)
        finish = self.finish

        def run(*flat: Any) -> Any:
            result = place.table(*flat)
            return finish(result) if type(result) is Suspend else result

        return run


def _step(site: Site) -> Step | None:
    try:
        return step_code(site.code, site.point)
    except ResumeError:
        return None


def _throw(
    sites: tuple[Site, ...], values: tuple[Any, ...], error: BaseException
) -> tuple[tuple[Site, ...], tuple[Any, ...]]:
    """An exception left a frame: the innermost waiting frame with a handler takes it."""
    while sites:
        site = sites[-1]
        split = len(values) - (site.count - 1)  # the result that it waited for does not come
        outer, own = values[:split], values[split:]
        index = site.point.index - 1
        code = decode(site.code)
        handler = code.handlers[index]
        if handler is not None:
            point = site.point
            nulls = tuple(place for place in point.nulls if place < handler.depth)
            excs = tuple(place for place in point.excs if place < handler.depth)
            depth = handler.depth + handler.lasti + 1
            stack_values = point.depth - 1 - len(point.nulls)
            kept = handler.depth - len(nulls)
            state = own[: len(own) - stack_values + kept]
            lasti = (code.instructions[index].lasti // 2,) if handler.lasti else ()
            new = Point(handler.target, depth, nulls, excs, point.bound)
            return (*sites[:-1], Site(site.code, new)), (*outer, *state, *lasti, error)
        sites, values = sites[:-1], outer
    raise error
