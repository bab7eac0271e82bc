"""Why a check fails: which guard, on what, expected and found, and the user's line behind it."""

from collections.abc import Iterator
from dataclasses import dataclass

from dynacap.guards.kinds import Guard, Origin
from dynacap.guards.plan import ROOT, Plan
from dynacap.guards.raw import MISSING

_UNREADABLE = "something that cannot be read"


@dataclass(frozen=True)
class Failure:
    """One guard that does not hold; ``guard`` is None where a slot's value is not there."""

    guard: Guard | None
    subject: str
    expected: str
    found: str
    origin: Origin | None

    def __str__(self) -> str:
        text = f"expected that {self.subject} {self.expected}; found {self.found}"
        return text if self.origin is None else f"{text} (needed at {self.origin})"


def failures(plan: Plan, flat: tuple[object, ...]) -> Iterator[Failure]:
    """Every guard that does not hold, in the order of the checkers.

    What hangs below a value that is not there is passed over.  Raises nothing: a guard whose test
    or description raises is reported as failed.
    """
    for guard in plan.state:
        if not _holds(guard, ()):
            yield _failure(guard, ())
    values: list[object] = []
    for node in plan.nodes:
        base = flat if node.base == ROOT else values[node.base]
        value = MISSING if base is MISSING else _step(node.source.step, base)
        values.append(value)
        if value is MISSING and base is not MISSING:
            yield _absent(node.source.name(), node.guards)
        elif value is not MISSING:
            yield from (_failure(g, (value,)) for g in node.guards if not _holds(g, (value,)))
    for relation in plan.relations:
        group = tuple(values[position] for position in relation.nodes)
        if MISSING not in map(_marker, group) and not _holds(relation.guard, group):
            yield _failure(relation.guard, group)


def _marker(value: object) -> object:
    """MISSING itself, or something that compares without running code of the value's."""
    return value if value is MISSING else None


def _step(step: object, base: object) -> object:
    try:
        return step(base)  # type: ignore[operator]
    except Exception:
        return MISSING


def _holds(guard: Guard, values: tuple[object, ...]) -> bool:
    try:
        return guard.holds(*values)
    except Exception:
        return False


def _absent(subject: str, guards: list[Guard]) -> Failure:
    first = guards[0] if guards else None
    if first is None:
        return Failure(None, subject, "is there", "nothing there", None)
    return Failure(first, subject, first.expectation(), "nothing there", _origin(first))


def _failure(guard: Guard, values: tuple[object, ...]) -> Failure:
    try:
        subject, expected = guard.subject(), guard.expectation()
    except Exception:
        subject, expected = guard.kind, "is as before"
    try:
        found = guard.finding(*values)
    except Exception:
        found = _UNREADABLE
    return Failure(guard, subject, expected, found, _origin(guard))


def _origin(guard: Guard) -> Origin | None:
    return getattr(guard, "origin", None)


def first_failure(plan: Plan, flat: tuple[object, ...]) -> Failure | None:
    """The first guard that does not hold, or None."""
    return next(failures(plan, flat), None)
