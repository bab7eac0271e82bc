"""``torch.autograd.Function``: a custom gradient is one node of the graph, run for real.

Its ``forward`` is executed symbolically too, to see what it gives and that it does nothing but
compute; what that added to the graph is taken out again.  Where no gradient is recorded it stays
in the graph instead of the node, since it is all that a call does.
"""

from __future__ import annotations

from dataclasses import field
from itertools import compress
from typing import Any, NoReturn

import torch
from torch.autograd.function import Function, FunctionCtx, _SingleLevelFunction
from torch.nn.modules._functions import BackwardHookFunction

from dynacap.backends.torch_state import transform_depth
from dynacap.fxlite.effects import is_impure
from dynacap.fxlite.node import Node
from dynacap.values.base import Const, Known, Value, fields, is_outside
from dynacap.values.container import TupleValue
from dynacap.values.data_model.attributes import get_attribute
from dynacap.values.natives import native
from dynacap.values.object import ObjectValue
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer


@fields
class ContextValue(ObjectValue):
    """The ``ctx`` of one call: what ``forward`` tells it."""

    needs_grad: list[bool]
    non_differentiable: list[Value] = field(default_factory=list)


@native(vars(Function)["apply"].__func__)
def apply_function(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``cls.apply(*args)``."""
    cls = args[0].known()
    operands = args[1:]
    if kwargs or not all(isinstance(a, TensorValue | Const | Known) for a in operands):
        _refuse(t, cls, "is called with keywords or with containers")
    # What asks for the former next is the node that it makes; transforms have rules of their own.
    if cls is BackwardHookFunction or transform_depth():
        _refuse(t, cls, "is called")
    recording = torch.is_grad_enabled()
    needs_grad = [
        recording and isinstance(a, TensorValue) and a.fake.requires_grad for a in operands
    ]
    context = ContextValue(cls._backward_cls, needs_grad)
    family = t.tensors
    last = family.graph._root.prev
    result = _run_forward(t, args[0], context, operands)
    outputs = result.items if isinstance(result, TupleValue) else [result]
    if not all(isinstance(output, TensorValue | Const) for output in outputs):
        _refuse(t, cls, "returns something else than tensors")
    if not recording and not any(output is operand for output in outputs for operand in operands):
        return result
    _erase_after(t, cls, family, last)
    return _add_node(t, cls, context, operands, result)


def _run_forward(t: Tracer, cls: Value, context: ContextValue, operands: list[Value]) -> Value:
    recording = torch.is_grad_enabled()
    family = t.tensors
    family.set_recording(False)
    touched = set(t.touched)
    try:
        forward = get_attribute(t, cls, "forward")
        if cls.known().setup_context is _SingleLevelFunction.setup_context:
            result = t.call(forward, [context, *operands])
        else:
            result = t.call(forward, operands)
            setup = get_attribute(t, cls, "setup_context")
            t.call(setup, [context, TupleValue(list(operands)), result])
    finally:
        family.set_recording(recording)
    for value in t.touched:
        if is_outside(value) and value not in touched:
            _refuse(t, cls.known(), f"changes a {value.describe()} from outside")
    return result


def _erase_after(t: Tracer, cls: type, family: Any, last: Node) -> None:
    """Take out the nodes behind ``last``; they only told what ``forward`` gives."""
    graph = family.graph
    while (node := graph._root.prev) is not last and node.op != "placeholder":
        if is_impure(node):
            _refuse(t, cls, "works in place or draws random numbers")
        graph.erase_node(node)


def _add_node(
    t: Tracer, cls: Any, context: ContextValue, operands: list[Value], result: Value
) -> Value:
    outputs = result.items if isinstance(result, TupleValue) else [result]
    fakes: list[Any] = []
    grad_source = next(compress(operands, context.needs_grad), None)
    family = t.tensors
    for output in outputs:
        if not isinstance(output, TensorValue):
            fakes.append(output.constant())
            continue
        fake = family.world.run(torch.Tensor.detach, (output.fake,), {})
        differentiable = fake.is_floating_point() or fake.is_complex()
        if grad_source is not None and differentiable and output not in context.non_differentiable:
            torch._mirror_autograd_meta_to(grad_source.fake, fake)  # type: ignore[attr-defined]
        fakes.append(fake)
    given = tuple(fakes) if isinstance(result, TupleValue) else fakes[0]
    return family.emit_known(t, cls.apply, operands, given)


def _refuse(t: Tracer, cls: type, what: str) -> NoReturn:
    t.graph_break("autograd-function", f"{cls.__qualname__} {what}")


def _context(t: Tracer, value: Value) -> ContextValue:
    if not isinstance(value, ContextValue):
        t.graph_break("autograd-function", f"a {value.describe()} is told about the forward pass")
    return value


@native(
    FunctionCtx.save_for_backward, FunctionCtx.save_for_forward, FunctionCtx.set_materialize_grads
)
def tell_of_gradients(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Which tensors the gradient will need, and whether missing ones become zeros: a matter of the
    real call."""
    _context(t, args[0])
    return Const(None)


@native(FunctionCtx.mark_dirty)
def mark_dirty(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """An input is changed in place."""
    return t.graph_break("autograd-function", "mark_dirty is called: an input changes in place")


@native(FunctionCtx.mark_non_differentiable)
def mark_non_differentiable(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """These outputs get no gradient."""
    _context(t, args[0]).non_differentiable.extend(args[1:])
    return Const(None)


@native(vars(torch._C._FunctionBase)["needs_input_grad"])
def needs_input_grad(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """For each argument, whether a gradient is recorded for it."""
    return TupleValue([Const(needs) for needs in _context(t, args[0]).needs_grad])
