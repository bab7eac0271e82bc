"""Operators, comparisons, attributes and items: all go through the data model."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType

from dynacap.executor.machine import Machine
from dynacap.executor.registry import operation
from dynacap.values import data_model as dm
from dynacap.values.base import NONE, Const, Known, Value
from dynacap.values.container import SliceValue

# name -> what becomes of the machine, the operand, and what is popped
_OPERATIONS: dict[str, Callable[..., Value | None]] = {
    "UNARY_NEGATIVE": lambda m, _, value: dm.unary_op(m, "-", value),
    "UNARY_POSITIVE": lambda m, _, value: dm.unary_op(m, "+", value),
    "UNARY_INVERT": lambda m, _, value: dm.unary_op(m, "~", value),
    "UNARY_NOT": lambda m, _, value: Const(not dm.truth(m, value)),
    "BINARY_OP": dm.binary_op,
    "COMPARE_OP": dm.compare,
    "IS_OP": lambda m, negated, left, right: Const(dm.is_same(m, left, right) is not negated),
    "CONTAINS_OP": lambda m, negated, item, obj: Const(dm.contains(m, obj, item) != negated),
    "BINARY_SUBSCR": lambda m, _, obj, key: dm.get_item(m, obj, key),
    "STORE_SUBSCR": lambda m, _, value, obj, key: dm.set_item(m, obj, key, value),
    "DELETE_SUBSCR": lambda m, _, obj, key: dm.delete_item(m, obj, key),
    "BUILD_SLICE": lambda m, _, *bounds: _slice(*bounds),
    "BINARY_SLICE": lambda m, _, obj, *bounds: dm.get_item(m, obj, _slice(*bounds)),
    "STORE_SLICE": lambda m, _, value, obj, *at: dm.set_item(m, obj, _slice(*at), value),
    "LOAD_ATTR": lambda m, name, obj: dm.get_attribute(m, obj, name),
    "STORE_ATTR": lambda m, name, value, obj: dm.set_attribute(m, obj, name, value),
    "DELETE_ATTR": lambda m, name, obj: dm.delete_attribute(m, obj, name),
    "GET_ITER": lambda m, _, obj: dm.iterate(m, obj),
    "GET_YIELD_FROM_ITER": lambda m, _, obj: dm.iterate(m, _no_coroutine(m, obj)),
    "CONVERT_VALUE": lambda m, conversion, value: m.call(Known(conversion), [value]),
}


def _slice(start: Value, stop: Value, step: Value = NONE) -> SliceValue:
    return SliceValue((start, stop, step))


def _no_coroutine(m: Machine, obj: Value) -> Value:
    """Python says which generators may wait for a coroutine."""
    return m.graph_break("async", "a coroutine") if obj.cls is CoroutineType else obj


for _name, _apply in _OPERATIONS.items():
    operation(_name, _apply)
