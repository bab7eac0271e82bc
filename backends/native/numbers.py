"""Floats that vary.  What a graph computes of them Python computes, before the graph is called.

Torch's algebra of symbols takes sums and products for equal that are different floats.  So a graph
is only ever traced with floats that it is given.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from dynacap.backends.fall_back import announced
from dynacap.backends.native.refused import fits, largest
from dynacap.fxlite import Graph, GraphModule, Node
from dynacap.fxlite.printer import example_value


def without_float_arithmetic(
    graph_module: GraphModule,
) -> tuple[GraphModule, Callable[..., tuple[float, ...]]] | None:
    """The graph with further inputs, and the function that computes those from the others.

    None where there is nothing to take out, or a float comes from what only the graph computes.
    """
    if not _computed(graph_module.graph):
        return None
    rest = copy.copy(graph_module)
    computed = _computed(rest.graph)
    needed = _needed(computed)
    if not all(node.op == "placeholder" or _is_number(node) for node in needed):
        return None
    numbers, copies = Graph(), dict[Node, Node]()
    for node in rest.graph.nodes:
        if node.op == "placeholder" or node in needed:
            copies[node] = numbers.node_copy(node, copies.__getitem__)
    given = _replaced(rest.graph, computed)
    numbers.output(tuple(copies[node] for node in given))
    rest.recompile()
    return rest, GraphModule({}, numbers).by_position()


def where_they_fit(run: Callable[..., Any], graph_module: GraphModule) -> Callable[..., Any]:
    """``run``, and eager for floats out of the range of a dtype in the graph, which many operators
    refuse."""
    graph = graph_module.graph
    kinds = [isinstance(example_value(node), torch.SymFloat) for node in graph.placeholders]
    positions = [index for index, is_float in enumerate(kinds) if is_float]
    if not positions:
        return run
    values = map(example_value, graph.nodes)
    dtypes = {value.dtype for value in values if isinstance(value, torch.Tensor)} - {torch.bool}
    limit = min(map(largest, dtypes), default=math.inf)
    eager = announced(graph_module)

    def call(*args: Any) -> Any:
        for index in positions:
            if not -limit <= args[index] <= limit and not _fits_all(args[index], dtypes):
                return eager(*args)
        return run(*args)

    return call


def _fits_all(value: float, dtypes: Iterable[torch.dtype]) -> bool:
    return all(fits(value, dtype) for dtype in dtypes)


def _computed(graph: Graph) -> list[Node]:
    """The nodes that give a float which varies."""
    nodes = (node for node in graph.nodes if node.op.startswith("call_"))
    return [node for node in nodes if isinstance(example_value(node), torch.SymFloat)]


def _needed(nodes: Sequence[Node]) -> set[Node]:
    """These nodes, and all that they are computed from."""
    found, left = set(nodes), list(nodes)
    while left:
        new = set(left.pop().all_input_nodes) - found
        found |= new
        left += new
    return found


def _is_number(node: Node) -> bool:
    kinds = (torch.SymInt, torch.SymFloat)
    return node.op == "call_function" and isinstance(example_value(node), kinds)


def _replaced(graph: Graph, computed: Sequence[Node]) -> list[Node]:
    """Have the graph be given these floats; those of them that something else uses, in order."""
    last = graph.placeholders[-1]
    given: list[Node] = []
    for node in reversed(computed):
        if node.users:
            with graph.inserting_after(last):
                placeholder = graph.placeholder(f"{node.name}_given")
            placeholder.meta.update(node.meta)
            node.replace_all_uses_with(placeholder)
            given.insert(0, node)
        graph.erase_node(node)
    return given
