"""Graphs that nobody wrote give eager's results, gradients and changes under the native backend.

Bounded and always the same graphs in the suite; with DYNACAP_FUZZ_MINUTES (`make fuzz`) new ones
for that long.  What fails is shown as a program of the fewest operations that still do.
"""

import copy
import os
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dynacap.backends import compile_graph, lookup_backend
from dynacap.backends.verify.check import mismatches
from dynacap.backends.verify.copies import copied
from dynacap.backends.verify.reduce import Reduced, count, reduced
from dynacap.backends.verify.reproduction import program
from dynacap.backends.verify.run import run
from dynacap.fxlite import GraphModule
from tests.fuzz.graphs import GraphWriter
from tests.fuzz.hunt import MINUTES, hunted, limits
from tests.fuzz.run import kind_of

pytestmark = [pytest.mark.torch, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
BACKEND = os.environ.get("FUZZED_BACKEND", "native")


@st.composite
def graphs(draw: st.DrawFn) -> Reduced:
    """Graphs with their inputs."""

    def choose(below: int) -> int:
        return draw(st.integers(0, below - 1))

    made, inputs = GraphWriter(choose).write(2 + choose(14))
    return Reduced(made, inputs, count(made))


def differences(graph_module: GraphModule, inputs: Sequence[Any]) -> list[str]:
    """How compiled differs from eager, where eager itself can run and go backward."""
    if run(graph_module.forward, copied(inputs)).error is not None:
        return []
    backend, spare = lookup_backend(BACKEND), copy.copy(graph_module)
    try:
        compiled = compile_graph(backend, spare, copied(inputs).values)
    except Exception as error:
        return [f"CRASH {type(error).__name__}: {' '.join(str(error).split()[:20])}"]
    return mismatches(graph_module, compiled, inputs)


def problem(made: Reduced) -> str:
    """The same in one text."""
    return "\n".join(differences(made.graph_module, made.inputs))


def report(made: Reduced) -> str:
    """A program of the fewest operations that still differ in the same way."""
    told = differences(made.graph_module, made.inputs)

    def differs(part: GraphModule, inputs: Sequence[Any]) -> bool:
        found = differences(part, inputs)
        return bool(found) and kind_of(found[0]) == kind_of(told[0])

    small = reduced(made.graph_module, made.inputs, differs)
    return program(small, lookup_backend(BACKEND), told, "inputs.pt")


@pytest.mark.skipif(bool(MINUTES), reason="the hunt below does the same for longer")
@limits(40)
@given(graphs())
def test_generated_graphs(made: Reduced) -> None:
    if problem(made):
        pytest.fail(report(made))


@pytest.mark.skipif(not MINUTES, reason="only with DYNACAP_FUZZ_MINUTES, as make fuzz sets it")
@pytest.mark.timeout(0)
def test_hunt() -> None:
    found = hunted(graphs(), problem, report)
    assert not found, "\n\n".join(found.values())
