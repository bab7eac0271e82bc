"""Backends that are wrong on purpose."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynacap.fxlite import GraphModule, Interpreter, Node

Compiled = Callable[..., Any]


def taking(old: Callable[..., Any], new: Callable[..., Any]) -> Callable[..., Compiled]:
    """A backend that calls ``new`` where the graph says ``old``."""

    def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        for node in graph_module.graph.find_nodes(op="call_function", target=old):
            node.target = new
        graph_module.recompile()
        return graph_module.forward

    return backend


def sigmoid_off(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Gives a slightly wrong sigmoid, and counts how often it runs."""

    def slightly_wrong(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x) * 1.01

    return taking(torch.sigmoid, slightly_wrong)(graph_module, example_inputs)


def pair_off(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Wrong only where a cosine is taken of an exponential: two operations make the fault."""
    module = copy.copy(graph_module)
    for node in module.graph.find_nodes(op="call_function", target=torch.cos):
        source = node.args[0]
        if isinstance(source, Node) and source.target is torch.exp:
            node.target = torch.sin
    return module.forward


class _Rounding(Interpreter):
    """Every result of float32 with the last bits of another order of operations."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        made = super().call_function(target, args, kwargs)
        if isinstance(made, torch.Tensor) and made.dtype is torch.float32:
            args = [a.double() if isinstance(a, torch.Tensor) else a for a in args]
            return super().call_function(target, tuple(args), kwargs).float()
        return made


def more_exact(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Nearer to the exact numbers than eager."""
    return _Rounding(graph_module).run
