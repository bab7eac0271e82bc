"""Graphs that nobody wrote give eager's results, gradients and changes under the native backend.

Bounded and always the same graphs in the suite; with DYNACAP_FUZZ_MINUTES (`make fuzz`) new ones
for that long.  What fails is shown as a program of the fewest operations that still do.
"""

import itertools
import os
import random
import time

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from dynacap.backends import compile_graph, lookup_backend
from dynacap.backends.verify.check import mismatches
from dynacap.backends.verify.copies import copied
from dynacap.backends.verify.reduce import Reduced, reduced
from dynacap.backends.verify.reproduction import program
from dynacap.backends.verify.run import run
from tests.fuzz.graphs import GraphWriter
from tests.fuzz.run import kind_of

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
MINUTES = float(os.environ.get("DYNACAP_FUZZ_MINUTES", "0"))
BACKEND = os.environ.get("FUZZED_BACKEND", "native")


def limits(examples: int) -> settings:
    """Settings that leave shrinking to `reduced`, which knows what a graph is."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=not MINUTES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


@st.composite
def graphs(draw: st.DrawFn) -> Reduced:
    """Graphs with their inputs."""

    def choose(below: int) -> int:
        return draw(st.integers(0, below - 1))

    made, inputs = GraphWriter(choose).write(2 + choose(14))
    return Reduced(made, inputs, 0)


def problem(made: Reduced) -> list[str]:
    """How compiled differs from eager, where eager itself can run and go backward."""
    if run(made.graph_module.forward, copied(made.inputs)).error is not None:
        return []
    backend = lookup_backend(BACKEND)
    try:
        graph_module = made.graph_module.__copy__()
        compiled = compile_graph(backend, graph_module, copied(made.inputs).values)
    except Exception as error:
        return [f"CRASH {type(error).__name__}: {error}"]
    return mismatches(made.graph_module, compiled, made.inputs)


def report(made: Reduced, told: list[str]) -> str:
    """A program of the fewest operations that still differ."""
    backend = lookup_backend(BACKEND)
    small = reduced(made.graph_module, backend, made.inputs, mismatches)
    return program(small, backend, told, "inputs.pt")


@pytest.mark.skipif(bool(MINUTES), reason="the hunt below does the same for longer")
@limits(40)
@given(graphs())
def test_generated_graphs(made: Reduced) -> None:
    told = problem(made)
    if told:
        pytest.fail(report(made, told))


@pytest.mark.skipif(not MINUTES, reason="only with DYNACAP_FUZZ_MINUTES, as make fuzz sets it")
@pytest.mark.timeout(0)
def test_hunt() -> None:
    found: dict[str, str] = {}
    end = time.monotonic() + 60 * MINUTES
    start = random.SystemRandom().randrange(10**9)

    @given(graphs())
    def hunt(made: Reduced) -> None:
        told = problem(made) if time.monotonic() < end else []
        if told and kind_of(told[0]) not in found:
            found[kind_of(told[0])] = report(made, told)
            print(found[kind_of(told[0])], flush=True)

    for number in itertools.count(start):
        if time.monotonic() >= end:
            break
        seed(number)(limits(50)(hunt))()
    assert not found, "\n\n".join(found.values())
