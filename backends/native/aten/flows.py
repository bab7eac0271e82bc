"""Along which ways gradients flow through a graph, and which arguments they reach.

A backward pass in eager PyTorch gives no gradient (None) to a parameter that no result it began
with comes from. The one node that AOTAutograd makes of a graph takes zeros for results without a
gradient, and would give zeros: optimizers take them for gradients, and decay weights by them.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd.schemas import OutputType

from dynacap.fxlite import Graph, Node
from dynacap.fxlite.effects import mutates
from dynacap.fxlite.risks import storage_of, written_by

VIEWS_OF_WHAT_IS_MADE = (
    OutputType.alias_of_intermediate,
    OutputType.alias_of_intermediate_save_as_output,
)
_OF_ITS_OWN = (
    OutputType.non_alias,
    OutputType.unsafe_view_alias,
    OutputType.custom_function_view,
)
_NONE: frozenset[int] = frozenset()


def flows(graph: Graph, marks: Mapping[Node, int]) -> dict[Node, frozenset[int]]:
    """For each node the marks of the nodes whose values it is made of, not through other marked
    nodes, as far as gradients flow, or more."""
    found: dict[Node, frozenset[int]] = {}
    passed: dict[Node, frozenset[int]] = {}
    written: dict[int | None, frozenset[int]] = {}

    def of(node: Node) -> frozenset[int]:
        more = written.get(storage_of(node), _NONE) if written else _NONE
        return passed.get(node, _NONE) | more

    for node in graph.nodes:
        found[node] = sources = _NONE.union(*map(of, node.all_input_nodes))
        if node.op.startswith("call_") and mutates(node):
            for each in written_by(node):
                written[storage_of(each)] = written.get(storage_of(each), _NONE) | sources
        if has_gradient(node):
            passed[node] = frozenset((marks[node],)) if node in marks else sources
    for node in graph.output_node().all_input_nodes:  # which may be changed after they are made
        found[node] |= written.get(storage_of(node), _NONE)
    return found


def has_gradient(node: Node) -> bool:
    """Whether gradients flow through a node, or may: those of several tensors are not told of."""
    value = node.meta.get("example_value")
    return not isinstance(value, torch.Tensor) or value.requires_grad


def _parts_of(graph: Graph) -> Sequence[int]:
    """For each result the operators that gradients pass on their way back from it, as bits; none
    where some are passed from all results."""
    passed: dict[Node, int] = {}
    for index, node in enumerate(graph.nodes):
        if not node.op.startswith("call_") or not has_gradient(node):
            continue
        if mutates(node):
            return ()
        passed[node] = functools.reduce(
            operator.or_, (passed.get(each, 0) for each in node.all_input_nodes), 1 << index
        )
    results: list[Any] = list(graph.output_node().args[0])
    parts = [passed.get(each, 0) for each in results]
    found = {storage_of(each) for each in results if isinstance(each, Node)}
    if len(found) < len(results):  # AOTAutograd gives views of one another in another way
        return ()
    common = functools.reduce(operator.and_, filter(None, parts), -1)
    return () if common else parts


class Reached:
    """Which arguments of a graph have a gradient, by the results that have one."""

    def __init__(self, graph: Graph) -> None:
        marks = {node: index for index, node in enumerate(graph.placeholders)}
        found = flows(graph, marks) | {node: frozenset((mark,)) for node, mark in marks.items()}
        self._arguments = len(marks)
        self._parts = _parts_of(graph)
        self._behind = [found.get(node, _NONE) for node in graph.output_node().args[0]]

    def part(self, place: int, metadata: Any) -> int:
        """The part of the graph that a backward pass from this place goes through, as bits; 0 where
        no results have parts of their own, or who knows."""
        index = place - metadata.num_mutated_inp_runtime_indices
        return self._parts[index] if 0 <= index < len(self._parts) else 0

    def only(self, result: Any, places: Sequence[int], metadata: Any) -> Any:
        """What a backward pass gives that began at these places, and None for arguments that no
        gradient reaches."""
        reached = self._reached_by(places, metadata)
        if reached is None or len(result) != self._arguments:
            return result
        return tuple(each if i in reached else None for i, each in enumerate(result))

    def _reached_by(self, places: Sequence[int], metadata: Any) -> frozenset[int] | None:
        """By gradients of what AOTAutograd returns at these places; None: who knows."""
        changed, count = metadata.num_mutated_inp_runtime_indices, len(metadata.output_info)
        if count != len(self._behind) or any(place < changed for place in places):
            return None
        results = {place - changed for place in places}
        for result, info in enumerate(metadata.output_info):
            if info.output_type in VIEWS_OF_WHAT_IS_MADE and count + info.base_idx in results:
                results.add(result)
        return _NONE.union(*(self._behind[i] for i in results if i < count))


def in_one_memory(metadata: Any) -> set[int]:
    """The results of a graph that are views of an argument or of one another, to autograd."""
    found = set[int]()
    for place, about in enumerate(metadata.output_info):
        if about.output_type not in _OF_ITS_OWN:
            found.add(place)
            if about.output_type is OutputType.alias_of_intermediate_base_is_user_output:
                found.add(about.base_idx)
    return found


def tangents_of(metadata: Any) -> list[int]:
    """The places of those results of AOTAutograd's whose gradients its backward graph takes."""
    changed = metadata.num_mutated_inp_runtime_indices
    inputs = [metadata.input_info[index] for index in metadata.mutated_inp_runtime_indices]
    places = [i for i, x in enumerate(inputs) if x.mutates_data and x.requires_grad]
    places += [
        changed + i
        for i, about in enumerate(metadata.output_info)
        if about.output_type in _OF_ITS_OWN
        and issubclass(about.raw_type, torch.Tensor)
        and about.requires_grad_for_backward
    ]
    bases = changed + metadata.num_outputs
    return [*places, *range(bases, bases + metadata.num_intermediate_bases)]
