"""How compiled callables behave for a while: the stance, and whether a graph break is an error.

Both are global, as those of torch are, and meant for context managers around calls.
"""

from __future__ import annotations

import contextlib
import weakref
from typing import Any, NamedTuple

from dynacap.errors import RecompileError

STANCES = frozenset(
    {"default", "eager_then_compile", "force_eager", "eager_on_recompile", "fail_on_recompile"}
)


class Stance(NamedTuple):
    """What is done where code would have to be compiled; ``backend`` is used in place of others."""

    name: str = "default"
    backend: Any = None


class _State:
    def __init__(self) -> None:
        self.stance = Stance()
        self.error_on_break: bool | None = None


STATE = _State()
PLACES: weakref.WeakSet[Any] = weakref.WeakSet()


def take(stance: Stance) -> None:
    """Make this the stance; under ``force_eager`` nothing that is compiled is used."""
    before, STATE.stance = STATE.stance, stance
    away = stance.name == "force_eager"
    if away != (before.name == "force_eager"):
        for place in list(PLACES):
            _park(place, away)


def _park(place: Any, away: bool) -> None:
    """Take the entries of a place out of its table for a while, or put them back."""
    entries, place.parked = place.parked, place.table.entries if away else ()
    place.table.clear()
    for entry in reversed(entries):
        place.table.add(entry.checker, entry.fn)


def stays_plain(place: Any) -> bool:
    """Whether the stance has what would have to be compiled at a place run plain."""
    name = STATE.stance.name
    if name == "fail_on_recompile":
        raise RecompileError(f"{place.name} is to be compiled, and the stance is {name}")
    if name == "eager_then_compile":
        seen, place.seen = place.seen, True
        return not seen and place.sites is None
    return name in ("force_eager", "eager_on_recompile")


class Restoring(contextlib.ContextDecorator):
    """A stance that was set; as a context manager or decorator it ends with the block."""

    def __init__(self, stance: Stance) -> None:
        self.stance = stance
        self.before = STATE.stance
        take(stance)

    def __enter__(self) -> None:
        take(self.stance)

    def __exit__(self, *raised: object) -> None:
        take(self.before)

    def __call__(self, function: Any) -> Any:
        take(self.before)  # only set while the function runs
        return super().__call__(function)


class ErrorOnGraphBreak(contextlib.ContextDecorator):
    """Inside, a graph break is an error, or is none whatever ``fullgraph`` says.

    It may stand in compiled code too: there capture follows it as it follows any code.
    """

    def __init__(self, error_on_graph_break: bool) -> None:
        self.wanted = error_on_graph_break
        self.before: list[bool | None] = []

    def __enter__(self) -> None:
        self.before.append(STATE.error_on_break)
        STATE.error_on_break = self.wanted

    def __exit__(self, *raised: object) -> None:
        STATE.error_on_break = self.before.pop()


def breaks_are_errors(machine: Any, fullgraph: bool) -> bool:
    """Whether a break is an error where a capture stands, which may have changed that itself."""
    mirror = machine.mirrors.get(id(STATE)) if machine is not None else None
    wanted = STATE.error_on_break
    if mirror is not None:
        wanted = machine.find_attribute(mirror, "error_on_break").constant()
    return fullgraph if wanted is None else wanted
