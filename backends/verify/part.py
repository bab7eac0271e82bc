"""A part of a graph as a graph of its own, fed with the values that eager gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dynacap.backends.verify.copies import copied
from dynacap.fxlite import Graph, GraphModule, Interpreter, Node

Values = dict[Node, Any]
_NUMBERS = (bool, int, float, str, type(None), torch.dtype, torch.device, torch.layout, torch.Size)
_OF_ONE_CAPTURE = ("example_value", "val")  # a part's sizes are numbers, whatever the graph's were


@dataclass(frozen=True)
class Unit:
    """Operations that stay together: one that gives several results, and the picks of each."""

    number: int
    nodes: tuple[Node, ...]


def units(graph_module: GraphModule) -> list[Unit]:
    """The graph's operations in order."""
    owners: dict[Node, list[Node]] = {}
    for node in graph_module.graph.nodes:
        if node.op.startswith("call_"):
            source = _picked_from(node)
            owner = owners.get(source) if source is not None else None
            owners[node] = owner = [] if owner is None else owner
            owner.append(node)
    distinct = {id(nodes): nodes for nodes in owners.values()}
    return [Unit(number, tuple(nodes)) for number, nodes in enumerate(distinct.values())]


def _picked_from(node: Node) -> Node | None:
    """The operation whose several results ``node`` picks one of."""
    source = node.args[0] if node.args else None
    picks = getattr(node.target, "__name__", "") == "getitem" and isinstance(source, Node)
    return source if picks and isinstance(node.args[-1], int) else None


def recorded(graph_module: GraphModule, inputs: Sequence[Any]) -> Values:
    """The value that eager gives each node, as it was when it was computed."""
    recorder = _Recorder(graph_module)
    recorder.run(*inputs)
    return recorder.values


class _Recorder(Interpreter):
    """Keeps a copy of each value, cut off from what it was computed from."""

    def __init__(self, graph_module: GraphModule) -> None:
        super().__init__(graph_module)
        self.values: Values = {}

    def run_node(self, node: Node) -> Any:
        result = super().run_node(node)
        self.values[node] = _kept(result)
        return result


def _kept(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    with torch.no_grad():
        return copied([value.detach()]).values[0].requires_grad_(value.requires_grad)


def part(
    graph_module: GraphModule, kept: Sequence[Unit], values: Values
) -> tuple[GraphModule, list[Any]] | None:
    """The kept operations alone, and their inputs; None if that is no graph of tensors."""
    chosen = {node for unit in kept for node in unit.nodes}
    inside = [node for node in graph_module.graph.nodes if node in chosen]
    results = [node for node in inside if _is_result(node, chosen, values)]
    if not results:
        return None
    graph = Graph()
    counterparts: dict[Node, Any] = {}
    inputs = []
    for node in _taken_by(inside):
        value = values[node]
        if isinstance(value, torch.Tensor):
            counterparts[node] = graph.placeholder(node.name)
            inputs.append(value)
        elif isinstance(value, _NUMBERS):
            counterparts[node] = value
        else:
            return None
    for node in inside:
        made = graph.node_copy(node, counterparts.__getitem__)
        for name in _OF_ONE_CAPTURE:
            made.meta.pop(name, None)
        counterparts[node] = made
    graph.output(tuple(counterparts[node] for node in results))
    return GraphModule(graph_module.attributes, graph, f"part of {graph_module.name}"), inputs


def _is_result(node: Node, inside: set[Node], values: Values) -> bool:
    """Whether a tensor is used outside the part, or by nobody."""
    leaves = not node.users or not inside.issuperset(node.users)
    return leaves and isinstance(values.get(node), torch.Tensor)


def _taken_by(inside: Sequence[Node]) -> list[Node]:
    """What the part takes from outside, each once, in the order of the graph."""
    own = set(inside)
    taken: dict[Node, None] = {}
    for node in inside:
        for name in node.all_input_nodes:
            if name not in own:
                taken[name] = None
    return list(taken)
