"""``torch.func``: torch's own Python is inlined, and the traced function in it, down to the
functions here that enter and leave a level of functorch, and operations that take tensors across.

These are nodes of the graph, and real during capture too, so that the traced function runs on
fakes that are batched, or tracked, as torch's own would be.  No level is open where a graph ends:
what cannot be captured inside leaves the whole call to Python.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import func
from torch._functorch import eager_transforms, predispatch, vmap
from torch.autograd import forward_ad

from dynacap.backends.torch_state import is_tracked, leave_transforms, transform_depth
from dynacap.values.base import Const, Value
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.natives import native, whole
from dynacap.values.tensor.value import TensorValue
from dynacap.values.torch_library.state import change, changes, sets
from dynacap.values.tracer import Tracer

_C: Any = torch._C._functorch


def _itself(function: Any) -> Any:
    """The code of a function below its decorators."""
    while isinstance(below := getattr(function, "__wrapped__", None), types.FunctionType):
        function = below
    return function.__code__


_TRANSFORMS = (
    vmap.vmap_impl,
    eager_transforms.grad_impl,
    eager_transforms.grad_and_value_impl,
    eager_transforms._vjp_with_argnums,
    eager_transforms._jvp_with_argnums,
    func.jacrev(abs),
    func.jacfwd(abs),
)
whole(*map(_itself, _TRANSFORMS))


def _prepare(function: Callable[[], None], t: Tracer, args: list[Value], kwargs: Any) -> Value:
    """Torch's own preparation, once in a process."""
    function()
    return Const(None)


for _prepares in (predispatch.lazy_load_decompositions, forward_ad._maybe_load_decompositions):
    native(_prepares)(functools.partial(_prepare, _prepares))
changes(
    predispatch._vmap_increment_nesting,
    predispatch._vmap_decrement_nesting,
    _C._grad_increment_nesting,
    _C._grad_decrement_nesting,
    _C._jvp_increment_nesting,
    _C._jvp_decrement_nesting,
    undo=lambda *_: functools.partial(leave_transforms, transform_depth()),
)
changes(predispatch._exit_dual_level, undo=lambda level: torch._C._enter_dual_level)
sets(torch._C._set_fwd_grad_enabled, torch._C._is_fwd_grad_enabled)
sets(_C.set_inplace_requires_grad_allowed, _C.get_inplace_requires_grad_allowed)


@native(predispatch._enter_dual_level)
def enter_dual_level(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Forward mode, in which only ``jvp`` tells tensors with a tangent from others."""
    if not transform_depth():
        t.graph_break("function-transform", "a forward-mode gradient is taken")
    leave = functools.partial(torch._C._exit_dual_level, level=0)
    return change(predispatch._enter_dual_level, lambda: leave, None, t, args, kwargs)


def _is_tracked(value: Value | None) -> bool:
    return isinstance(value, TensorValue) and is_tracked(value.fake)


@native(torch.autograd.grad)
def gradient(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.autograd.grad``, of what one of these levels tracked."""
    given = args[0] if args else kwargs.get("outputs")
    outputs = given.items if isinstance(given, TupleValue | ListValue) else [given]
    if not transform_depth() and not any(map(_is_tracked, outputs)):
        t.graph_break("autograd-call", "torch.autograd.grad is called")
    return t.tensors.call(t, torch.autograd.grad, args, kwargs)
