"""The C-level fields of tensors: ``shape``, ``dtype``, ``grad``, ``T`` and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynacap.guards.source import Attr
from dynacap.values.base import Const, Value
from dynacap.values.data_model.calls import part_of
from dynacap.values.tensor.results import holds_symbols, size_value, static_value
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.values.tensor.family import TensorFamily

Reader = Callable[["TensorFamily", "Tracer", TensorValue, str], Value]


def read_field(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    """``tensor.name`` for a field that C code defines."""
    reader = _READERS.get(name)
    if reader is None:
        t.graph_break("tensor-field", f"Tensor.{name} is read")
    return reader(family, t, obj, name)


def _static(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    """What the guard on the tensor covers."""
    found = getattr(obj.fake, name)
    return _view(family, t, obj, name) if holds_symbols(found) else static_value(t, found)


def _shape(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    shape = obj.fake.shape
    if family.symbols is not None and holds_symbols(shape):
        return family.emit(t, "call_method", "size", [obj], {})
    return size_value(shape)


def _view(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    """A field that is itself an operation."""
    return family.emit(t, "call_function", getattr, [obj, Const(name)], {})


def _is_leaf(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    """Not in the tensor guard, and few ask: a guard of its own."""
    if obj.source is not None and obj.real is not None and obj.fake.requires_grad:
        return t.wrap(obj.real.is_leaf, Attr(obj.source, name))
    return Const(obj.fake.is_leaf)


def _grad(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    if obj.real is not None:
        if not (obj.real.is_leaf and obj.fake.is_leaf):
            t.graph_break("autograd-call", ".grad of a tensor that is no leaf")
        return part_of(t, obj.real.grad, obj, name)
    if obj.fake.is_leaf:
        return Const(None)
    return t.graph_break("autograd-call", ".grad of a tensor that is no leaf")


def _grad_fn(family: TensorFamily, t: Tracer, obj: TensorValue, name: str) -> Value:
    if not obj.fake.requires_grad:
        return Const(None)
    if obj.real is not None and obj.real.grad_fn is None and obj.source is not None:
        return t.wrap(None, Attr(obj.source, name))
    return t.graph_break("autograd-call", f"Tensor.{name} is read")


_FLAGS = (
    "is_cuda is_cpu is_xla is_xpu is_ipu is_mps is_mtia is_maia is_vulkan is_meta is_sparse"
    " is_sparse_csr is_mkldnn is_quantized is_nested"
)
_READERS: dict[str, Reader] = {
    **dict.fromkeys(("shape",), _shape),
    **dict.fromkeys(
        f"dtype device layout ndim itemsize nbytes requires_grad {_FLAGS}".split(), _static
    ),
    **dict.fromkeys(("T", "H", "mT", "mH", "real", "imag", "data"), _view),
    "is_leaf": _is_leaf,
    "grad": _grad,
    "_grad": _grad,
    "grad_fn": _grad_fn,
}


def set_field(family: TensorFamily, t: Tracer, obj: TensorValue, name: str, value: Value) -> None:
    """``tensor.name = value`` for a field that C code defines."""
    if name == "requires_grad":
        family.method(t, "requires_grad_", [obj, value], {})
        return
    t.graph_break("tensor-field-write", f"Tensor.{name} is set")


FIELDS = frozenset(_READERS) | {"_backward_hooks", "names", "name", "volatile", "grad_dtype"}
