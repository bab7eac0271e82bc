"""The entries of a compiled callable: what each expects, and which would take a call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dynacap.cache import Session
from dynacap.errors import UserError
from dynacap.guards import Entry, Failure, Guard, GuardSet, failures
from dynacap.guards.guard_set import describe_guard
from dynacap.guards.plan import Plan
from dynacap.guards.source import Source

_INDENT = "  "


@dataclass(frozen=True)
class EntryGuards:
    """One entry: where it starts, how often it ran, and its guards; ``str()`` shows them as a tree
    along the objects that they are about."""

    place: str
    hits: int
    guards: tuple[Guard, ...]

    def __str__(self) -> str:
        lines = [f"{self.place}: {len(self.guards)} guards, ran {self.hits} times"]
        return "\n".join([*lines, *_tree(self.guards)])


@dataclass(frozen=True)
class GuardReport:
    """All entries of a compiled callable, place by place, the one that ran last first."""

    entries: tuple[EntryGuards, ...]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.entries)) or "no entries: nothing is captured yet"


@dataclass(frozen=True)
class EntryMatch:
    """Whether an entry would take a call: ``failures`` are the guards that do not hold."""

    number: int
    hits: int
    failures: tuple[Failure, ...]

    @property
    def fits(self) -> bool:
        """Whether all guards hold."""
        return not self.failures

    def __str__(self) -> str:
        head = f"entry {self.number} (ran {self.hits} times)"
        if self.fits:
            return f"{head} fits"
        lines = [f"{head} does not fit:", *(f"{_INDENT}{failure}" for failure in self.failures)]
        return "\n".join(lines)


@dataclass(frozen=True)
class Why:
    """What a call with certain arguments would do, without doing it."""

    place: str
    matches: tuple[EntryMatch, ...]

    @property
    def entry(self) -> EntryMatch | None:
        """The entry that would run; None if the call would be captured anew."""
        return next((match for match in self.matches if match.fits), None)

    def __str__(self) -> str:
        found = self.entry
        verdict = (
            f"entry {found.number} would run"
            if found is not None
            else "no entry fits: it would be captured anew"
            if self.matches
            else "nothing is captured yet"
        )
        return "\n".join([f"{self.place}: {verdict}", *map(str, self.matches)])


def guards_of(compiled: Any) -> GuardReport:
    """The guards of every entry of a compiled callable."""
    session = session_of("guards", compiled)
    entries = [
        EntryGuards(place.name, entry.hits, tuple(entry.checker.guards))
        for place in session.places()
        for entry in place.table.entries
    ]
    return GuardReport(tuple(entries))


def why_of(place: Any, flat: tuple[object, ...]) -> Why:
    """Which entry of a place would take a flat vector, and why the others would not."""
    matches = [
        EntryMatch(number, entry.hits, tuple(_failing(entry, flat)))
        for number, entry in enumerate(place.table.entries)
    ]
    return Why(place.name, tuple(matches))


def session_of(name: str, compiled: Any) -> Session:
    """What a compiled callable's ``compile`` call owns; UserError for any other object."""
    session = getattr(compiled, "_dynacap_session", None)
    if not isinstance(session, Session):
        raise UserError(
            f"{name}() got {compiled!r} ({type(compiled).__name__}); it takes what"
            " dynacap.compile() returned"
        )
    return session


def _failing(entry: Entry, flat: tuple[object, ...]) -> Iterator[Failure]:
    guards: GuardSet = entry.checker.guards
    return failures(Plan(guards, entry.checker.slots), flat)


def _tree(guards: tuple[Guard, ...]) -> Iterator[str]:
    """A line for each object on the way to what is guarded, and what is expected of it."""
    by_source: dict[Source, list[Guard]] = {}
    rest = []
    for guard in guards:
        if len(guard.sources) == 1:
            for step in _path(guard.sources[0]):
                by_source.setdefault(step, [])
            by_source[guard.sources[0]].append(guard)
        else:
            rest.append(guard)
    below: dict[Source | None, list[Source]] = {}
    for source in by_source:
        below.setdefault(source.base, []).append(source)
    yield from (_INDENT + describe_guard(guard) for guard in rest)
    for root in below.get(None, ()):
        yield from _branch(root, below, by_source)


def _path(source: Source) -> list[Source]:
    steps = []
    at: Source | None = source
    while at is not None:
        steps.append(at)
        at = at.base
    return steps[::-1]


def _branch(
    root: Source, below: dict[Source | None, list[Source]], guards: dict[Source, list[Guard]]
) -> Iterator[str]:
    pending = [(root, 1)]
    while pending:
        source, depth = pending.pop()
        yield _INDENT * depth + source.name()
        for guard in guards[source]:
            origin = getattr(guard, "origin", None)
            where = f"  # {origin}" if origin is not None else ""
            yield _INDENT * (depth + 1) + f"- {guard.expectation()}{where}"
        pending += [(child, depth + 1) for child in reversed(below.get(source, []))]
