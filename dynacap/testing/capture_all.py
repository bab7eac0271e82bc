"""Capture every function under a predicate for the length of a whole run, and count the frames.

In use, dynacap captures what was compiled and what that calls.  Here the frame hook is held active
over code that knows nothing of dynacap (a test suite, say), so that each function the predicate
wants is captured when it is called, tensor operations or not.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import Any

from dynacap.api import make_driver
from dynacap.backends import eager
from dynacap.cache import Options, Session
from dynacap.config import config
from dynacap.errors import DynacapError
from dynacap.executor import machine
from dynacap.executor.chain import Site
from dynacap.hook.functions import search_only
from dynacap.place import Place

Wanted = Callable[[FunctionType, CodeType], bool]
ENTRIES = 8  # for one piece of code: what users have
CAPTURES = 512
WORK = 25_000  # instructions that a loop may run without any operation
DEAR = 0.3  # seconds that captures of one code object may take where it was captured before
NEVER_AGAIN = "never-again"  # the reason, among those of breaks


@dataclass
class Frames:
    """What became of the frames of one code object, counted by captures.

    ``whole``: captured from start to end; ``pieces``: captured with a break; ``inlined``: captured
    within its caller; ``plain`` and ``breaks``: the reasons, with their counts.  ``seconds``: what
    captures took of pieces that had been captured before.
    """

    whole: int = 0
    pieces: int = 0
    inlined: int = 0
    plain: Counter[str] = field(default_factory=Counter)
    breaks: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def kind(self) -> str:
        """One word for all of it: ``whole``, ``pieces`` or ``plain``."""
        if not self.whole + self.pieces + self.inlined:
            return "plain"
        return "pieces" if self.pieces or self.breaks or self.plain else "whole"


@contextmanager
def _sooner_left_alone() -> Iterator[None]:
    """Loops of tests are without any operation, and nobody runs them again."""
    before, machine.MAX_WORK = machine.MAX_WORK, WORK
    try:
        yield
    finally:
        machine.MAX_WORK = before


@contextmanager
def _all_searched() -> Iterator[None]:
    """Functions of the library are wanted too."""
    before = search_only(lambda code: True)
    try:
        yield
    finally:
        search_only(before)


class CaptureAll:
    """Captures what ``wanted`` wants while :meth:`active`; ``frames`` tells of it by code."""

    def __init__(self, wanted: Wanted) -> None:
        self.frames: dict[CodeType, Frames] = {}
        self.internal_errors: Counter[str] = Counter()
        self.seconds = 0.0
        self._wanted = wanted
        make_place = functools.partial(_CountedPlace, self)
        self._driver = make_driver(Options(eager, everything=True), make_place, wanted)
        self.hook = self._driver.hook

    @contextmanager
    def active(self) -> Iterator[None]:
        """Offer the frames of this thread; dynacap's own errors are raised."""
        patch = config.patch(
            recompile_limit=ENTRIES,
            accumulated_recompile_limit=CAPTURES,
            raise_internal_errors=True,
        )
        with patch, _sooner_left_alone(), _all_searched(), self.hook.active(self._driver.offer):
            yield

    def take(self, function: FunctionType) -> None:
        """Let already the first call of a function be captured, where the hook needs that said."""
        if self._wanted(function, self.hook.original_code(function)):
            self.hook.take(function)

    def frames_of(self, code: CodeType) -> Frames:
        """The record of a code object."""
        return self.frames.setdefault(code, Frames())


class _CountedPlace(Place):
    """A place that tells how its captures went."""

    def __init__(
        self, counts: CaptureAll, session: Session, sites: tuple[Site, ...] | None, code: CodeType
    ) -> None:
        self._counts = counts
        super().__init__(session, sites, code)

    def _compile(self, flat: tuple[Any, ...]) -> Any:
        started, began = time.perf_counter(), time.thread_time()
        again = bool(self.table.entries)
        try:
            return super()._compile(flat)
        except Exception as error:
            if not isinstance(error, DynacapError):
                self._counts.internal_errors[f"{type(error).__name__}: {error} in {self.name}"] += 1
            raise
        finally:
            self._counts.seconds += time.perf_counter() - started
            if again:
                self._counts.frames_of(self.code).seconds += time.thread_time() - began

    def _over_limit(self, flat: tuple[Any, ...]) -> bool:
        """Code that has something new in every round is left alone sooner, if that is dear."""
        frames, entries = self._counts.frames_of(self.code), self.table.entries
        if frames.seconds < DEAR or not entries or any(entry.hits for entry in entries):
            return super()._over_limit(flat)
        frames.breaks[NEVER_AGAIN] = 1
        return True

    def _store_region(
        self, session: Session, draft: Any, flat: tuple[Any, ...], started: float
    ) -> Any:
        stored = super()._store_region(session, draft, flat, started)
        region = draft.region
        for code in region.machine.entered:
            self._counts.frames_of(code).inlined += 1
        for site in region.sites[-1:]:
            frames = self._counts.frames_of(site.code)
            frames.breaks[region.reason.reason] += 1
        if self.sites is None:
            frames = self._counts.frames_of(self.code)
            frames.whole += region.result is not None
            frames.pieces += region.result is None
        return stored

    def _store_skip(
        self,
        session: Session,
        guards: Any,
        refusal: DynacapError,
        flat: tuple[Any, ...],
        started: float,
    ) -> Any:
        frames = self._counts.frames_of(self.code)
        reason = getattr(refusal, "reason", type(refusal).__name__)
        (frames.plain if self.sites is None else frames.breaks)[reason] += 1
        return super()._store_skip(session, guards, refusal, flat, started)


def functions_in(namespace: dict[str, Any], module: str) -> Iterator[FunctionType]:
    """The functions of a module, and of the classes in it; runs no code of theirs."""
    pending, seen = [namespace], {id(namespace)}
    while pending:
        for value in list(pending.pop().values()):
            if type(value) in (staticmethod, classmethod):
                value = value.__func__
            if type(value) is FunctionType:
                yield value
            elif issubclass(type(value), type) and id(value) not in seen:
                seen.add(id(value))
                members = dict(type.__dict__["__dict__"].__get__(value))
                if members.get("__module__") == module:
                    pending.append(members)
