"""The functions of ``operator``: each is a function of the data model."""

from __future__ import annotations

import operator
from typing import Any

from dynacap.values.base import Const, Value
from dynacap.values.data_model import (
    binary_op,
    compare,
    contains,
    delete_item,
    get_item,
    is_same,
    set_item,
    truth,
    unary_op,
)
from dynacap.values.data_model.calls import compute
from dynacap.values.iterator_builtins import elements
from dynacap.values.library.handlers import handles
from dynacap.values.library.sequences import same_or_equal
from dynacap.values.tracer import Tracer

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>",
}  # fmt: skip
_COMPARE = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}


def _register_binary(function: Any, symbol: str) -> None:
    @handles(function)
    def operate(t: Tracer, left: Value, right: Value, /) -> Value:
        return binary_op(t, symbol, left, right)


def _register_comparison(function: Any, symbol: str) -> None:
    @handles(function)
    def relate(t: Tracer, left: Value, right: Value, /) -> Value:
        return compare(t, symbol, left, right)


def _register_unary(function: Any, symbol: str) -> None:
    @handles(function)
    def operate(t: Tracer, operand: Value, /) -> Value:
        return unary_op(t, symbol, operand)


for _name, _symbol in _BINARY.items():
    _register_binary(getattr(operator, _name), _symbol)
    _register_binary(getattr(operator, "i" + _name.strip("_")), _symbol + "=")
for _name, _symbol in _COMPARE.items():
    _register_comparison(getattr(operator, _name), _symbol)
for _name, _symbol in (("neg", "-"), ("pos", "+"), ("invert", "~")):
    _register_unary(getattr(operator, _name), _symbol)


@handles(operator.not_)
def _not(t: Tracer, operand: Value, /) -> Value:
    return Const(not truth(t, operand))


@handles(operator.truth)
def _truth(t: Tracer, operand: Value, /) -> Value:
    return Const(truth(t, operand))


@handles(operator.is_)
def _is(t: Tracer, left: Value, right: Value, /) -> Value:
    return Const(is_same(t, left, right))


@handles(operator.is_not)
def _is_not(t: Tracer, left: Value, right: Value, /) -> Value:
    return Const(not is_same(t, left, right))


@handles(operator.contains)
def _contains(t: Tracer, container: Value, item: Value, /) -> Value:
    return Const(contains(t, container, item))


@handles(operator.getitem)
def _getitem(t: Tracer, obj: Value, key: Value, /) -> Value:
    return get_item(t, obj, key)


@handles(operator.setitem)
def _setitem(t: Tracer, obj: Value, key: Value, value: Value, /) -> None:
    set_item(t, obj, key, value)


@handles(operator.delitem)
def _delitem(t: Tracer, obj: Value, key: Value, /) -> None:
    delete_item(t, obj, key)


@handles(operator.length_hint)
def _length_hint(t: Tracer, obj: Value, default: Value = Const(0), /) -> Value:
    return compute(t, operator.length_hint, [obj, default], {}, ("__len__", "__length_hint__"))


@handles(operator.concat)
def _concat(t: Tracer, left: Value, right: Value, /) -> Value:
    return binary_op(t, "+", left, right)


@handles(operator.iconcat)
def _iconcat(t: Tracer, left: Value, right: Value, /) -> Value:
    return binary_op(t, "+=", left, right)


@handles(operator.countOf)
def _count_of(t: Tracer, iterable: Value, item: Value, /) -> Value:
    return Const(sum(same_or_equal(t, found, item) for found in elements(t, iterable)))


@handles(operator.indexOf)
def _index_of(t: Tracer, iterable: Value, item: Value, /) -> Value:
    for index, found in enumerate(elements(t, iterable)):
        if same_or_equal(t, found, item):
            return Const(index)
    return t.raise_error(ValueError, "sequence.index(x): x not in sequence")
