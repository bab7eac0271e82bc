"""Check that compiled code does what plain Python does: functions, and decorators for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dynacap
from dynacap.testing.difference import Tolerance, differences
from dynacap.testing.observe import AnyFunction, Call, Scenario, copied, observe

__all__ = ["Mismatch", "Outcome", "Program", "check_same", "check_scenario", "compare"]

Compile = Callable[[AnyFunction], AnyFunction]
Counters = Callable[[], Mapping[str, Any]]
SHOWN = 12
NOTHING_TO_CAPTURE = "no tensor operations"  # the reason for a skip that costs nothing
ENGINE: Any = dynacap  # its names are loaded when they are asked for


class Mismatch(AssertionError):
    """Compiled code was seen to do something else than plain Python."""


@dataclass(frozen=True)
class Outcome:
    """What compiling a scenario came to: differences from eager, and what was captured."""

    problems: tuple[str, ...]
    counters: dict[str, int]
    reasons: dict[str, int]

    @property
    def skipped(self) -> int:
        """Frames that ran as plain Python although they hold tensor operations."""
        return self.counters.get("skipped", 0) - self.reasons.get(NOTHING_TO_CAPTURE, 0)

    def __str__(self) -> str:
        lines = [f"  {problem}" for problem in self.problems[:SHOWN]]
        if len(self.problems) > SHOWN:
            lines.append(f"  ... and {len(self.problems) - SHOWN} more")
        return "\n".join(lines)


def compare(
    build: Callable[[], Scenario],
    compile: Compile | None = None,
    *,
    tolerance: Tolerance | None = None,
    counters: Counters | None = None,
) -> Outcome:
    """Build the scenario twice, run it eager and compiled, and return what differs.

    `compile` and `counters` are dynacap's, unless another compiler's are given.
    """
    compile = compile or ENGINE.compile
    counters = counters or ENGINE.counters
    expected = observe(build())
    start = totals(counters)
    found = observe(build(), compile)
    end = totals(counters)
    names = [*(f"call {index}" for index in range(len(expected) - 1)), "all calls"]
    problems = [
        line
        for name, left, right in zip(names, expected, found, strict=True)
        for line in differences(left, right, name, tolerance)
    ]
    gained = {name: value - start[0].get(name, 0) for name, value in end[0].items()}
    reasons = {k: v - start[1].get(k, 0) for k, v in end[1].items()}
    return Outcome(tuple(problems), gained, {k: v for k, v in reasons.items() if v})


def totals(counters: Counters) -> tuple[dict[str, int], dict[str, int]]:
    """What a compiler has counted so far: the numbers, and the reasons for breaks."""
    now = dict(counters())
    reasons = dict(now.pop("reasons", {}))
    return {name: value for name, value in now.items() if isinstance(value, int)}, reasons


def check_scenario(
    build: Callable[[], Scenario],
    compile: Compile | None = None,
    *,
    graphs: int | None = None,
    breaks: int | None = None,
    tolerance: Tolerance | None = None,
) -> Outcome:
    """Raise `Mismatch` unless the compiled scenario does what eager does.

    `graphs` and `breaks`, where given, are what capture must come to.
    """
    try:
        outcome = compare(build, compile, tolerance=tolerance)
    finally:
        ENGINE.reset()
    if outcome.problems:
        raise Mismatch(f"WRONG: compiled is not eager in {len(outcome.problems)} places\n{outcome}")
    for name, wanted in (("breaks", breaks), ("graphs", graphs)):
        got = outcome.counters.get(name, 0)
        if wanted is not None and got != wanted:
            raise Mismatch(f"CAPTURE: {got} {name} instead of {wanted}; {outcome.reasons}")
    if breaks == 0 and outcome.skipped > 0:
        raise Mismatch(f"CAPTURE: a frame ran as plain Python; {outcome.reasons}")
    return outcome


def check_same(
    function: AnyFunction,
    *calls: Call | tuple[Any, ...],
    compile: Compile | None = None,
    graphs: int | None = None,
    breaks: int | None = None,
    tolerance: Tolerance | None = None,
    backward: bool = True,
) -> Outcome:
    """Call `function` eager and compiled on copies of the same arguments, and compare.

    Each of `calls` is a tuple of arguments or a `call(...)`. Modules are copied for each side;
    state that a plain function keeps in globals or closures is not: use `check_scenario` for such.
    """
    made = [one if isinstance(one, Call) else Call(one) for one in calls]
    for one in made:
        if not isinstance(one.args, tuple):
            raise TypeError(f"a call is a tuple of arguments or a call(...), not {one.args!r}")

    def build() -> Scenario:
        return replace(copied(function, made), backward=backward)

    return check_scenario(build, compile, graphs=graphs, breaks=breaks, tolerance=tolerance)


@dataclass(frozen=True)
class Program:
    """A differential test: how to build the scenario, and what its capture should come to."""

    name: str
    build: Callable[[], Scenario]
    graphs: int | None
    breaks: int | None

    def check(self, compile: Compile | None = None) -> Outcome:
        """Raise `Mismatch` unless compiled and eager agree and capture is as expected."""
        return check_scenario(self.build, compile, graphs=self.graphs, breaks=self.breaks)


def as_test(made: Program, original: Callable[..., Any]) -> Callable[[], None]:
    """A test function without arguments, under the original's name; it keeps its outcome."""

    def test() -> None:
        vars(test)["outcome"] = made.check()

    test.__name__ = test.__qualname__ = made.name
    test.__doc__, test.__module__ = original.__doc__, original.__module__
    vars(test)["program"] = made
    return test


def program(
    *calls: Call | tuple[Any, ...],
    graphs: int | None = None,
    breaks: int | None = 0,
    watch: Sequence[str] = (),
    backward: bool = True,
) -> Callable[[AnyFunction], Callable[[], None]]:
    """Make a plain function a differential test that runs the given calls, by default twice each.

    One call is made twice, so that both the capture and the reuse are seen. `watch` names globals
    of the function's module that it changes: they are compared, and put back after each run.
    `breaks` is 0 unless said otherwise: most programs are meant to be captured whole.
    """
    made = [one if isinstance(one, Call) else Call(one) for one in calls] or [Call()]
    if len(made) == 1:
        made = made * 2

    def decorate(function: AnyFunction) -> Callable[[], None]:
        space = function.__globals__
        initial = {name: space[name] for name in watch}

        def build() -> Scenario:
            fresh = copied(function, made)
            space.update(copied_values(initial))
            return replace(
                fresh,
                watch=(lambda: {name: space[name] for name in watch}) if watch else None,
                backward=backward,
            )

        return as_test(Program(function.__name__, build, graphs, breaks), function)

    return decorate


def copied_values(values: dict[str, Any]) -> dict[str, Any]:
    """Deep copies of the values, as arguments are copied."""
    return dict(copied(len, [Call(kwargs=values)]).calls[0].kwargs)


def scenario(
    *, graphs: int | None = None, breaks: int | None = 0
) -> Callable[[Callable[[], Scenario]], Callable[[], None]]:
    """Make a function that builds a `Scenario` a differential test; it is called once per side."""

    def decorate(build: Callable[[], Scenario]) -> Callable[[], None]:
        return as_test(Program(build.__name__, build, graphs, breaks), build)

    return decorate
