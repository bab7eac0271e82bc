"""Which callables belong to torch's operator surface, and so go into the graph as they are.

Everything that computes on tensors is in: ``torch.*``, ``torch.nn.functional.*`` (those written in
Python too, as one node each), the methods of tensors, ``torch.ops.*``, registered operators.
Functions that set or read state, or that work on objects of other kinds, are out.
"""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch._functorch import predispatch
from torch._library import custom_ops

_OPERATOR_TYPES: tuple[type, ...] = (
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
    custom_ops.CustomOpDef,
)
# Written in Python, and better inlined: they take or give things that no node can hold.
_INLINED = frozenset({"broadcast_shapes", "triplet_margin_with_distance_loss"})
# Found among the operators, but they only ask or set something; handlers answer for them.
_NO_OPERATIONS = frozenset(
    {"is_distributed", "_nnpack_available", "is_vulkan_available", "_cufft_get_plan_cache_size",
     "_cufft_get_plan_cache_max_size", "_cufft_set_plan_cache_max_size",
     "_cufft_clear_plan_cache", "_foobar", "get_device_module"}
)  # fmt: skip

# Special methods of tensors and the operator that each is; reflected ones swap their operands.
DUNDERS: dict[str, Callable[..., Any]] = {
    f"__{name}__": getattr(operator, name if hasattr(operator, name) else f"{name}_")
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
        "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "abs",
        "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor",
        "ilshift", "irshift",
    )
}  # fmt: skip
DUNDERS["__div__"] = operator.truediv
DUNDERS["__idiv__"] = operator.itruediv
REFLECTED: dict[str, Callable[..., Any]] = {
    f"__r{name}__": DUNDERS[f"__{name}__"]
    for name in (
        "add", "sub", "mul", "truediv", "div", "floordiv", "mod", "pow", "matmul", "and", "or",
        "xor", "lshift", "rshift",
    )
}  # fmt: skip


# Methods that give no tensor.
METADATA = frozenset(
    "size dim stride numel is_contiguous is_floating_point is_complex ndimension element_size"
    " nelement get_device is_signed".split()
)
# Operators that change nothing, and where functions take the flag by which they do.
READING = frozenset(
    {f for name, f in DUNDERS.items() if name[2] != "i" or name == "__invert__"}
    | {operator.getitem, getattr}
)
INPLACE_POSITION = {
    function: list(inspect.signature(function).parameters).index("inplace")
    for name, function in vars(F).items()
    if inspect.isfunction(function) and "inplace" in inspect.signature(function).parameters
}


def _operator_modules() -> Iterator[Any]:
    yield torch._C._VariableFunctions
    for name in ("_nn", "_fft", "_linalg", "_special", "_sparse", "_nested"):
        yield getattr(torch._C, name)


def _c_operations() -> Iterator[Any]:
    for module in _operator_modules():
        for name in dir(module):
            value = getattr(module, name)
            if isinstance(value, types.BuiltinFunctionType) and name not in _NO_OPERATIONS:
                yield value


def _python_operations() -> Iterator[Any]:
    for name in torch.functional.__all__:
        if name not in _INLINED:
            yield getattr(torch.functional, name)
    for name, value in vars(F).items():
        if name.startswith("_") or name in _INLINED or not isinstance(value, types.FunctionType):
            continue
        made_here = value.__module__ == F.__name__
        if made_here or value.__qualname__.startswith("boolean_dispatch.<locals>"):
            yield value
    yield from (predispatch._add_batch_dim, predispatch._remove_batch_dim)
    yield from (predispatch._make_dual, predispatch._unpack_dual)
    yield from (torch._C._functorch._wrap_for_grad, predispatch._unwrap_for_grad)
    yield from (torch.unravel_index, torch.pca_lowrank, torch.svd_lowrank, torch.lobpcg)


def _methods() -> Iterator[tuple[str, Any]]:
    for cls in (torch._C.TensorBase, torch.Tensor):
        for name, value in vars(cls).items():
            if isinstance(value, _METHOD_TYPES):
                yield name, value


_METHOD_TYPES = (types.MethodDescriptorType, types.WrapperDescriptorType, types.FunctionType)
_functions: dict[int, Any] = {id(f): f for f in (*_c_operations(), *_python_operations())}
_method_names: dict[int, tuple[str, Any]] = {
    id(value): (name, value)
    for name, value in _methods()
    if not hasattr(object, name) or getattr(object, name) is not value
}
_allowed: dict[int, Any] = {}


def is_operation(real: Any) -> bool:
    """Whether a call of ``real`` goes into the graph."""
    key = id(real)
    if key in _functions or key in _method_names or key in _allowed:
        return True
    return isinstance(real, _OPERATOR_TYPES)


def is_torch_function(real: Any) -> bool:
    """Whether ``real`` is one of torch's own functions (no method, no registered operator)."""
    return id(real) in _functions


def method_name(real: Any) -> str | None:
    """The name under which ``real`` is a method of tensors, or None."""
    found = _method_names.get(id(real))
    return found[0] if found is not None else None


def allow(real: Any) -> None:
    """Have calls of a function go into the graph from now on, unseen."""
    _allowed[id(real)] = real
