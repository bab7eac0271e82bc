"""Runs a function piece by piece: the captured regions, and the instructions between them.

A loop, not a recursion: a region returns either the result or the state of its frames at a graph
break (:class:`~dynacap.suspend.Suspend`); the breaking instruction runs as a step of real bytecode,
with the frame hook active so that what it calls may be captured; the next region follows.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, cast

from dynacap import marks
from dynacap.cache import Session
from dynacap.codegen.runtime import call_flat
from dynacap.errors import DynacapError
from dynacap.executor.chain import Site
from dynacap.guards.checker import PythonChecker
from dynacap.guards.table import PythonEntryTable
from dynacap.hook import CompiledFunction, Hook, set_suspend_type
from dynacap.hook.bodies import is_body
from dynacap.hook.deaths import let_go
from dynacap.hook.protocol import Finish
from dynacap.place import Place, hidden_codes as place_codes
from dynacap.resume.layout import GENERATOR_FLAGS
from dynacap.running import Runner, Values, ended, hidden_codes, taken, without_ours
from dynacap.suspend import Suspend, suspend_watched
from dynacap.torch_compile import compiles_late, skip_code

MAX_CHAIN = 32
set_suspend_type(Suspend)
Sites = tuple[Site, ...]
Rest = list[tuple[Sites, Values]]
"""Chains of frames further out that wait, set apart: in deep recursion with breaks, only the
innermost frames make a region, so that it is the same region at every depth.  None of the frames
set apart is handling an exception."""


class Driver:
    """The trampoline of one ``compile`` call.

    What it hands out (frame callables, ``finish``) refers to it weakly: whoever runs them is
    called by it, or by the compiled callable that owns it.
    """

    def __init__(
        self, session: Session, hook: Hook, wanted: Callable[[FunctionType, CodeType], bool]
    ) -> None:
        self.session = session
        self.hook = hook
        self.wanted = wanted
        self._runners: dict[Site, Runner] = {}
        self._answers: dict[Place, CompiledFunction] = {}
        self._paths: dict[Sites, Any] = {}
        session.when_cleared = weakref.WeakMethod(self.clear)
        hide(hook)

    def clear(self) -> None:
        """Forget what belongs to dropped entries."""
        self._runners.clear()
        self._answers.clear()
        self._paths.clear()

    def trampoline(self, weakly: bool = False) -> Finish:
        """What goes on from a suspended region, by the paths that are known or :meth:`finish`."""
        return self.hook.trampoline(self, self._paths, weakly)

    # -- the loop --------------------------------------------------------------------------------
    def finish(self, suspend: Any) -> Any:
        """Go on from a suspended region until the outermost frame returns, or a path is known."""
        rest: Rest = []
        while True:
            while type(suspend) is Suspend:
                sites, values = suspend.sites, [*suspend.values]
                plain, stack, error = suspend.plain, suspend.stack, suspend.error
                # The values die when the frames let go of them, whoever still holds the Suspend.
                suspend.values, suspend = (), None
                if error is not None:
                    try:
                        sites, values = self._throw(sites or (), values, error, rest, here=True)
                    finally:
                        del error
                elif sites is None:
                    return self._run_function(tuple(values))
                elif stack and not rest:
                    return self._bare(sites, values)
                else:
                    watched = self._watched()
                    sites, values = self._advance(sites, values, plain, stack, rest)
                    if sites and not watched and self._watched():
                        suspend = suspend_watched(sites, *values)
                        continue
                suspend = self._run_piece(sites, values, rest) if sites else values[0]
                let_go(values)  # a traceback may hold this frame
                if not rest and type(suspend) is Suspend and suspend.sites in self._paths:
                    return suspend  # the hook follows paths without us
            if not rest:
                return suspend
            sites, values = rest.pop()
            suspend = self._run_piece(sites, [*values, suspend], rest)

    def _run_piece(self, sites: Sites, values: Values, rest: Rest) -> Any:
        """Run the region that starts here, and give its result, or what it suspended."""
        while True:
            cut = len(sites) - MAX_CHAIN
            if cut > 0 and not any(site.point.excs for site in sites[:cut]):
                split = sum(site.count - 1 for site in sites[:cut])
                rest.append((sites[:cut], values[:split]))
                sites, values = sites[cut:], values[split:]
            table = self.session.piece(sites).table
            if not rest:
                return table(*values)
            try:
                return table(*values)
            except DynacapError:
                raise
            except BaseException as error:
                raised = without_ours(error)
            try:
                sites, values = self._throw((), [], raised, rest)
            finally:
                del raised

    def _advance(
        self, sites: Sites, values: Values, plain: bool, stack: bool, rest: Rest
    ) -> tuple[Sites, Values]:
        """Run the innermost frame on: one instruction of it, or all if ``plain``; if ``stack``, all
        the frames.
        """
        waiting = () if stack else sites[:-1]
        runner = self._runner(sites[-1])
        own = [] if stack else _taken_off(values, sites[-1].count)
        if not self.hook.capabilities.replaces_running_frame:
            self._take(sites[-1], own)
        handled = self._handled(waiting, values) if waiting else None
        below = len(waiting) + sum(len(sites) for sites, _ in rest)
        stacked = (self._stacked(sites, values), ended) if stack else None
        run, told = stacked or runner.go_on(own, handled, plain)
        raised: BaseException | None = None
        token = self.hook.enter(self.offer, below)  # our own calls need room that the user has not
        try:
            if below > sys.getrecursionlimit():  # for hooks that do not see to it
                raise RecursionError("maximum recursion depth exceeded")
            made = run()
        except BaseException as error:
            raised = error  # may be that of the recursion limit, which leaves no room for a call
        finally:
            self.hook.exit(token)
        try:
            if raised is not None:
                return self._throw(waiting, values, without_ours(raised), rest)
        finally:
            del raised  # or it and this frame would hold each other
        outcome, result = told(made)
        values += result
        del made, result, told, run  # a traceback may hold this frame
        if not stack and sites not in self._paths:
            self._learn(sites, runner)
        return waiting if outcome is None else (*waiting, outcome), values

    def _watched(self) -> bool:
        """Whether a trace function of the user's is told of each line that runs."""
        return self.hook.capabilities.replaces_running_frame and sys.gettrace() is not None

    def _take(self, site: Site, own: Values) -> None:
        """What the instruction that runs next may call is captured already then.

        Not what is given to a function of torch's, which may read its code (``torch.cond``).
        """
        functions = [value for value in own[1:] if type(value) is FunctionType]
        called = len(own) - taken(site)
        own[called : called + 1] = map(self.hook.in_place_of, own[called : called + 1])
        if any(str(each.__module__).partition(".")[0] == "torch" for each in functions):
            return
        for function in functions:
            if self.wanted(function, self.hook.original_code(function)):
                self.hook.take(function)

    def _learn(self, sites: Sites, runner: Runner) -> None:
        """Let the hook go on from here by itself the next time."""
        waiting = sites[:-1]
        if len(sites) <= MAX_CHAIN and not any(site.point.excs for site in waiting):
            path = runner.path(waiting)
            if path is not None:
                self._paths[sites] = path

    def table_at(self, sites: Sites) -> Any:
        """The entries at which frames at these sites go on; asked by the hook, like `thrown`."""
        return self.session.piece(sites).table

    def watched_at(self, sites: Sites) -> Any:
        """The same where the instruction before has set a trace function."""
        return functools.partial(suspend_watched, sites)

    def thrown(self, sites: Sites, values: Values, error: BaseException) -> Any:
        """An exception left the frame for which these wait."""
        rest: Rest = []
        return self._run_piece(*self._throw(sites, values, without_ours(error), rest), rest)

    def _bare(self, sites: Sites, values: Values) -> Suspend:
        """Leave it to the hook to run all the frames, with none of ours below them: the two that
        are there now, of :meth:`finish` and of this, count no more by then.
        """
        run = self._stacked(sites, values)
        done = functools.partial(self.hook.exit, self.hook.enter(self.offer, 2))
        return Suspend(None, (run, done))

    def _stacked(self, sites: Sites, values: Values) -> Callable[[], Any]:
        """What runs all the frames, each called by the one that waits for it."""
        run: Callable[[], Any] | None = None
        for site in reversed(sites):
            own = _taken_off(values, site.count - (run is not None))
            run = self._runner(site).as_called(own, run)
        assert run is not None
        return run

    def _throw(
        self, sites: Sites, values: Values, error: BaseException, rest: Rest, here: bool = False
    ) -> tuple[Sites, Values]:
        """An exception left a frame: the innermost waiting frame with a handler takes it.  Or it is
        raised ``here``, in the innermost frame, which waits for nothing.
        """
        try:
            while True:
                if not sites:
                    if not rest:
                        raise error
                    sites, values = rest.pop()
                site, waiting = sites[-1], sites[:-1]
                # One that waits is without the result that it waited for.
                own = _taken_off(values, site.count if here else site.count - 1)
                try:
                    handled = self._handled(waiting, values)
                    outcome, state = self._runner(site).throw(own, error, handled, here)
                except BaseException as left:
                    error, here = without_ours(left), False
                else:
                    assert outcome is not None
                    return (*waiting, outcome), values + state
                sites = waiting
        finally:
            del error

    def _handled(self, waiting: Sites, values: Values) -> Any:
        """The exception that the innermost of the waiting frames which handles one is handling."""
        end = len(values)
        for site in reversed(waiting):
            start = end - (site.count - 1)
            if site.point.excs:
                place = self._runner(site).handling
                assert place is not None
                return values[start + place]
            end = start
        return None

    def _runner(self, site: Site) -> Runner:
        runner = self._runners.get(site)
        if runner is None:
            for code in hidden_codes():  # which stand between the hook's start and the user's code
                self.hook.mark_never(code)
            made = Runner(site, self.hook, self.session.site)
            runner = self._runners.setdefault(site, made)
        return runner

    # -- functions that eager code calls -----------------------------------------------------------
    def _run_function(self, flat: tuple[Any, ...]) -> Any:
        """A function that cannot be captured runs as it is; what it calls may be captured."""
        first = [flat[0].__code__]

        def offer_rest(function: FunctionType) -> Any:
            if first and first[0] is function.__code__:
                first.clear()
                return None
            return self.offer(function)

        token = self.hook.enter(offer_rest)
        try:
            return call_flat(flat)
        finally:
            self.hook.exit(token)

    def _run_wrapped(self, wrapped: Any, function: FunctionType, args: Any, kwargs: Any) -> Any:
        """What torch.compile wrapped runs, as if it had not: it is captured here."""
        token = self.hook.enter(self.offer)
        try:
            return wrapped(*args, **kwargs)
        finally:
            self.hook.exit(token)

    def offer(self, function: FunctionType) -> Any:
        """The hook's question: what runs in place of a frame of this function."""
        code = self.hook.original_code(function)
        if not function.__dict__ and not self.wanted(function, code):  # whatever torch's tables say
            return _run_disabled if compiles_late(code) else None
        mark = marks.of(function)
        if mark is not None and mark.kind == "disable":
            return _run_disabled if mark.recursive else None
        if not self.hook.capabilities.replaces_running_frame and marks.inside_disabled():
            return None
        wrapped = marks.wrapped_by_torch(function)
        if wrapped is not None:
            return functools.partial(self._run_wrapped, wrapped)
        if mark is not None or code.co_flags & GENERATOR_FLAGS or not self.wanted(function, code):
            return None
        if is_body(code) and not self.session.options.everything:
            return None  # it runs once: to capture it would never pay
        place = self.session.function_place(code)
        if place.hopeless:
            return None
        answer = self._answers.get(place)
        if answer is None:
            answer = self._answers[place] = self.hook.compiled_function(
                _ANY_FUNCTION, place.table, self.trampoline(weakly=True)
            )
        return answer


def _taken_off(values: Values, count: int) -> Values:
    """The last ``count`` values, which the list then no longer holds."""
    split = len(values) - count
    own = values[split:]
    del values[split:]
    return own


def _any_function() -> None:
    """What an answer's own calls would be; the hook only asks for its table."""


_ANY_FUNCTION = cast(FunctionType, _any_function)


def _run_disabled(*flat: Any) -> Any:
    """Run a disabled function, and all below it, as it is: the hook is inactive meanwhile."""
    return call_flat(flat)


def hide(hook: Hook) -> None:
    """Keep our frames between the user's out of tracebacks, and from torch.compile, which may be
    what calls us.
    """
    methods = (
        Driver.finish,
        Driver._run_piece,
        Driver._advance,
        Driver._throw,
        Driver.thrown,
        Driver._run_function,
        _run_disabled,
    )
    for code in (*(method.__code__ for method in methods), *hidden_codes(), *place_codes()):
        hook.mark_hidden(code)
        skip_code(code)
    for method in (PythonEntryTable.__call__, PythonChecker.check):
        skip_code(method.__code__)
