"""Operators, comparisons, attributes and items: all go through the data model."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType

from dynacap.executor.machine import Machine
from dynacap.executor.registry import operation
from dynacap.values.base import NONE, Const, Known, Value
from dynacap.values.container import SliceValue
from dynacap.values.data_model import (
    binary_op,
    compare,
    contains,
    delete_attribute,
    delete_item,
    get_attribute,
    get_item,
    is_same,
    iterate,
    set_attribute,
    set_item,
    truth,
    unary_op,
)

# name -> how many it pops, and what becomes of the machine, the operand, and what was popped
_OPERATIONS: dict[str, tuple[int | None, Callable[..., Value | None]]] = {
    "UNARY_NEGATIVE": (1, lambda m, _, value: unary_op(m, "-", value)),
    "UNARY_POSITIVE": (1, lambda m, _, value: unary_op(m, "+", value)),
    "UNARY_INVERT": (1, lambda m, _, value: unary_op(m, "~", value)),
    "UNARY_NOT": (1, lambda m, _, value: Const(not truth(m, value))),
    "BINARY_OP": (2, binary_op),
    "COMPARE_OP": (2, compare),
    "IS_OP": (2, lambda m, negated, left, right: Const(is_same(m, left, right) is not negated)),
    "CONTAINS_OP": (2, lambda m, negated, item, obj: Const(contains(m, obj, item) is not negated)),
    "BINARY_SUBSCR": (2, lambda m, _, obj, key: get_item(m, obj, key)),
    "STORE_SUBSCR": (3, lambda m, _, value, obj, key: set_item(m, obj, key, value)),
    "DELETE_SUBSCR": (2, lambda m, _, obj, key: delete_item(m, obj, key)),
    "BUILD_SLICE": (None, lambda m, _, *bounds: _slice(*bounds)),
    "BINARY_SLICE": (3, lambda m, _, obj, *bounds: get_item(m, obj, _slice(*bounds))),
    "STORE_SLICE": (4, lambda m, _, value, obj, *bounds: set_item(m, obj, _slice(*bounds), value)),
    "LOAD_ATTR": (1, lambda m, name, obj: get_attribute(m, obj, name)),
    "STORE_ATTR": (2, lambda m, name, value, obj: set_attribute(m, obj, name, value)),
    "DELETE_ATTR": (1, lambda m, name, obj: delete_attribute(m, obj, name)),
    "GET_ITER": (1, lambda m, _, obj: iterate(m, obj)),
    "GET_YIELD_FROM_ITER": (1, lambda m, _, obj: iterate(m, _no_coroutine(m, obj))),
    "CONVERT_VALUE": (1, lambda m, conversion, value: m.call(Known(conversion), [value])),
}


def _slice(start: Value, stop: Value, step: Value = NONE) -> SliceValue:
    return SliceValue((start, stop, step))


def _no_coroutine(m: Machine, obj: Value) -> Value:
    """Python says which generators may wait for a coroutine."""
    return m.graph_break("async", "a coroutine") if obj.cls is CoroutineType else obj


for _name, (_count, _apply) in _OPERATIONS.items():
    operation(_name, _count, _apply)
