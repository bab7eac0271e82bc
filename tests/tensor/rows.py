"""A table of tensors as arguments: how a row is written, and how it is run.

A row is a program, and the calls that are made of it in turn. Compiled and eager are compared in
all that can be seen; and a row says why its capture breaks, if it does.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dynacap
from dynacap.hook import choose_hook
from dynacap.testing import Call, Scenario, check_scenario

# What dies at a break hangs on what the backend and the test hold, what a cache holds on what ran.
INCIDENTAL = {"finalizer", "lru-cache"}
BACKENDS = ("eager", "aot_eager", "native")
OURS = ("eager", "native")
Around = Callable[[], contextlib.AbstractContextManager[Any]]


@dataclass(frozen=True)
class Row:
    """One program and its calls, which are made anew for each side."""

    function: Callable[..., Any]
    calls: Callable[[], Sequence[tuple[Any, ...]]]
    why: frozenset[str]  # the reasons of its breaks
    backends: tuple[str, ...]
    around: Sequence[Around]  # what each call is made under

    @property
    def name(self) -> str:
        return self.function.__name__

    def check(self, backend: str) -> None:
        """Raise unless compiled does what eager does, and is captured as the row says."""
        outcome = check_scenario(self.build, lambda f: dynacap.compile(f, backend=backend))
        found = {_slug(reason) for reason in outcome.reasons} - INCIDENTAL
        missed = frozenset[str]()
        if not choose_hook().capabilities.replaces_running_frame:
            missed = self.why - found  # of functions whose first call it cannot replace
        assert found | missed == self.why, f"breaks for {sorted(found)}"

    def build(self) -> Scenario:
        """The scenario on fresh tensors."""
        entered = contextlib.ExitStack()

        def before(index: int) -> None:
            if self.around:
                entered.enter_context(self.around[index]())

        def after(index: int, result: Any) -> None:
            entered.close()

        return Scenario(self.function, [Call(args) for args in self.calls()], before, after)


def _slug(reason: str) -> str:
    """The name of a reason: that of a break, or of a frame that is left alone for one."""
    return reason.removeprefix("graph break [").partition(":")[0].rstrip("]")


class Table:
    """The rows of a file."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def __call__(
        self,
        calls: Callable[[], Sequence[tuple[Any, ...]]],
        *why: str,
        backends: tuple[str, ...] = BACKENDS,
        around: Sequence[Around] = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorate a program: a row, with its calls and the reasons of its breaks."""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            self.rows.append(Row(function, calls, frozenset(why), backends, around))
            return function

        return decorate

    def params(self) -> list[Any]:
        """Each row with each of its backends, for pytest."""
        return [(row, backend) for row in self.rows for backend in row.backends]
