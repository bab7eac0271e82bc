"""Running a frame on from where it stands: one instruction, to its end, or into a handler."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType, TracebackType
from typing import Any

from dynacap.codegen.warned import warn_at
from dynacap.errors import ResumeError
from dynacap.executor.chain import Site
from dynacap.hook import Hook
from dynacap.hook.bodies import body, is_body
from dynacap.opcodes import decode
from dynacap.opcodes.canonical import pops
from dynacap.resume import (
    Outcome,
    Point,
    Step,
    bind,
    call_handling,
    plain_code,
    raise_code,
    step_code,
    throw_code,
    waiting_code,
)

Values = list[Any]
"""What frames hold.  Whoever runs code on them gives the list away: the code empties it."""
Told = tuple[Site | None, Values]
Run = tuple[Callable[[], Any], Callable[[Any], Told]]
"""What runs the frame on, with no more than its own depth; and what the result tells of it."""
_FOLDER = str(Path(__file__).parent)
_OURS = (_FOLDER, "<dynacap entry")


class Runner:
    """Runs frames on that stand at one site.

    ``own`` is the frame's part of the flat vector, and given away; ``handled`` the exception that a
    frame which waits further out is handling, or None.  What ran on tells where the frame stands
    then, and its part there; or None and the result.
    """

    def __init__(self, site: Site, hook: Hook, intern: Callable[[CodeType, Point], Site]) -> None:
        self.site = site
        self.hook = hook
        self.intern = intern
        self.handling = _place_of_handled(site)
        self._steps: dict[str, tuple[Step, tuple[Site | None, ...]]] = {}
        self._bound: dict[CodeType, FunctionType] = {}

    def go_on(self, own: Values, handled: Any, plain: bool) -> Run:
        """Run one instruction; if ``plain``, or none can be taken out, the frame to its end."""
        if not plain:
            with contextlib.suppress(ResumeError):
                return self._run("step", step_code, own, handled)
        return self._call(plain_code(self.site.code, self.site.point), own, handled), ended

    def path(self, waiting: tuple[Site, ...]) -> Any:
        """How the hook runs this step by itself, and where it leads; None if that cannot be."""
        step, outcomes = self._steps.get("step", (None, ()))
        bound = None if step is None else self._bound.get(step.code)
        if bound is None:
            return None
        count = sum(site.count - 1 for site in waiting)
        sites = tuple(waiting if then is None else (*waiting, then) for then in outcomes)
        ends = tuple(then is None for then in outcomes)
        return self.hook.path(bound, count, self.site.first_local, waiting, sites, ends)

    def as_called(self, own: Values, inner: Callable[[], Any] | None) -> Callable[[], Any]:
        """What runs the frame to its end; ``inner`` is the call that it waits for, if it does."""
        code = (plain_code if inner is None else waiting_code)(self.site.code, self.site.point)
        function = self._function(code, own)
        if inner is not None:
            own.append(inner)
        return functools.partial(function, own)  # no frame of ours between two of the user's

    def throw(self, own: Values, error: BaseException, handled: Any, here: bool = False) -> Told:
        """Let an exception come out of the call for which the frame waits, or from ``here``."""
        if here:
            _add_context(error, handled if self.handling is None else own[self.handling])
        own.append(error)
        del error  # the list alone holds it, until the code empties that
        build = raise_code if here else throw_code
        run, told = self._run(build.__name__, build, own, handled)
        return told(run())

    def _run(
        self, kind: str, build: Callable[[CodeType, Point], Step], own: Values, handled: Any
    ) -> Run:
        if kind not in self._steps:
            made = build(self.site.code, self.site.point)
            self._steps[kind] = (made, tuple(map(self._outcome, made.outcomes)))
        step, outcomes = self._steps[kind]
        told = functools.partial(_stepped, outcomes, own[: self.site.first_local])
        return self._call(step.code, own, handled), told

    def _outcome(self, outcome: Outcome) -> Site | None:
        return self.intern(self.site.code, outcome) if isinstance(outcome, Point) else None

    def _call(self, code: CodeType, own: Values, handled: Any) -> Callable[[], Any]:
        bound = self._function(code, own)
        call = bound if handled is None else functools.partial(call_handling, handled, bound)
        return functools.partial(call, own)

    def _function(self, code: CodeType, own: Values) -> Callable[[Values], Any]:
        """Made code as a function like the frame's, which is taken off its values."""
        function = own.pop(0)
        if not self.hook.is_marked(code):
            self.hook.mark_never(code)
        if is_body(code):
            return body(function, code, own.pop(0))
        bound = self._bound.get(code)
        if bound is None or bound.__globals__ is not function.__globals__:
            bound = bind(function, code)
            if type(function.__globals__) is dict:  # another kind is made for one run, and not kept
                self._bound[code] = bound
        return bound


def ended(result: Any) -> Told:
    """What the result of a frame that ran to its end tells."""
    return None, [result]


def _stepped(outcomes: tuple[Site | None, ...], head: Values, made: tuple[int, Any]) -> Told:
    k, result = made
    return (None, [*result]) if outcomes[k] is None else (outcomes[k], [*head, *result])


def _add_context(error: BaseException, handled: BaseException | None) -> None:
    """What was raised elsewhere is raised while an exception is being handled."""
    first, seen = error, {error}
    while first.__context__ is not None and first.__context__ not in seen:
        first = first.__context__
        seen.add(first)
    if handled not in seen:
        first.__context__ = handled


def _place_of_handled(site: Site) -> int | None:
    """Where among a frame's values the exception lies that it is handling."""
    point = site.point
    if not point.excs:
        return None
    place = point.excs[-1]
    return site.first_local + len(point.bound) + place - sum(null < place for null in point.nulls)


def taken(site: Site) -> int:
    """How many of the frame's values the instruction takes that runs next: a callable and its
    arguments, where it is a call."""
    point = site.point
    rest = point.depth - pops(decode(site.code).instructions[point.index])
    return sum(place not in point.nulls for place in range(rest, point.depth))


def without_ours(error: BaseException) -> BaseException:
    """Take dynacap's own frames off the outer end of a traceback.

    Those further in were taken off where they were left.  A traceback without any frame of the
    user's tells of a fault of ours, and is left as it is.
    """
    entry: TracebackType | None = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename.startswith(_OURS):
        entry = entry.tb_next
    if entry is not None:
        error.__traceback__ = entry
    return error


def hidden_codes() -> tuple[CodeType, ...]:
    """The code of ours that stands between the user's frames while a frame runs on."""
    return Runner.throw.__code__, call_handling.__code__, warn_at.__code__
