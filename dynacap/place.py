"""One place where captured code starts: its entries, and what a miss does.

A miss captures; whatever goes wrong then, the place runs as plain Python.  What cannot be captured
is an entry too: its guards say under which conditions, and it runs plain Python.
"""

from __future__ import annotations

import functools
import inspect
import operator
import threading
import time
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

from dynacap import misses, stance, totals
from dynacap.backends.collector import resting
from dynacap.backends.recovery import Recovery
from dynacap.backends.registry import Backend, takes_floats
from dynacap.cache import Capture, Recompile, Session
from dynacap.capture import RAISED, Attempts, Region
from dynacap.codegen.runtime import call_flat
from dynacap.config import config
from dynacap.convert import Built, Draft, Entry, add_shape_guards, build_entry, draft_entry
from dynacap.errors import (
    BackendCompilerFailed,
    DynacapError,
    FailOnRecompileLimitHit,
    GraphBreak,
    RecompileError,
    ResumeError,
    SkipFrame,
    Unsupported,
    UnsupportedPython,
    UserError,
    UserFrame,
)
from dynacap.executor.chain import Site
from dynacap.guards import Checker, EntryTable, Failure, GuardSet, make_checker, make_table
from dynacap.guards.caches import Remembers
from dynacap.guards.source import Local, Source
from dynacap.hook import choose_hook
from dynacap.kept import recall, store
from dynacap.opcodes import decode
from dynacap.suspend import Suspend, suspend_plain
from dynacap.torch_compile import set_eval_frame
from dynacap.values.tensor.dynamic import History

PLAIN_LIMIT = 4  # entries without any graph, after which a place is plain for good
MAX_HALVINGS = 8  # in the search for where a region ends that cannot be made again
FAILURE_LIMIT = 2  # captures that left no entry at all
NO_OPERATIONS = "no tensor operations"
_MORE_THAN_POSITIONAL = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_FOR_THE_USER = (
    Unsupported,
    RecompileError,
    FailOnRecompileLimitHit,
    BackendCompilerFailed,
    UserError,
)
Flat = tuple[Any, ...]


class Place:
    """The entries of one place; ``table`` is called with the flat vector."""

    def __init__(self, session: Session, sites: tuple[Site, ...] | None, code: CodeType) -> None:
        self._session = weakref.ref(session)
        self.sites = sites
        self.title: str | None = None  # in place of the name
        self.code = code  # kept alive, since the session knows it by id
        self.lock = threading.Lock()
        self.table: EntryTable = make_table(_weak_miss(weakref.ref(self), sites))
        everything = sites is None and session.options.everything
        self.plain_entry = _OFFERS_CALLEES if everything else _plain_entry(sites, code)
        self.recompiles = misses.Recompiles()
        stance.PLACES.add(self)
        options = session.options
        self._new_history = functools.partial(
            History, options.dynamic, floats=takes_floats(options.backend)
        )
        self.clear()

    def clear(self) -> None:
        """Start afresh."""
        self.table.clear()
        self.parked: tuple[Any, ...] = ()  # entries that wait for another stance
        self.seen = False
        self.forgetful = False  # entries hold as long as a cache has no result
        self.captured = 0  # captures in all, also those whose entries are gone
        self.graphs = 0  # those of them that were worth it
        self.failures = 0
        self.history = self._new_history()
        self._failing: tuple[Failure, ...] = ()  # why the entries do not fit that is captured now
        self.recompiles.clear()

    @property
    def name(self) -> str:
        """The user's function and line."""
        if self.title is not None:
            return self.title
        line = self.code.co_firstlineno
        if self.sites is not None:
            site = self.sites[-1]
            line = decode(site.code).instructions[site.point.index].line or line
        return f"{self.code.co_qualname} ({self.code.co_filename}:{line})"

    @property
    def hopeless(self) -> bool:
        """Whether nothing will ever be captured here, and nothing was."""
        return not self.graphs and (self.failures >= FAILURE_LIMIT or self.captured >= PLAIN_LIMIT)

    # -- a miss ----------------------------------------------------------------------------------
    def miss(self, flat: Flat) -> Any:
        """No entry fits: capture, unless that is in progress, hopeless, or over the limit."""
        plain = stance.STATE.stance.name != "default" and stance.stays_plain(self)
        if plain or not self.lock.acquire(blocking=False):
            return self.plain_entry(*flat)
        try:
            found = None if self.hopeless else self._compile_alone(flat)
        finally:
            self.lock.release()
        fn, values = found or (self.plain_entry, flat)
        return fn(*values)

    def _compile_alone(self, flat: Flat) -> tuple[Callable[..., Any], Flat] | None:
        """Capture unseen by torch.compile, which may be what calls us."""
        outer = set_eval_frame(None)
        try:
            with resting():
                return self._compile(flat)
        finally:
            set_eval_frame(outer)

    def _compile(self, flat: Flat) -> tuple[Callable[..., Any], Flat] | None:
        """The new entry's function and what it is called with; None to run plain Python."""
        session = self._session()
        if self.forgetful:
            misses.drop_forgetful(self.table, flat)
        if session is None or self._over_limit(flat):
            return None
        self._explain_recompile(flat)
        started = time.perf_counter()
        misses.log_bytecode(
            self.name, self.code, 0 if self.sites is None else self.sites[-1].point.index
        )
        self.history.idle = not self.graphs
        self.history.crowded = len(self.table.entries) >= config.recompile_limit // 2
        attempts = Attempts(self.sites, self.code, flat, self.history)
        try:
            known = None if self.captured else recall(self, session, _backend(session), flat)
            if known is not None:
                return self._store(session, known, flat, started)
            draft = _draft(attempts, attempts.capture(), session)
            return self._store_region(session, draft, flat, started)
        except _FOR_THE_USER:
            raise
        except (GraphBreak, SkipFrame, UnsupportedPython, ResumeError) as refusal:
            if stance.breaks_are_errors(None, session.options.fullgraph):
                raise self._under_fullgraph(refusal) from None
            return self._store_skip(session, attempts.guards, refusal, flat, started)
        except RecursionError:
            pass  # the user's calls are deep, and capture needs some room of its own
        except Exception as error:
            misses.warn_internal(self.name, id(self.code), error)
            if config.raise_internal_errors:
                raise
            internal = SkipFrame("internal-error", f"{type(error).__name__}: {error}")
            return self._store_skip(session, attempts.guards, internal, flat, started)
        finally:
            attempts.release()
        return None

    def _store_region(
        self, session: Session, draft: Draft, flat: Flat, started: float
    ) -> tuple[Callable[..., Any], Flat]:
        region, machine = draft.region, draft.region.machine
        sources: list[Source] = [Local(index, f"arg{index}") for index in range(len(flat))]
        built = build_entry(draft, _backend(session), self.sites, sources)
        skipped = None
        if built.graph is None and region.result is not None and not session.options.everything:
            skipped = NO_OPERATIONS
            built = Built(self.plain_entry, tuple(sources), built.code, None)
        add_shape_guards(machine)
        checker = make_checker(machine.guards, built.slots)
        entry = Entry(built, machine.guards, checker, _true_reason(region))
        first = not self.captured
        found = self._store(session, entry, flat, started, skipped)
        if first and not machine.bound:
            store(self, session, _backend(session), entry, flat)
        return found

    def _store(
        self, session: Session, entry: Entry, flat: Flat, started: float, skipped: str | None = None
    ) -> tuple[Callable[..., Any], Flat]:
        built, guards, checker, reason = entry
        if built.code.function is not None:
            choose_hook().mark_hidden(built.code.function.__code__)
        values = self._add(checker, built.fn, flat)
        misses.log_break(reason)
        misses.log_guards(self.name, guards)
        self._record(session, built, guards, reason, started, skipped)
        return built.fn, values

    def _store_skip(
        self, session: Session, guards: GuardSet, refusal: DynacapError, flat: Flat, started: float
    ) -> tuple[Callable[..., Any], Flat]:
        """What cannot be captured runs as plain Python whenever these guards hold."""
        why = str(refusal)
        fn = self.plain_entry
        if self.sites is None and isinstance(refusal, GraphBreak):
            fn = _OFFERS_CALLEES
        try:
            slots = tuple(Local(index, f"arg{index}") for index in range(len(flat)))
            self._add(make_checker(guards, slots), fn, flat)
        except Exception:
            self.failures += 1
        self._record(session, None, guards, None, started, why)
        misses.log_break(refusal, f"{self.name} runs as plain Python: {why}")
        return fn, flat

    def _add(self, checker: Checker, fn: Callable[..., Any], flat: Flat) -> Flat:
        """Add an entry, for the next time; SkipFrame if its guards do not even hold now."""
        values = checker.check(flat)
        if values is None:
            raise SkipFrame("guards-do-not-hold", f"right after capture: {checker.explain(flat)}")
        self.table.add(checker, fn)
        return values

    def _under_fullgraph(self, refusal: DynacapError) -> Unsupported:
        frame = UserFrame(self.code.co_filename, self.code.co_firstlineno, self.code.co_name)
        if isinstance(refusal, GraphBreak):
            stack = refusal.stack or (frame,)
            return Unsupported(refusal.reason, refusal.detail, refusal.hint, stack)
        if isinstance(refusal, SkipFrame):
            return Unsupported(refusal.reason, refusal.detail, stack=(frame,))
        return Unsupported("capture", str(refusal), stack=(frame,))

    def _record(
        self,
        session: Session,
        built: Built | None,
        guards: GuardSet,
        reason: GraphBreak | None,
        started: float,
        skipped: str | None,
    ) -> None:
        seconds = time.perf_counter() - started
        graph = built.graph if built is not None else None
        count = built.op_count if built is not None else 0
        code = built.code.source if built is not None and skipped is None else ""
        self.forgetful |= any(isinstance(guard, Remembers) for guard in guards)
        self.captured += 1
        self.graphs += skipped is None
        shown = skipped
        if skipped == NO_OPERATIONS and self.sites is not None:
            shown = None  # the end of a function after a break: nothing worth telling
        if built is None:
            totals.add_skip(skipped or "")
        else:
            totals.add_capture(count, reason, self.captured > 1, shown)
        if self._failing:
            session.recompiles.append(Recompile(self.name, self._failing, seconds))
            self._failing = ()
        session.captures.append(
            Capture(self.name, graph, count, tuple(guards), reason, seconds, shown, code)
        )

    # -- recompiles ------------------------------------------------------------------------------
    def _over_limit(self, flat: Flat) -> bool:
        limit = "recompile_limit"
        if len(self.table.entries) < config.recompile_limit:
            limit = "accumulated_recompile_limit"
            if self.captured < config.accumulated_recompile_limit:
                return False
        elif not self.graphs:
            return True
        if config.fail_on_recompile_limit_hit:
            self.recompiles.note(self.table.entries, flat)
            raise FailOnRecompileLimitHit(self.recompiles.limit_text(self.name, limit))
        self.recompiles.warn(self.table.entries, flat, self.name, limit)
        return True

    def _explain_recompile(self, flat: Flat) -> None:
        if not self.table.entries:
            return
        self._failing = self.recompiles.note(self.table.entries, flat)
        if config.error_on_recompile:
            raise RecompileError(f"{self.name} is recompiled:\n{misses.told(self._failing)}")
        self.recompiles.log(self.name, self._failing)


def _backend(session: Session) -> Backend:
    return stance.STATE.stance.backend or session.options.backend


def _true_reason(region: Region) -> GraphBreak | None:
    """Why the graph breaks; that the program raises is no break."""
    reason = region.reason
    return None if reason is not None and reason.reason == RAISED else reason


def _draft(attempts: Attempts, region: Region, session: Session) -> Draft:
    """The draft of the region, or of as much of it as can be made again by code."""
    options, reason = session.options, _true_reason(region)
    strict = stance.breaks_are_errors(region.machine, options.fullgraph)
    if strict and reason is not None:
        raise Unsupported.from_break(reason)
    _intern_sites(region, session)
    try:
        return draft_entry(region, options.backend)
    except GraphBreak as error:
        if strict:
            raise
        why, before = error.bare(), error.before
    if 0 <= before < region.machine.steps:
        shorter = attempts.earlier(before, why)
        if shorter is not None:
            return _draft(attempts, shorter, session)
    good, bad = 0, region.machine.steps
    for _ in range(MAX_HALVINGS):
        middle = (good + bad) // 2
        if middle == good:
            break
        can_stop = _can_stop(attempts, middle, why, options.backend)
        good, bad = (middle, bad) if can_stop else (good, middle)
    found = attempts.earlier(good, why) if good else None
    if found is None:
        raise why
    _intern_sites(found, session)
    return draft_entry(found, options.backend)


def _can_stop(attempts: Attempts, steps: int, why: GraphBreak, backend: Backend) -> bool:
    region = attempts.earlier(steps, why)
    try:
        return region is not None and draft_entry(region, backend) is not None
    except GraphBreak:
        return False


def _intern_sites(region: Region, session: Session) -> None:
    """Let the region name the sites that the session knows."""
    region.sites = tuple(session.site(site.code, site.point) for site in region.sites)


def _weak_miss(place: weakref.ref[Place], sites: tuple[Site, ...] | None) -> Callable[..., Any]:
    """A table's miss that does not keep the place, which owns the table."""

    def miss(*flat: Any) -> Any:
        here = place()
        if here is None:  # dropped by reset() while another thread ran it
            return Suspend(sites, flat, plain=True)
        return here.miss(flat)

    return miss


def _plain_entry(sites: tuple[Site, ...] | None, code: CodeType) -> Callable[..., Any]:
    """Takes the flat vector and runs plain Python."""
    if sites is not None:
        return functools.partial(suspend_plain, sites)
    if code.co_kwonlyargcount or code.co_flags & _MORE_THAN_POSITIONAL:
        return _call
    return operator.call  # no frame of ours between, which would count in deep recursion


_OFFERS_CALLEES = functools.partial(suspend_plain, None)  # what it calls may be captured


def _call(*flat: Any) -> Any:
    return call_flat(flat)


def hidden_codes() -> tuple[CodeType, ...]:
    """The code of ours that stands between the user's frames when a place runs."""
    miss = _weak_miss.__code__.co_consts
    inner = tuple(const for const in miss if isinstance(const, CodeType))
    methods = (Place.miss, Place._compile_alone, Recovery.__call__, _call, call_flat)
    return (*(method.__code__ for method in methods), *inner)
