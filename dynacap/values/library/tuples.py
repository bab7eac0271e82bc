"""What makes a tuple, and the fields of named tuples and of C's struct sequences."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from dynacap.values.base import Value
from dynacap.values.build import build_known, builds
from dynacap.values.container import TupleValue
from dynacap.values.data_model import as_tuple
from dynacap.values.data_model.calls import compute
from dynacap.values.library.handlers import handles, is_none
from dynacap.values.natives import native
from dynacap.values.tracer import Tracer

_FIELD_GETTER: Any = type(vars(namedtuple("_Pair", "left right"))["left"])


@handles(tuple.__new__)
def _new(t: Tracer, cls: Value, iterable: Value | None = None, /) -> Value:
    type_ = cls.known()
    if type_ is tuple and iterable is not None and type(iterable) is TupleValue:
        if iterable.cls is tuple:
            return iterable
    items = [] if iterable is None else as_tuple(t, iterable)
    return TupleValue(items, type_)


@handles(vars(tuple)["__getnewargs__"])
def _getnewargs(t: Tracer, self: TupleValue, /) -> Value:
    return TupleValue([TupleValue(list(self.items))])


builds(_FIELD_GETTER)(build_known)


@native(_FIELD_GETTER.__get__)
def _read_field(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A field of a named tuple is an index into it."""
    descriptor, obj = args[0], args[1]
    if is_none(obj):
        return descriptor
    if not isinstance(obj, TupleValue):
        return t.graph_break("foreign-storage", f"{obj.describe()} has a named tuple's field")
    index = descriptor.known().__reduce__()[1][0]
    return t.force_item(obj.items, index)


@handles(tuple.__hash__)
def _hash(t: Tracer, self: TupleValue, /) -> Value:
    return compute(t, hash, [TupleValue(self.items)], {}, ("__hash__",))
