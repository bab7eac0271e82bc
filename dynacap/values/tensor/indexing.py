"""``tensor[key]``, ``tensor[key] = value``, and iteration over the first dimension."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from dynacap.values.base import Const, Value
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.iterator import ListIterator
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.values.tensor.family import TensorFamily


def get_item(family: TensorFamily, t: Tracer, obj: Value, key: Value) -> Value:
    """``tensor[key]``: a view or a copy, as torch decides from the key."""
    assert isinstance(obj, TensorValue)
    if type(key) is Const and key.value is True:
        obj = _get(family, t, obj, Const(None))  # a mask of no dimensions: a copy with one more
        key = ListValue([Const(0)])
    elif type(key) is ListValue:
        key = _without_mask(t, obj, key)
    return _get(family, t, obj, key)


def _get(family: TensorFamily, t: Tracer, obj: Value, key: Value) -> Value:
    return family.emit(t, "call_function", operator.getitem, [obj, key], {})


def _without_mask(t: Tracer, obj: TensorValue, key: ListValue) -> ListValue:
    """A list of bools is a mask that is known now: the positions that it picks."""
    items = [t.force_item(key.items, index) for index in range(len(key.items))]
    if not items or not all(isinstance(i, Const) and type(i.value) is bool for i in items):
        return key
    if obj.fake.dim() == 0 or obj.fake.shape[0] != len(items):
        return key
    picked = [n for n, item in enumerate(items) if item.constant()]
    return ListValue([Const(n) for n in picked]) if picked else key


def set_item(family: TensorFamily, t: Tracer, obj: Value, key: Value, value: Value) -> None:
    """``tensor[key] = value``: a write in place."""
    args = [obj, key, value]
    family.emit(t, "call_function", operator.setitem, args, {})


def iterate(family: TensorFamily, t: Tracer, obj: Value) -> Value:
    """``iter(tensor)``, as ``Tensor.__iter__`` does it: all slices at once."""
    assert isinstance(obj, TensorValue)
    if obj.fake.dim() == 0:
        t.raise_error(TypeError, "iteration over a 0-d tensor")
    slices = family.method(t, "unbind", [obj, Const(0)], {})
    assert isinstance(slices, TupleValue)
    return ListIterator(slices)


def length(t: Tracer, obj: TensorValue) -> Value:
    """``len(tensor)``."""
    if obj.fake.dim() == 0:
        t.raise_error(TypeError, "len() of a 0-d tensor")
    return t.tensors.method(t, "size", [obj, Const(0)], {})
