"""The functions of ``operator``: each is a function of the data model."""

from __future__ import annotations

import operator
from collections.abc import Callable
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
from dynacap.values.library.handlers import Operation, handles
from dynacap.values.library.sequences import same_or_equal
from dynacap.values.tracer import Tracer

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
    "pow": "**", "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<",
    "rshift": ">>",
}  # fmt: skip
_COMPARE = {"lt": "<", "le": "<=", "eq": "==", "ne": "!=", "gt": ">", "ge": ">="}


def _register(function: Any, apply: Callable[..., Value], symbol: str) -> None:
    @handles(function)
    def operate(t: Tracer, left: Value, right: Value, /) -> Value:
        return apply(t, symbol, left, right)


for _name, _symbol in _BINARY.items():
    _register(getattr(operator, _name), binary_op, _symbol)
    _register(getattr(operator, "i" + _name.strip("_")), binary_op, _symbol + "=")
for _name, _symbol in _COMPARE.items():
    _register(getattr(operator, _name), compare, _symbol)
_register(operator.concat, binary_op, "+")
_register(operator.iconcat, binary_op, "+=")

_OTHERS: dict[Any, Operation] = {
    operator.neg: lambda t, operand, /: unary_op(t, "-", operand),
    operator.pos: lambda t, operand, /: unary_op(t, "+", operand),
    operator.invert: lambda t, operand, /: unary_op(t, "~", operand),
    operator.not_: lambda t, operand, /: Const(not truth(t, operand)),
    operator.truth: lambda t, operand, /: Const(truth(t, operand)),
    operator.is_: lambda t, left, right, /: Const(is_same(t, left, right)),
    operator.is_not: lambda t, left, right, /: Const(not is_same(t, left, right)),
    operator.contains: lambda t, container, item, /: Const(contains(t, container, item)),
    operator.getitem: lambda t, obj, key, /: get_item(t, obj, key),
    operator.setitem: lambda t, obj, key, value, /: set_item(t, obj, key, value),
    operator.delitem: lambda t, obj, key, /: delete_item(t, obj, key),
}
for _function, _meaning in _OTHERS.items():
    handles(_function)(_meaning)


@handles(operator.length_hint)
def _length_hint(t: Tracer, obj: Value, default: Value = Const(0), /) -> Value:
    return compute(t, operator.length_hint, [obj, default], {}, ("__len__", "__length_hint__"))


@handles(operator.countOf)
def _count_of(t: Tracer, iterable: Value, item: Value, /) -> Value:
    return Const(sum(same_or_equal(t, found, item) for found in elements(t, iterable)))


@handles(operator.indexOf)
def _index_of(t: Tracer, iterable: Value, item: Value, /) -> Value:
    for index, found in enumerate(elements(t, iterable)):
        if same_or_equal(t, found, item):
            return Const(index)
    return t.raise_error(ValueError, "sequence.index(x): x not in sequence")
