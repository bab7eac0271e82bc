"""What capture does with each of NumPy's functions, methods and fields; importing registers it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from dynacap.backends.numpy_layer import table
from dynacap.backends.numpy_layer.fit import UFUNCS
from dynacap.backends.numpy_layer.memory import SCALARS
from dynacap.backends.torch_surface import allow
from dynacap.guards.source import Source
from dynacap.values.array import ArrayValue, arrays_of, call
from dynacap.values.base import Const, Known, Value
from dynacap.values.build import CONST_TYPES, build_known, build_object, builds, builds_subclasses
from dynacap.values.data_model.calls import constant_operand, fold, made
from dynacap.values.iterator import SequenceIterator
from dynacap.values.natives import Native, find_native, native, polyfill, pure
from dynacap.values.tracer import Tracer

Kwargs = dict[str, Value]
_flags = type(np.zeros(0).flags)

CONST_TYPES.update(SCALARS)
builds(np.ufunc, type(np.sum), _flags, table.CYTHON_FUNCTION)(build_known)
builds_subclasses(np.dtype)(build_known)


@builds_subclasses(np.ndarray)
def build_array(t: Tracer, real: Any, source: Source | None) -> Value:
    """An array: an input of the graph."""
    wrap = t.tensors.wrap_array if type(real) is np.ndarray else build_object
    return wrap(t, real, source)


def _operation(name: str, real: Any) -> Native:
    def handler(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
        ufunc = UFUNCS.get(name)
        if ufunc is not None and len(args) > ufunc.nin:
            args, kwargs = args[: ufunc.nin], {"out": args[ufunc.nin], **kwargs}
        return call(t, name, real, args, kwargs)

    return handler


def _question(real: Any) -> Native:
    def handler(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
        asked = [a.twin if isinstance(a, ArrayValue) else constant_operand(a) for a in args]
        try:
            found = real(*asked, **{key: constant_operand(arg) for key, arg in kwargs.items()})
        except TypeError as error:
            return t.raise_real(error)
        return made(t, found)

    return handler


def _break(reason: str, raw: Any) -> Native:
    def handler(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
        if not arrays_of(args) and (found := fold(t, raw, args, kwargs)) is not None:
            return found
        return t.graph_break(reason, f"{raw.__qualname__} is called")

    return handler


def _scalar(kind: Any) -> Native:
    def handler(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
        if arrays_of(args):
            as_this = [args[0], Known(np.dtype(kind))]
            return call(t, "ndarray_astype", lambda x, _: kind(x), as_this, {})
        found = fold(t, kind, args, kwargs)
        return found or t.graph_break("numpy-argument", f"{kind.__name__} of what is not known")

    return handler


def _ufunc_method(method: str) -> Native:
    raw = getattr(np.ufunc, method)

    def handler(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
        ufunc = args[0].known()
        name = table.UFUNC_METHODS.get((method, ufunc))
        if name is None:
            t.graph_break("numpy-function", f"{ufunc.__name__}.{method}")
        axis = {} if len(args) > 2 else {"axis": Const(0)}
        return call(t, name, functools.partial(raw, ufunc), args[1:], {**axis, **kwargs})

    return handler


@native(np.ndarray.__iter__)
def iterate(t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
    """``iter(array)``: items are read as the iterator gets there."""
    _question(lambda twin: None if twin.ndim else iter(twin))(t, args, {})
    return SequenceIterator(args[0])


def _register() -> None:
    for real in table.QUESTIONS:
        native(real)(_question(real))
    for target, name, real in table.functions():
        if find_native(target) is None:
            native(target)(_operation(name, real))
    for method in ("reduce", "accumulate", "reduceat", "at"):
        native(getattr(np.ufunc, method))(_ufunc_method(method))
    for raw, reason in table.refused():
        native(raw)(_break(reason, raw))
    for raw in table.fields():
        native(raw)(_question(raw.__get__))
    for kind in (*SCALARS, *table.PURE):
        native(kind)(_scalar(kind))
    for cls in (*table.CLASSES[1:], np.dtype):
        pure(raw for _, raw in table.c_methods(cls) if find_native(raw) is None)
    polyfill(np.ufunc.outer)(table.outer)
    allow(torch.from_numpy)  # as an operation, of arrays only


_register()
