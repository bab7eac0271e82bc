"""How long and with which settings is fuzzed: bounded in the suite, by the clock in `make fuzz`."""

import itertools
import os
import random
import time
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from tests.fuzz.run import kind_of

T = TypeVar("T")
MINUTES = float(os.environ.get("DYNACAP_FUZZ_MINUTES", "0"))


def limits(examples: int) -> settings:
    """Settings that leave shrinking to those who know what is being shrunk."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=not MINUTES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def hunted(
    strategy: st.SearchStrategy[T],
    problem: Callable[[T], str],
    report: Callable[[T], str],
) -> dict[str, str]:
    """What MINUTES of looking find: a report for each kind of problem, shown as soon as it is."""
    found: dict[str, str] = {}
    end = time.monotonic() + 60 * MINUTES

    def look(made: T) -> None:
        told = problem(made) if time.monotonic() < end else ""
        if told and kind_of(told) not in found:
            found[kind_of(told)] = report(made)
            print(found[kind_of(told)], flush=True)

    for number in itertools.count(random.SystemRandom().randrange(10**9)):
        if time.monotonic() >= end:
            break
        seed(number)(limits(50)(given(strategy)(look)))()
    return found
