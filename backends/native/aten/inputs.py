"""Fake tensors for a graph's inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch._subclasses.fake_tensor import DataDependentOutputException

from dynacap.fxlite import GraphModule, Node
from dynacap.fxlite.printer import example_value

# What torch says of operators that it cannot trace, and what that comes to.
_MEANING = {
    r"(\S+): attempted to run this operator with Meta tensors": (
        "torch cannot trace {} (it has no fake implementation)"
    ),
    "mutating a non-functional tensor with a functional tensor": (
        "torch cannot trace an operator in it that changes several tensors at once (such as that of"
        " an optimizer with fused=True)"
    ),
}
_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


def stand_ins(
    graph_module: GraphModule, example_inputs: Sequence[Any], *, gradient: bool
) -> tuple[FakeTensorMode, list[Any]]:
    """A mode, and for each input what stands for it: fake tensors, symbols, other values as are.

    Without ``gradient`` no two share memory and none requires a gradient; with it both are as in
    the example inputs.
    """
    env = shape_env(graph_module)
    mode = FakeTensorMode(shape_env=env, static_shapes=True)
    placeholders = graph_module.graph.placeholders
    make = partial(_stand_in, mode)
    if gradient:
        shared = share_memory(example_inputs)
        if shared and env is not None:
            raise NotImplementedError("inputs share memory in a graph with symbolic sizes")
        make = partial(_copied, mode) if shared else partial(_with_gradient, mode)
    with torch.inference_mode(False):
        return mode, [make(*pair) for pair in zip(placeholders, example_inputs, strict=True)]


def shape_env(graph_module: GraphModule) -> Any:
    """The environment of the symbols in the placeholders' sizes; None where all are numbers."""
    for node in graph_module.graph.placeholders:
        for size in _sizes(example_value(node)):
            if isinstance(size, _SYMBOLIC):
                return size.node.shape_env
    return None


def share_memory(values: Sequence[Any]) -> bool:
    """Whether two of these tensors lie in one storage."""
    addresses = [
        value.untyped_storage().data_ptr()
        for value in values
        if isinstance(value, torch.Tensor) and value.layout is torch.strided and value.numel()
    ]
    return len(set(addresses)) < len(addresses)


def _stand_in(mode: FakeTensorMode, node: Node, value: Any) -> Any:
    example = example_value(node)
    if not isinstance(value, torch.Tensor):
        return value if example is None else example
    return fake_like(mode, example if is_variable(example) else value, value)


def _with_gradient(mode: FakeTensorMode, node: Node, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not (value.is_leaf or is_variable(example_value(node))):
        return _copied(mode, node, value)
    made = _stand_in(mode, node, value)
    return made.requires_grad_() if getattr(value, "requires_grad", False) else made


def _copied(mode: FakeTensorMode, node: Node, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return mode.from_tensor(value, static_shapes=True)
    return _stand_in(mode, node, value)


def fake_like(mode: FakeTensorMode, layout: torch.Tensor, value: torch.Tensor) -> FakeTensor:
    """A fake tensor of the sizes and strides of ``layout``, the dtype and device of ``value``.

    Its storage starts where it starts: where in a storage an input lies is known when it runs.
    Made by hand: ``FakeTensorMode.from_tensor`` looks for views, symbols and subclasses, at ten
    times the cost.
    """
    meta = torch.empty_strided(layout.shape, layout.stride(), dtype=value.dtype, device="meta")
    return FakeTensor(mode, meta, value.device)


def refused(error: Exception) -> NotImplementedError:
    """What to raise where an operator refuses fake tensors: eager may take the real ones, or it
    will say itself what is wrong."""
    said = " ".join(str(error).strip().partition("\n")[0].split())
    if isinstance(error, DataDependentOutputException):
        return NotImplementedError(f"a number in it lies in the data ({error.func})")
    for torch_says, words in _MEANING.items():
        found = re.search(torch_says, said)
        if found is not None:
            return NotImplementedError(words.format(*found.groups()))
    return NotImplementedError(f"on fake tensors it raises {type(error).__name__}: {said}")


def is_variable(example: Any) -> bool:
    """Whether a number, or one among a tensor's sizes and strides, is a symbol."""
    return any(isinstance(size, _SYMBOLIC) for size in _sizes(example))


def _sizes(value: Any) -> Sequence[Any]:
    if isinstance(value, torch.Tensor):
        return (*value.shape, *value.stride(), value.storage_offset())
    return (value,)
