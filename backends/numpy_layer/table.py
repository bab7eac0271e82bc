"""Which of NumPy's functions, methods and fields is which operation, as data."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dynacap.backends.numpy_layer.memory import SCALARS
from dynacap.backends.numpy_layer.operations import OPERATIONS

CLASSES: tuple[Any, ...] = (np.ndarray, np.generic, *SCALARS)
# Values that are not NumPy's, memory that hangs on the layer, or an order that NumPy leaves open.
_REFUSED = frozenset(
    "cbrt heaviside modf angle unique divmod empty empty_like from_dlpack resize ndarray_resize"
    " argsort ndarray_argsort ndarray_item ndarray_tolist ndarray_view".split()
)
_PLACES: dict[str, Any] = {"linalg_": np.linalg, "fft_": np.fft}
_BINARY = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "matmul": "matmul",
    "and_": "bitwise_and", "or_": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
    "rshift": "right_shift",
}  # fmt: skip
_COMPARE = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal",
}  # fmt: skip
OPERATORS = {getattr(operator, name): found for name, found in (_BINARY | _COMPARE).items()}
IN_PLACE = {getattr(operator, f"i{n.rstrip('_')}"): found for n, found in _BINARY.items()}
_SPECIAL = {
    "__neg__": "negative", "__pos__": "positive", "__abs__": "absolute", "__invert__": "invert",
    "__getitem__": "getitem", "__setitem__": "setitem_",
}  # fmt: skip

# What follows from types, shapes and flags alone.
QUESTIONS = (
    np.result_type, np.can_cast, np.issubdtype, np.isscalar, np.broadcast_shapes, np.shape,
    np.ndim, np.size, np.iscomplexobj, np.isrealobj, np.promote_types, np.ndarray.__len__,
)  # fmt: skip
_FIELDS = "shape dtype ndim size itemsize nbytes strides flags device".split()
PURE = (np.iinfo, np.finfo, np.dtype)
_REASONS = {
    **dict.fromkeys(
        "__int__ __float__ __complex__ __index__ item tolist tobytes".split(),
        "data-dependent-value",
    ),
    **dict.fromkeys(("__bool__", "__contains__"), "data-dependent-branch"),
    **dict.fromkeys(("__repr__", "__str__", "__format__"), "tensor-print"),
}
UFUNC_METHODS: dict[tuple[str, Any], str] = {
    ("reduce", np.add): "sum",
    ("reduce", np.multiply): "prod",
    ("reduce", np.maximum): "max",
    ("reduce", np.minimum): "min",
    ("reduce", np.logical_and): "all",
    ("reduce", np.logical_or): "any",
    ("accumulate", np.add): "cumsum",
    ("accumulate", np.multiply): "cumprod",
}
_C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def c_methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The methods that a class written in C declares itself."""
    for name, raw in vars(cls).items():
        if isinstance(raw, _C_METHODS):
            yield name, raw


def functions() -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """Each of NumPy's callables with its operation, and with what to call in its place."""
    asked = {id(real) for real in QUESTIONS}
    # In this order ``sort_`` comes before ``sort``: those that write.
    for name in sorted(OPERATIONS.keys() - _REFUSED, reverse=True):
        prefix = next((prefix for prefix in _PLACES if name.startswith(prefix)), "")
        owner = _PLACES.get(prefix, np)
        real = vars(owner).get(name.removeprefix(prefix).rstrip("_"))
        if callable(real) and not isinstance(real, type) and id(real) not in asked:
            yield real, name, real
    for cls in CLASSES:
        yield from methods(cls)


def methods(cls: type) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """The methods and computed fields of arrays and scalars that are operations."""
    scalar = issubclass(cls, np.generic)
    for name, raw in c_methods(cls):
        for operation in (_SPECIAL.get(name), f"ndarray_{name}_", f"ndarray_{name}"):
            writes = str(operation).endswith("_")  # which leaves a scalar as it is
            if operation in OPERATIONS and operation not in _REFUSED and not (writes and scalar):
                yield raw, operation, raw
                break
    for name in ("T", "real", "imag"):
        if name in vars(cls) and cls in (np.ndarray, np.generic):
            yield vars(cls)[name], f"ndarray_{name}", vars(cls)[name].__get__


CYTHON_FUNCTION: Any = type(vars(np.random.RandomState)["random"])


def refused() -> Iterator[tuple[Any, str]]:
    """Methods that break the graph, each with its reason."""
    for cls in CLASSES:
        for name, raw in c_methods(cls):
            if name in _REASONS:
                yield raw, _REASONS[name]
    for streams in (np.random.RandomState, np.random.Generator):
        for raw in vars(streams).values():
            if type(raw) is CYTHON_FUNCTION:
                yield raw, "numpy-random"


def fields() -> Iterator[Any]:
    """The descriptors of fields that follow from types, shapes and flags."""
    for cls in CLASSES[:2]:
        yield from (vars(cls)[name] for name in _FIELDS)


def outer(ufunc: Any, a: Any, b: Any, /) -> Any:
    """``ufunc.outer``: every element of one array with every element of the other."""
    left, right = np.asarray(a), np.asarray(b)
    return ufunc(left.reshape(left.shape + (1,) * right.ndim), right)
