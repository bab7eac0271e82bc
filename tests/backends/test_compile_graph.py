"""What happens around the call of a backend: checks, failures, the fallback to eager."""

import functools
import logging
import operator
from typing import Any

import pytest

from dynacap.backends import backend_name, compile_graph, eager, lookup_backend
from dynacap.config import config
from dynacap.errors import BackendCompilerFailed
from dynacap.fxlite import Graph, GraphModule, Interpreter


def sample() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    total = graph.call_function(operator.add, (x, 1))
    total.meta["source_loc"] = (__file__, 1, "user_function")
    graph.output((total,))
    return GraphModule({}, graph, "the_graph")


def test_eager_is_the_generated_function_itself() -> None:
    module = sample()
    assert compile_graph(eager, module, [1]) is module.forward
    assert module.forward(1) == (2,)


def test_eager_has_no_use_for_options(caplog: pytest.LogCaptureFixture) -> None:
    backend = lookup_backend("eager", mode="max-autotune")
    with caplog.at_level(logging.WARNING):
        assert compile_graph(backend, sample(), [1])(1) == (2,)
    assert "backend 'eager' has no use for mode='max-autotune'" in caplog.text


def test_a_returned_module_is_called_directly() -> None:
    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        return graph_module

    module = sample()
    assert compile_graph(backend, module, [1]) is module.forward


def test_what_a_backend_sees() -> None:
    seen: list[Any] = []

    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        seen.extend(node.meta.get("stack_trace") for node in graph_module.graph.nodes)
        seen.append(example_inputs)
        return graph_module.forward

    compile_graph(backend, sample(), [41])
    where = f'  File "{__file__}", line 1, in user_function\n    """What happens'
    assert seen[0] is None
    assert seen[1].startswith(where)
    assert seen[-1] == [41]


class Failing(Interpreter):
    """Fails at a node, as a backend that walks the graph does."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError("no lowering")


def failing(graph_module: GraphModule, example_inputs: Any) -> Any:
    """A backend that first harms the graph and then fails."""
    node = graph_module.graph.find_nodes(op="call_function")[0]
    node.target = operator.sub
    graph_module.recompile()
    return Failing(graph_module).run(*example_inputs)


def test_failure_names_backend_graph_and_node() -> None:
    with pytest.raises(BackendCompilerFailed) as caught:
        compile_graph(failing, sample(), [1])
    error = caught.value
    assert (error.backend, type(error.inner_exception)) == ("failing", NotImplementedError)
    assert error.__cause__ is error.inner_exception
    assert error.node.startswith("%add = call_function operator.sub(%x, 1)\n")
    assert "in user_function" in error.node
    assert error.graph.startswith("the_graph\n")
    for part in ("backend 'failing' failed: NotImplementedError: no lowering", "the_graph"):
        assert part in str(error)


@pytest.mark.parametrize("option", ["suppress_backend_errors", "suppress_errors"])
def test_suppressed_failure_runs_the_graph_as_captured(
    option: str, caplog: pytest.LogCaptureFixture
) -> None:
    with config.patch({option: True}), caplog.at_level(logging.WARNING):
        run = compile_graph(failing, sample(), [1])
    assert run(5) == (6,)
    (record,) = caplog.records
    assert record.name == "dynacap"
    assert "the_graph runs eagerly: backend 'failing' failed" in record.getMessage()
    assert getattr(record, "fields")["backend"] == "failing"  # noqa: B009


@pytest.mark.parametrize("result", [None, (1, 2), "text"])
def test_a_backend_must_return_a_callable(result: object) -> None:
    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        return result

    with pytest.raises(BackendCompilerFailed, match="it must return a callable") as caught:
        compile_graph(backend, sample(), [1])
    assert isinstance(caught.value.inner_exception, TypeError)
    with config.patch(suppress_backend_errors=True):
        assert compile_graph(backend, sample(), [1])(1) == (2,)


def test_an_inner_failure_is_not_wrapped_again() -> None:
    inner = BackendCompilerFailed("deeper", ValueError("x"))

    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        raise inner

    with pytest.raises(BackendCompilerFailed) as caught:
        compile_graph(backend, sample(), [1])
    assert caught.value is inner


def test_interrupts_pass_through() -> None:
    def backend(graph_module: GraphModule, example_inputs: Any) -> Any:
        raise KeyboardInterrupt

    with config.patch(suppress_backend_errors=True), pytest.raises(KeyboardInterrupt):
        compile_graph(backend, sample(), [1])


def test_wrong_arguments_are_named() -> None:
    not_a_module: Any = 3
    with pytest.raises(TypeError, match="graph_module must be a dynacap"):
        compile_graph(eager, not_a_module, [])
    with pytest.raises(ValueError, match="example_inputs has 2 values for the 1 placeholders"):
        compile_graph(eager, sample(), [1, 2])


def test_names_of_backends() -> None:
    class Backend:
        def __call__(self, graph_module: GraphModule, example_inputs: Any) -> Any:
            return graph_module.forward

    assert backend_name(eager) == "eager"
    assert backend_name(functools.partial(failing, 1)) == "failing"  # type: ignore[arg-type]
    assert backend_name(Backend()) == "Backend"
