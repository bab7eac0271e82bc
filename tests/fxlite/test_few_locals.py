"""Large graphs run as functions with few local variables, and do the same."""

import operator
import traceback
import weakref
from typing import Any

import pytest

from dynacap.fxlite import Graph, GraphModule
from dynacap.fxlite.few_locals import generate_with_few_locals

COUNT = 300


def chain(count: int = COUNT) -> GraphModule:
    """``x * w0 + w0, ... `` with some results kept to the end, an attribute, and unused values."""
    graph = Graph()
    x = graph.placeholder("x")
    weights = [graph.placeholder(f"w_{i}") for i in range(count)]
    graph.placeholder("unused")
    kept = [x]
    for weight in weights:
        x = graph.call_function(operator.add, (graph.call_function(operator.mul, (x, weight)), 1))
        graph.call_function(operator.neg, (x,))
        if len(kept) < 5:
            kept.append(x)
    x = graph.call_function(operator.add, (x, graph.get_attr("bias")))
    graph.output((x, tuple(kept), {"last": weights[-1]}))
    return GraphModule({"bias": 10}, graph)


def inputs(count: int = COUNT) -> tuple[int, ...]:
    return (3, *((i % 3) - 1 for i in range(count)), 99)


def function(compiled: Any) -> Any:
    return getattr(compiled, "__func__", compiled)


def test_same_results() -> None:
    module = chain()
    run = module.by_position()
    assert run(*inputs()) == module.forward(*inputs())
    assert function(run).__code__.co_nlocals < 12
    assert function(module.forward).__code__.co_nlocals > COUNT


def test_line_for_line() -> None:
    graph = chain().graph
    few, readable = generate_with_few_locals(graph), graph.python_code()
    assert few is not None
    assert few.preamble == readable.preamble
    assert few.locations == readable.locations
    assert len(few.lines) == len(readable.lines)


def test_small_graphs_stay_readable() -> None:
    module = chain(4)
    assert module.by_position() is module.forward


@pytest.mark.parametrize("target", ["*rest", "**named"])
def test_inputs_that_are_not_by_position(target: str) -> None:
    graph = chain().graph
    graph.inserting_before(next(iter(graph.nodes)))
    graph.placeholder(target)
    assert generate_with_few_locals(graph) is None


def test_an_error_shows_the_readable_line() -> None:
    module = chain()
    values = list(inputs())
    values[7] = None  # type: ignore[call-overload]
    with pytest.raises(TypeError) as caught:
        module.by_position()(*values)
    shown = traceback.extract_tb(caught.value.__traceback__)[-1].line
    assert shown is not None
    assert "* w_6" in shown


class Value:
    """Something that can be watched; twice it is another."""

    def __mul__(self, other: object) -> "Value":
        result = Value()
        MADE.append(weakref.ref(result))
        return result


MADE: list[weakref.ref[Value]] = []


def test_results_are_let_go_after_their_last_use() -> None:
    alive: list[int] = []

    def count() -> None:
        alive.append(sum(ref() is not None for ref in MADE))

    graph = Graph()
    x = graph.placeholder("x")
    for _ in range(COUNT):
        x = graph.call_function(operator.mul, (x, 2))
        graph.call_function(count, ())
    graph.output((x,))
    GraphModule({}, graph).by_position()(Value())
    assert alive == [1] * COUNT
