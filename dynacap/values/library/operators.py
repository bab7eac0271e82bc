"""The functions of ``operator``: each is a function of the data model."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from dynacap.values import data_model as dm
from dynacap.values.base import MISSING, NONE, Const, Value
from dynacap.values.data_model.calls import compute
from dynacap.values.data_model.items import is_iterable
from dynacap.values.data_model.operators import BINARY, COMPARE
from dynacap.values.data_model.refusals import refuse
from dynacap.values.library.handlers import Operation, handles, handles_rows
from dynacap.values.library.sequences import same_or_equal
from dynacap.values.tracer import Tracer


def _register(function: Any, apply: Callable[..., Value], symbol: str) -> None:
    @handles(function)
    def operate(t: Tracer, left: Value, right: Value, /) -> Value:
        return apply(t, symbol, left, right)


for _symbol, (_, _plain, _in_place) in BINARY.items():
    _register(_plain, dm.binary_op, _symbol)
    _register(_in_place, dm.binary_op, _symbol + "=")
for _symbol, (_, _, _function) in COMPARE.items():
    _register(_function, dm.compare, _symbol)


_JOIN = (str, bytes, bytearray, list, tuple, deque)


def _register_concat(function: Any, symbol: str) -> None:
    @handles(function)
    def concat(t: Tracer, left: Value, right: Value, /) -> Value:
        joins = issubclass(left.cls, _JOIN) or (_is_sequence(t, left) and _is_sequence(t, right))
        if not joins:
            refuse(t, function, left, right)
        return dm.binary_op(t, symbol, left, right)


def _is_sequence(t: Tracer, obj: Value) -> bool:
    return t.lookup(obj.cls, "__getitem__") is not MISSING and not issubclass(obj.cls, dict)


_register_concat(operator.concat, "+")
_register_concat(operator.iconcat, "+=")

_OTHERS: dict[Any, Operation] = {
    operator.neg: lambda t, operand, /: dm.unary_op(t, "-", operand),
    operator.pos: lambda t, operand, /: dm.unary_op(t, "+", operand),
    operator.invert: lambda t, operand, /: dm.unary_op(t, "~", operand),
    operator.inv: lambda t, operand, /: dm.unary_op(t, "~", operand),
    operator.call: lambda t, obj, /, *args, **kwargs: t.call(obj, list(args), kwargs),
    operator.not_: lambda t, operand, /: Const(not dm.truth(t, operand)),
    operator.truth: lambda t, operand, /: Const(dm.truth(t, operand)),
    operator.is_: lambda t, left, right, /: Const(dm.is_same(t, left, right)),
    operator.is_not: lambda t, left, right, /: Const(not dm.is_same(t, left, right)),
    operator.contains: lambda t, container, item, /: Const(dm.contains(t, container, item)),
    operator.getitem: lambda t, obj, key, /: dm.get_item(t, obj, key),
    operator.setitem: lambda t, obj, key, value, /: dm.set_item(t, obj, key, value),
    operator.delitem: lambda t, obj, key, /: dm.delete_item(t, obj, key),
}
_newer: Any = operator
if hasattr(_newer, "is_none"):  # since 3.14
    _OTHERS[_newer.is_none] = lambda t, obj, /: Const(dm.is_same(t, obj, NONE))
    _OTHERS[_newer.is_not_none] = lambda t, obj, /: Const(not dm.is_same(t, obj, NONE))
handles_rows(_OTHERS)


@handles(operator.length_hint)
def _length_hint(t: Tracer, obj: Value, default: Value = Const(0), /) -> Value:
    return compute(t, operator.length_hint, [obj, default], {}, ("__len__", "__length_hint__"))


def _matches(t: Tracer, function: Any, iterable: Value, item: Value) -> Iterator[bool]:
    """Which elements are or equal an item, read no further than asked."""
    if not is_iterable(t, iterable):
        refuse(t, function, iterable, item)
    for found in dm.walk(t, iterable):
        yield same_or_equal(t, found, item)


@handles(operator.countOf)
def _count_of(t: Tracer, iterable: Value, item: Value, /) -> Value:
    return Const(sum(_matches(t, operator.countOf, iterable, item)))


@handles(operator.indexOf)
def _index_of(t: Tracer, iterable: Value, item: Value, /) -> Value:
    for index, same in enumerate(_matches(t, operator.indexOf, iterable, item)):
        if same:
            return Const(index)
    return t.raise_error(ValueError, "sequence.index(x): x not in sequence")
