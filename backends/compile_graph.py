"""Calls a backend, holds it to the contract, and decides what happens when it fails."""

import contextlib
import copy
import functools
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from dynacap import log
from dynacap.backends.collector import working
from dynacap.backends.eager import eager
from dynacap.backends.fall_back import withdraw
from dynacap.backends.registry import Backend, backend_name, check_graph_module, rests_itself
from dynacap.backends.verify.request import Verification, verification
from dynacap.config import config
from dynacap.errors import BackendCompilerFailed
from dynacap.fxlite import GraphModule, Node
from dynacap.fxlite.locations import StackTraces


def compile_graph(
    backend: Backend, graph_module: GraphModule, example_inputs: Sequence[Any]
) -> Callable[..., Any]:
    """The callable that ``backend`` makes of the graph.

    It returns a tuple, or a list as torch's own backends do.  A backend that raises, or returns
    no callable, is a BackendCompilerFailed; with
    ``config.suppress_backend_errors`` or ``config.suppress_errors`` the graph runs eagerly
    instead and one warning says why.
    """
    check_graph_module(graph_module)
    expected = len(graph_module.graph.placeholders)
    if len(example_inputs) != expected:
        raise ValueError(
            f"example_inputs has {len(example_inputs)} values for the {expected} placeholders of"
            f" {graph_module.name!r}; give one for each, in order"
        )
    if backend is eager:
        return graph_module.by_position()
    suppress = config.suppress_backend_errors or config.suppress_errors
    # A backend may have changed the graph by the time it fails.
    spare = copy.copy(graph_module) if suppress else graph_module
    _add_stack_traces(graph_module)
    try:
        with contextlib.nullcontext() if rests_itself(backend) else working():
            return _checked(_with_checks(backend)(graph_module, example_inputs))
    except BackendCompilerFailed as error:
        failure = error
    except Exception as error:
        failure = _failure(backend, graph_module, error)
        if not suppress:
            raise failure from error
    if not suppress:
        raise failure
    withdraw(graph_module)
    log.warn(
        f"{graph_module.name} runs eagerly: {failure}",
        graph=graph_module.name,
        backend=failure.backend,
        node=failure.node,
    )
    return spare.by_position()


def _with_checks(backend: Backend) -> Backend:
    """The backend, held to eager if ``config.verify`` says so and the compile call does not."""
    asked = verification()
    already = isinstance(getattr(backend, "func", None), Verification)
    return backend if asked is None or already else functools.partial(asked, backend)


def _checked(compiled: Any) -> Callable[..., Any]:
    if not callable(compiled):
        raise TypeError(
            f"the backend returned {compiled!r} ({type(compiled).__name__}); it must return a"
            " callable that takes the placeholders' values and returns a tuple or list"
        )
    # The usual "return gm" would go through the module on every call.
    return compiled.by_position() if isinstance(compiled, GraphModule) else compiled


def _add_stack_traces(graph_module: GraphModule) -> None:
    """Give each node the ``meta["stack_trace"]`` of the contract, made only for who may read it."""
    traces = StackTraces()
    for node in graph_module.graph.nodes:
        if "stack_trace" not in node.meta:
            text = traces.text(node.meta)
            if text is not None:
                node.meta["stack_trace"] = text


def _failure(
    backend: Backend, graph_module: GraphModule, error: Exception
) -> BackendCompilerFailed:
    node = _node_at(error.__traceback__, graph_module)
    where = ""
    if node is not None:
        where = node.format_node()
        if node.stack_trace:
            where += f"\n{node.stack_trace.rstrip()}"
    graph = f"{graph_module.name}\n{graph_module.graph.table()}"
    return BackendCompilerFailed(backend_name(backend), error, node=where, graph=graph)


def _node_at(traceback: TracebackType | None, graph_module: GraphModule) -> Node | None:
    """The node that the backend was looking at: the innermost local that is one of ours.

    torch's backends hold a ``torch.fx`` node, which has the name of ours.
    """
    by_name = {node.name: node for node in graph_module.graph.nodes}
    found = None
    while traceback is not None:
        for value in traceback.tb_frame.f_locals.values():
            kind = type(value)
            if kind.__name__ == "Node" and kind.__module__ in _NODE_HOMES:
                found = by_name.get(value.name, found)
        traceback = traceback.tb_next
    return found


_NODE_HOMES = frozenset({Node.__module__, "torch.fx.node"})
