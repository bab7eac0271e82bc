"""What one ``compile`` call owns: its tables of entries, its limits, and what it learned.

Each table belongs to one place: the entry of a function, or the point at which a region goes on
after a graph break.  A miss captures; whatever goes wrong then, the place runs as plain Python.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynacap import log, totals
from dynacap.backends import eager
from dynacap.backends.registry import Backend
from dynacap.capture import RAISED, Region, capture
from dynacap.codegen.runtime import call_flat
from dynacap.config import config
from dynacap.convert import Built, build_entry
from dynacap.errors import (
    DynacapError,
    FailOnRecompileLimitHit,
    GraphBreak,
    RecompileError,
    SkipFrame,
    Unsupported,
    UnsupportedPython,
)
from dynacap.executor.chain import Site
from dynacap.guards import make_checker, make_table
from dynacap.guards.protocol import EntryTable
from dynacap.guards.source import Local, Source
from dynacap.opcodes import decode
from dynacap.suspend import Suspend

_breaks_log = log.channel("breaks")
_guards_log = log.channel("guards")
_recompiles_log = log.channel("recompiles")


@dataclass
class Capture:
    """A record of one capture, for ``explain`` and the counters."""

    place: str
    built: Built | None
    guards: tuple[Any, ...]
    reason: GraphBreak | None
    seconds: float
    skipped: str | None = None


@dataclass
class Options:
    """The arguments of ``compile`` that capture needs."""

    backend: Backend = eager
    fullgraph: bool = False
    dynamic: bool | None = None


@dataclass(eq=False)
class Session:
    """Everything that belongs to one ``compile`` call."""

    options: Options
    captures: list[Capture] = field(default_factory=list)
    tables: dict[Any, Place] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    again: Any = None  # compiles another model with the same options

    def function_place(self, function: Any) -> Place:
        """The place at the entry of a function's code."""
        code = function.__code__
        return self._place(("function", id(code)), None, code)

    def piece(self, sites: tuple[Site, ...]) -> Place:
        """The place at which frames at these sites go on."""
        key = tuple((id(site.code), site.point) for site in sites)
        return self._place(key, sites, sites[-1].code)

    def _place(self, key: Any, sites: tuple[Site, ...] | None, code: Any) -> Place:
        found = self.tables.get(key)
        if found is None:
            with self.lock:
                found = self.tables.setdefault(key, Place(self, sites, code))
        return found

    def clear(self) -> None:
        """Drop every entry."""
        for place in list(self.tables.values()):
            place.table.clear()
        self.tables.clear()
        self.captures.clear()


class Place:
    """The entries of one place; ``table`` is called with the flat vector."""

    def __init__(self, session: Session, sites: tuple[Site, ...] | None, code: Any) -> None:
        self.session = session
        self.sites = sites
        self.code = code  # keeps the code alive, since the session knows it by id
        self.table: EntryTable = make_table(self.miss)
        self.lock = threading.Lock()
        self.failures = 0
        self.compiled = 0

    @property
    def name(self) -> str:
        """The user's function and line."""
        line = self.code.co_firstlineno
        if self.sites is not None:
            site = self.sites[-1]
            line = decode(site.code).instructions[site.point.index].line or line
        return f"{self.code.co_qualname} ({self.code.co_filename}:{line})"

    def miss(self, *flat: Any) -> Any:
        """No entry fits: capture, unless that is in progress, hopeless, or over the limit."""
        if not self.lock.acquire(blocking=False):
            return self.plain(flat)
        try:
            fn_and_slots = self._compile(flat)
        finally:
            self.lock.release()
        if fn_and_slots is None:
            return self.plain(flat)
        return self.table(*flat)

    def plain(self, flat: tuple[Any, ...]) -> Any:
        """Run as plain Python."""
        if self.sites is None:
            return call_flat(flat)
        return Suspend(self.sites, flat, plain=True)

    # -- capture ---------------------------------------------------------------------------------
    def _compile(self, flat: tuple[Any, ...]) -> Built | None:
        if self.failures >= 2 or self._over_limit(flat):
            return None
        self._explain_recompile(flat)
        started = time.perf_counter()
        try:
            region, built = self._capture(flat)
            self._store(region, built, flat, started)
        except (Unsupported, SkipFrame, UnsupportedPython) as refusal:
            if isinstance(refusal, Unsupported):
                raise
            self._skip(str(refusal), started)
            return None
        except GraphBreak as reason:
            if self.session.options.fullgraph:
                raise Unsupported.from_break(reason) from None
            self._skip(str(reason), started)
            return None
        except DynacapError:
            raise
        except Exception as error:
            self._internal(error, started)
            return None
        return built

    def _capture(self, flat: tuple[Any, ...]) -> tuple[Region, Built]:
        options = self.session.options
        region = capture(self.sites, flat)
        if options.fullgraph and region.reason is not None and region.reason.reason != RAISED:
            raise Unsupported.from_break(region.reason)
        built = build_entry(region, options.backend, self.sites, self._flat_sources(flat))
        if built.graph is None and region.result is not None:
            built.fn = _PlainEntry(self)
            built.slots = tuple(self._flat_sources(flat))
        return region, built

    def _flat_sources(self, flat: tuple[Any, ...]) -> list[Source]:
        return [Local(index, f"arg{index}") for index in range(len(flat))]

    def _store(self, region: Region, built: Built, flat: tuple[Any, ...], started: float) -> None:
        guards = region.machine.guards
        checker = make_checker(guards, built.slots)
        if checker.check(flat) is None:
            failure = checker.explain(flat)
            raise SkipFrame("guards-do-not-hold", f"right after capture: {failure}")
        self.table.add(checker, built.fn)
        self.compiled += 1
        plain = isinstance(built.fn, _PlainEntry) and self.sites is None
        skipped = "no tensor operations" if plain else None
        reason = region.reason
        if reason is not None and reason.reason == RAISED:
            reason = None  # the program raises: not a break of the graph
        totals.add_capture(built.op_count, reason, self.compiled > 1, skipped)
        self._log(reason, guards)
        seconds = time.perf_counter() - started
        self.session.captures.append(
            Capture(self.name, built, tuple(guards), reason, seconds, skipped)
        )

    def _log(self, reason: GraphBreak | None, guards: Any) -> None:
        if reason is not None and _breaks_log.enabled:
            _breaks_log.emit(
                str(reason), reason=reason.reason, detail=reason.detail, hint=reason.hint,
                stack=[str(frame) for frame in reason.stack],
            )  # fmt: skip
        if _guards_log.enabled:
            _guards_log.emit(f"{self.name}: {len(guards)} guards\n{guards}", count=len(guards))

    def _skip(self, why: str, started: float) -> None:
        self.failures += 1
        totals.add_skip(why)
        seconds = time.perf_counter() - started
        self.session.captures.append(Capture(self.name, None, (), None, seconds, why))
        if _breaks_log.enabled:
            _breaks_log.emit(f"{self.name} runs as plain Python: {why}", reason=why)

    def _internal(self, error: Exception, started: float) -> None:
        if config.raise_internal_errors:
            raise error
        log.warn_once(
            ("internal", id(self.code), type(error)),
            f"{self.name} runs as plain Python: an error inside dynacap"
            f" ({type(error).__name__}: {error}). Your program is not affected; please report it"
            " with the traceback that config.raise_internal_errors = True gives.",
        )
        self._skip(f"internal error: {type(error).__name__}: {error}", started)

    # -- recompiles ------------------------------------------------------------------------------
    def _over_limit(self, flat: tuple[Any, ...]) -> bool:
        if len(self.table.entries) < config.recompile_limit:
            return False
        text = self._failures_text(flat)
        if config.fail_on_recompile_limit_hit:
            raise FailOnRecompileLimitHit(f"{self.name}: {text}")
        log.warn_once(
            ("limit", id(self)),
            f"{self.name} reached the recompile limit ({config.recompile_limit}); it keeps its"
            f" entries and runs as plain Python where none fits. Guards that failed:\n{text}\n"
            "What to do: keep the value the same between calls, pass a tensor instead of a number,"
            " or raise dynacap.config.recompile_limit.",
        )
        return True

    def _explain_recompile(self, flat: tuple[Any, ...]) -> None:
        if not self.table.entries:
            return
        if config.error_on_recompile:
            raise RecompileError(f"{self.name} is recompiled: {self._failures_text(flat)}")
        if _recompiles_log.enabled:
            text = self._failures_text(flat)
            _recompiles_log.emit(f"recompiling {self.name}:\n{text}", place=self.name)

    def _failures_text(self, flat: tuple[Any, ...]) -> str:
        failures = [entry.checker.explain(flat) for entry in self.table.entries]
        return "\n".join(f"  {failure}" for failure in failures if failure is not None)


class _PlainEntry:
    """The entry of a region without tensor operations: the user's own code, under guards."""

    def __init__(self, place: Place) -> None:
        self.plain: Callable[[tuple[Any, ...]], Any] = place.plain

    def __call__(self, *flat: Any) -> Any:
        return self.plain(flat)
