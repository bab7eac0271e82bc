"""Operands of an operation: each value as it stands in the graph and as the fake run needs it."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import torch

from dynacap.backends.torch_surface import is_operation
from dynacap.values.base import MISSING, Const, Known, Lazy, NotConstant, UnreadConst, Value
from dynacap.values.container import DictValue, ListValue, SliceValue, TupleValue
from dynacap.values.function import FunctionValue
from dynacap.values.object import PayloadValue, payload_of
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

_NO_ARGUMENTS = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
Pair = tuple[Any, Any]  # what the node holds, what the fake run is given


def lower(t: Tracer, value: Value) -> Pair:
    """A value as an argument of a node and as an argument of the fake run."""
    kind = type(value)
    if kind is TensorValue:
        return value.node, value.fake  # type: ignore[attr-defined]
    if kind is Const or kind is UnreadConst:
        real = value.value  # type: ignore[attr-defined]
        if isinstance(real, np.generic):
            real = real.item()  # torch takes NumPy's scalars for numbers
        return real, real
    return _LOWERINGS.get(kind, _unsupported)(t, value)


def lower_all(t: Tracer, args: list[Value]) -> tuple[list[Any], list[Any]]:
    """The same for positional arguments."""
    pairs = [lower(t, value) for value in args]
    return [node for node, _ in pairs], [fake for _, fake in pairs]


def lower_keywords(t: Tracer, kwargs: dict[str, Value]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same for keyword arguments."""
    nodes: dict[str, Any] = {}
    fakes: dict[str, Any] = {}
    for name, value in kwargs.items():
        nodes[name], fakes[name] = lower(t, value)
    return nodes, fakes


def _known(t: Tracer, value: Known) -> Pair:
    real = value.value
    if isinstance(real, enum.Enum):
        return _payload(t, value)
    if isinstance(real, torch.Generator):
        t.graph_break(
            "random-generator",
            "a torch.Generator is an argument of an operation",
            "draw the random numbers outside the compiled function, or use the default generator",
        )
    if isinstance(real, _NO_ARGUMENTS) and not is_operation(real):
        _unsupported(t, value)
    return real, real


def _payload(t: Tracer, value: Known | PayloadValue) -> Pair:
    """What is a number or text goes in as such: a graph is made of plain values."""
    plain = payload_of(value)
    if plain is MISSING and isinstance(value, Known):
        plain = value.value
    return plain, plain


def _tuple(t: Tracer, value: TupleValue) -> Pair:
    nodes, fakes = lower_all(t, _forced(t, value.items))
    kind = value.cls
    if kind is torch.Size:
        return tuple(nodes), torch.Size(fakes)
    if hasattr(kind, "_fields"):
        return kind._make(nodes), kind._make(fakes)  # type: ignore[attr-defined]
    return tuple(nodes), tuple(fakes)


def _list(t: Tracer, value: ListValue) -> Pair:
    if value.cls is not list:
        _unsupported(t, value)
    return lower_all(t, _forced(t, value.items))


def _forced(t: Tracer, items: list[Value]) -> list[Value]:
    for index, item in enumerate(items):
        if type(item) is Lazy:
            t.force_item(items, index)
    return items


def _dict(t: Tracer, value: DictValue) -> Pair:
    nodes: dict[Any, Any] = {}
    fakes: dict[Any, Any] = {}
    for keyval, item in value.items(t):
        try:
            key = keyval.constant()
        except NotConstant:
            _unsupported(t, value)
        nodes[key], fakes[key] = lower(t, item)
    return nodes, fakes


def _slice(t: Tracer, value: SliceValue) -> Pair:
    nodes, fakes = lower_all(t, list(value.parts))
    return slice(*nodes), slice(*fakes)


def _function(t: Tracer, value: FunctionValue) -> Pair:
    if value.real is not None and is_operation(value.real):
        return value.real, value.real
    _unsupported(t, value)


def _unsupported(t: Tracer, value: Value) -> NoReturn:
    t.graph_break(
        "numpy-interop" if issubclass(value.cls, (np.ndarray, np.generic)) else "tensor-argument",
        f"{value.describe()} is an argument of a tensor operation",
        "pass tensors, numbers, and lists or tuples of them",
    )


_LOWERINGS: dict[type, Callable[..., Pair]] = {
    Known: _known,
    PayloadValue: _payload,
    SymbolValue: lambda t, value: (value.node, value.sym),
    TupleValue: _tuple,
    ListValue: _list,
    DictValue: _dict,
    SliceValue: _slice,
    FunctionValue: _function,
    Lazy: lambda t, value: lower(t, t.force(value)),
}
