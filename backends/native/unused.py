"""Calls whose results nobody uses, and which eager PyTorch makes all the same: draws of random
numbers, after which others are drawn otherwise, and operators that are not torch's.

AOTAutograd drops them from a graph that has a backward pass.  So they become results of the graph.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch

from dynacap.fxlite import Graph, GraphModule, Node
from dynacap.fxlite.effects import is_random, mutates
from dynacap.fxlite.printer import example_value
from dynacap.fxlite.risks import is_foreign, storage_of, written_by


def with_unused_calls(graph_module: GraphModule) -> GraphModule | None:
    """The graph with such calls among its results, behind the others; None if there are none."""
    if not any(_unused(graph_module.graph)):
        return None
    rest = copy.copy(graph_module)
    output = rest.graph.output_node()
    more = []
    for node in list(_unused(rest.graph)):
        with rest.graph.inserting_before(output):
            made = rest.graph.call_method("detach", (node,))
        made.meta["example_value"] = example_value(node).detach()
        more.append(made)
    output.args = ((*output.args[0], *more),)
    rest.recompile()
    return rest


def _unused(graph: Graph) -> Iterator[Node]:
    """The calls with a tensor as result which nothing that lives on comes from."""
    live: set[Node | int | None] = set()
    for node in reversed(graph.nodes):
        memory = {storage_of(each) for each in written_by(node)} if mutates(node) else set()
        if node.op == "output" or node in live or not live.isdisjoint(memory - {None}):
            sources = node.all_input_nodes
            live.update(sources, map(storage_of, sources))
        elif node.op.startswith("call_") and (is_random(node) or is_foreign(node)):
            if isinstance(example_value(node), torch.Tensor):
                yield node
