"""A graph run in float64, to tell a wrong result from one that is only rounded otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynacap.backends.verify.copies import Copies, is_plain, share_memory
from dynacap.backends.verify.run import Run, run
from dynacap.fxlite import GraphModule, Interpreter, Node
from dynacap.fxlite.effects import is_random
from dynacap.fxlite.node import map_aggregate

_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}
_WIDE_METHODS = dict.fromkeys(("float", "half", "bfloat16"), "double") | {"cfloat": "cdouble"}


def exact_run(graph_module: GraphModule, inputs: Sequence[Any]) -> Run | None:
    """The graph's run in float64; None where precision decides more than rounding."""
    if any(is_random(node) for node in graph_module.graph.nodes):
        return None
    return run_in_float64(_Wide(graph_module).run, inputs)


def run_in_float64(function: Callable[..., Any], inputs: Sequence[Any]) -> Run | None:
    """A run on copies of the inputs in double precision; None where that cannot be."""
    if share_memory(inputs):
        return None
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        made = run(function, _widened(inputs))
    finally:
        torch.set_default_dtype(before)
    return made if made.error is None else None


def _widened(inputs: Sequence[Any]) -> Copies:
    made = Copies()
    for value in inputs:
        wide = _wide(value)
        if isinstance(value, torch.Tensor) and value.requires_grad:
            leaf = wide.requires_grad_()
            made.leaves.append(leaf)
            with torch.enable_grad():  # what was computed may be changed in place, as no leaf may
                wide = leaf if value.is_leaf else leaf.clone()
        made.values.append(wide)
    return made


def _wide(value: Any) -> Any:
    """A tensor or a data type in double precision; any other value as it is."""
    if is_plain(value):
        return value.detach().clone().to(_WIDE.get(value.dtype, value.dtype))
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value


class _Wide(Interpreter):
    """Takes double precision wherever the graph names a lower one."""

    def fetch_args(self, node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, kwargs = super().fetch_args(node)
        return map_aggregate(args, _dtype), map_aggregate(kwargs, _dtype)

    def fetch_attr(self, target: str) -> Any:
        return _wide(super().fetch_attr(target))

    def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
        return super().call_method(_WIDE_METHODS.get(target, target), args, kwargs)


def _dtype(value: Any) -> Any:
    return _WIDE.get(value, value) if isinstance(value, torch.dtype) else value
