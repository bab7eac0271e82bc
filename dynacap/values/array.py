"""NumPy arrays and scalars as values, and calls of NumPy on them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple, NoReturn

import numpy as np
import torch

from dynacap.backends import torch_refusals
from dynacap.backends.numpy_layer import fit, memory
from dynacap.backends.numpy_layer.memory import SCALARS, TORCH_DTYPES, Twin
from dynacap.backends.numpy_layer.nodes import Finish, finished, node as node_of
from dynacap.backends.numpy_layer.table import IN_PLACE, OPERATORS
from dynacap.guards.relations import Predicate
from dynacap.values.base import Const, Known, Lazy, UnreadConst, Value, fields
from dynacap.values.container import ListValue, SliceValue, TupleValue
from dynacap.values.data_model.calls import made
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

Kwargs = dict[str, Value]
_SMALL = 4096  # bytes; what NumPy makes of constants is kept up to this size, else made anew
_QUIET = Predicate((), fit.warns_at_most, "np.geterr() has errors ignored or warned of")
_TYPES: tuple[Any, ...] = (int, float, bool, complex, *SCALARS)


@fields
class ArrayValue(TensorValue):
    """One array, or one scalar that came out of an array.

    In the graph it is a tensor over the same memory, with its ``fake``; ``twin`` is the array's
    own stand-in (:func:`twin_of`).
    """

    twin: Twin = field(kw_only=True)


class MemoryValue(TensorValue):
    """The tensor over the memory of an array from outside: a graph input."""

    __slots__ = ()


# -- operands --------------------------------------------------------------------------------------
class Operand(NamedTuple):
    """One operand: as the node holds it, as the layer is given it, and as NumPy is."""

    node: Any
    fake: Any
    twin: Any


def lower(t: Tracer, value: Value) -> Operand:
    """An operand in its three forms; breaks on what a graph over arrays cannot hold."""
    return _LOWERINGS.get(type(value), _refuse)(t, value)


def _refuse(t: Tracer, value: Value) -> NoReturn:
    t.graph_break("numpy-argument", f"{value.describe()} is an argument of a NumPy function")


def _constant(t: Tracer, value: Const | Known) -> Operand:
    real = value.value
    if isinstance(real, np.dtype) or (isinstance(real, type) and real in _TYPES):
        dtype: np.dtype[Any] = np.dtype(real)
        return Operand(dtype.name, dtype.name, real) if dtype in TORCH_DTYPES else _refuse(t, value)
    if isinstance(value, Known) or (isinstance(real, np.generic) and type(real) not in SCALARS):
        _refuse(t, value)
    plain = real.item() if isinstance(real, np.generic) else real
    return Operand(plain, plain, real)


def _sequence(t: Tracer, value: TupleValue | ListValue) -> Operand:
    kind = value.cls
    if kind not in (tuple, list):
        _refuse(t, value)
    parts = [lower(t, t.force_item(value.items, index)) for index in range(len(value.items))]
    return Operand(*(kind(part[form] for part in parts) for form in range(3)))


def _slice(t: Tracer, value: SliceValue) -> Operand:
    parts = [lower(t, part) for part in value.parts]
    return Operand(*(slice(*(part[form] for part in parts)) for form in range(3)))


_LOWERINGS: dict[type, Callable[..., Operand]] = {
    ArrayValue: lambda t, value: Operand(value.node, value.fake, value.twin),
    Const: _constant,
    UnreadConst: _constant,
    SymbolValue: _constant,
    Known: _constant,
    TupleValue: _sequence,
    ListValue: _sequence,
    SliceValue: _slice,
    Lazy: lambda t, value: lower(t, t.force(value)),
}


def arrays_of(values: list[Value]) -> list[ArrayValue]:
    """The arrays among operands, at any depth."""
    found: list[ArrayValue] = []
    for value in values:
        if type(value) is ArrayValue:
            found.append(value)
        elif type(value) in (TupleValue, ListValue):
            found += arrays_of(value.items)  # type: ignore[attr-defined]
    return found


# -- calls -----------------------------------------------------------------------------------------
def call(t: Tracer, name: str, real: Any, args: list[Value], kwargs: Kwargs) -> Value:
    """What ``real(*args, **kwargs)`` gives, where ``name`` is the operation that means the same."""
    tensors = t.tensors
    tensors.settle(t)
    arrays = arrays_of([*args, *kwargs.values()])
    given = [lower(t, arg) for arg in args]
    named = {key: lower(t, arg) for key, arg in kwargs.items()}
    try:
        twins = [arg.twin for arg in given], {key: arg.twin for key, arg in named.items()}
        twin = fit.run_twins(name, real, *twins)
        if not arrays and (known := _of_constants(t, twin)) is not None:
            return known
        casts = fit.casts(name, *twins, twin)
        fakes = [arg.fake for arg in given], {key: arg.fake for key, arg in named.items()}
        found = _run_layer(t, name, node_of(name, casts), *fakes)
        if not fit.is_array(twin) and not fit.has_tensors(found) and name[-1] != "_":
            return made(t, twin)
        finish = fit.finish(name, found, twin, [(a.fake, a.twin) for a in arrays])
    except fit.UnfitError as unfit:
        if type(unfit.__cause__) is IndexError and len(arrays) == 1:
            t.raise_real(unfit.__cause__)
        t.graph_break(unfit.reason, str(unfit))
    t.guards.add(_QUIET)
    fake = tensors.world.run(finished, (found, finish), {})
    nodes = tuple(arg.node for arg in given), {key: arg.node for key, arg in named.items()}
    node = tensors.add_node(t, "call_function", node_of(name, casts, finish), *nodes, fake)
    return _give(t, node, fake, twin, arrays)


def _run_layer(t: Tracer, name: str, target: Any, args: Any, kwargs: Any) -> Any:
    try:
        return t.tensors.world.run(target, args, kwargs)
    except Exception as error:
        t.graph_break(*torch_refusals.of_failure(name, error, "numpy-function"))


def _of_constants(t: Tracer, twin: Twin) -> Value | None:
    """What NumPy made of constants alone is just that; of a small array there is a copy."""
    if not isinstance(twin, np.ndarray):
        holds = isinstance(twin, (tuple, list)) and any(map(fit.is_array, twin))
        return None if holds else made(t, twin)
    if twin.nbytes > _SMALL or twin.dtype not in TORCH_DTYPES:
        return None
    tensors = t.tensors
    held = tensors.wrap(t, torch.from_numpy(twin.copy("C")), None)
    copy = node_of("copy", (), (Finish(held.fake.dtype, fit.strides(twin)),))  # type: ignore[attr-defined]
    return tensors.array_of(*_tensor_over(t, held, copy), twin)


def _give(t: Tracer, node: Any, fake: Any, twin: Twin, arrays: list[ArrayValue]) -> Value:
    if fit.is_array(twin):
        for value in arrays:
            # NumPy gave an operand back; of its bools there are but two, which tell nothing.
            if value.twin is twin and not isinstance(twin, np.bool_):
                value.node = node if value.fake is fake else value.node
                return value
        return t.tensors.array_of(node, fake, twin)
    if not isinstance(twin, (tuple, list)):
        return made(t, twin)
    parts: list[Value] = []
    for index, (tensor, part) in enumerate(zip(fake, twin, strict=True)):
        item = t.tensors.add_node(t, "call_function", operator.getitem, (node, index), {}, tensor)
        parts.append(_give(t, item, tensor, part, arrays))
    return ListValue(parts) if type(twin) is list else TupleValue(parts, type(twin))


# -- operators, tensors and arrays -----------------------------------------------------------------
def takes(value: Value) -> bool:
    """Whether NumPy's operators take the operand for an array or a number."""
    if type(value) in (TupleValue, ListValue):
        return value.cls in (tuple, list)
    return type(value) is ArrayValue or (isinstance(value, Const) and value.cls in _TYPES)


def operate(t: Tracer, target: Any, args: list[Value], kwargs: Kwargs) -> Value:
    """An operator on arrays, or a function of torch that makes a tensor of one."""
    if target in OPERATORS:
        return call(t, OPERATORS[target], target, args, kwargs)
    if target in IN_PLACE:
        kept = {"out": args[0]} if issubclass(args[0].cls, np.ndarray) else {}
        return call(t, IN_PLACE[target], getattr(np, IN_PLACE[target]), args, kept)
    why = "an array" if type(args[0]) is not ArrayValue or len(args) > 1 else None
    if why or (why := memory.no_tensor(target, args[0].fake, args[0].twin, kwargs.keys())):  # type: ignore[attr-defined]
        t.graph_break("numpy-interop", f"{target.__name__} of {why}")
    shared = target is not torch.tensor and issubclass(args[0].cls, np.ndarray)
    tensor = _tensor_over(t, args[0], torch.Tensor.detach if shared else torch.Tensor.clone)
    value = t.tensors.tensor_of(*tensor)
    return t.tensors.method(t, "to", [value], kwargs) if kwargs else value


def to_array(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
    """``tensor.numpy()``: an array over the tensor's memory."""
    tensors = t.tensors
    tensors.settle(t)
    twin = memory.twin_of_tensor(args[0].fake) if tensors.owns(args[0]) else None  # type: ignore[attr-defined]
    if twin is None or len(args) > 1 or kwargs:
        t.graph_break("numpy-interop", f"Tensor.numpy of a {args[0].describe()}")
    return tensors.array_of(*_tensor_over(t, args[0], torch.Tensor.detach), twin)


def _tensor_over(t: Tracer, value: Any, target: Any) -> tuple[Any, Any]:
    """A tensor object of its own over the same memory, or over a copy of it."""
    tensors = t.tensors
    fake = tensors.world.run(target, (value.fake,), {})
    return tensors.add_node(t, "call_function", target, (value.node,), {}, fake), fake
