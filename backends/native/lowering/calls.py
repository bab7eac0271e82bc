"""The plainest lowering: every operator is a call, every tensor a buffer of its own."""

from __future__ import annotations

import operator
from typing import Any

import torch

from dynacap.backends.native.loops.program import Buffer, Call, Program


def lower_calls(module: torch.fx.GraphModule) -> Program:
    """A program that calls each operator of an ATen graph as it is."""
    buffers: dict[torch.fx.Node, Any] = {}
    program = Program([], [], [], [])
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            made = (
                _buffer(node, value, "input") if isinstance(value, torch.Tensor) else _size(value)
            )
            program.inputs.append(made)
        elif node.op == "get_attr":
            made = _buffer(node, value, "constant")
            made.value = getattr(module, node.target)
            program.buffers.append(made)
        elif node.op == "output":
            program.outputs = list(_arguments(node.args[0], buffers))
            made = None
        elif node.target is operator.getitem:
            made = buffers[node.args[0]][node.args[1]]
        elif not isinstance(node.target, torch._ops.OpOverload):
            made = _size(value)
        else:
            made = _results(node, value)
            results = tuple(made) if isinstance(made, list) else (made,)
            args, kwargs = _arguments(node.args, buffers), _arguments(node.kwargs, buffers)
            program.steps.append(Call(node.target, args, kwargs, results, (node,)))
            program.buffers += [result for result in results if result is not None]
        buffers[node] = made
    program.sizes = tuple(value for value in program.inputs if not isinstance(value, Buffer))
    program.buffers += [value for value in program.inputs if isinstance(value, Buffer)]
    return program


def _results(node: torch.fx.Node, value: Any) -> Any:
    if isinstance(value, tuple | list):
        used = {user.args[1] for user in node.users if user.target is operator.getitem}
        return [
            _buffer(node, item, "temporary", f"_{index}") if index in used else None
            for index, item in enumerate(value)
        ]
    return _buffer(node, value, "temporary") if isinstance(value, torch.Tensor) else None


def _buffer(node: torch.fx.Node, value: torch.Tensor, kind: Any, suffix: str = "") -> Buffer:
    shape, strides = tuple(map(_size, value.shape)), tuple(map(_size, value.stride()))
    return Buffer(node.name + suffix, value.dtype, shape, strides, 0, kind)


def _size(value: Any) -> Any:
    if isinstance(value, torch.SymInt):
        expression = value.node.expr
        return int(expression) if expression.is_number else expression
    return value


def _arguments(value: Any, buffers: dict[torch.fx.Node, Any]) -> Any:
    if isinstance(value, torch.fx.Node):
        return buffers[value]
    if isinstance(value, tuple | list):
        return type(value)(_arguments(item, buffers) for item in value)
    if isinstance(value, dict):
        return {name: _arguments(item, buffers) for name, item in value.items()}
    return _size(value)
