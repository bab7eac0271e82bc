"""Operators: binary with reflected and in-place forms, comparison, truth, identity.

Source: the language reference, "Emulating numeric types" and "Value comparisons".
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynacap.values.base import MISSING, Const, Known, UnreadConst, Value
from dynacap.values.container import TupleValue
from dynacap.values.data_model.calls import call_special, fold
from dynacap.values.symbol import SymbolValue

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer

# symbol -> (special name without underscores, operator, in-place operator)
_BINARY: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "+": ("add", operator.add, operator.iadd),
    "-": ("sub", operator.sub, operator.isub),
    "*": ("mul", operator.mul, operator.imul),
    "/": ("truediv", operator.truediv, operator.itruediv),
    "//": ("floordiv", operator.floordiv, operator.ifloordiv),
    "%": ("mod", operator.mod, operator.imod),
    "**": ("pow", operator.pow, operator.ipow),
    "@": ("matmul", operator.matmul, operator.imatmul),
    "&": ("and", operator.and_, operator.iand),
    "|": ("or", operator.or_, operator.ior),
    "^": ("xor", operator.xor, operator.ixor),
    "<<": ("lshift", operator.lshift, operator.ilshift),
    ">>": ("rshift", operator.rshift, operator.irshift),
}
_REPEATABLE = (str, bytes, bytearray, list, tuple)
_UNARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "-": ("__neg__", operator.neg),
    "+": ("__pos__", operator.pos),
    "~": ("__invert__", operator.invert),
}
# symbol -> (special name, reflected special name, operator)
_COMPARE: dict[str, tuple[str, str, Callable[..., Any]]] = {
    "<": ("__lt__", "__gt__", operator.lt),
    "<=": ("__le__", "__ge__", operator.le),
    "==": ("__eq__", "__eq__", operator.eq),
    "!=": ("__ne__", "__ne__", operator.ne),
    ">": ("__gt__", "__lt__", operator.gt),
    ">=": ("__ge__", "__le__", operator.ge),
}


def binary_op(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """``left symbol right``; a symbol that ends in ``=`` is the in-place form."""
    inplace = symbol[-1] == "="
    name, plain_op, inplace_op = _BINARY[symbol[:-1] if inplace else symbol]
    if type(left) is SymbolValue or type(right) is SymbolValue:
        computed = t.tensors.arithmetic(t, symbol.rstrip("="), left, right)
        if computed is not None:
            return computed
    if isinstance(left, Const) and isinstance(right, Const):  # a tuple may give itself
        folded = fold(t, plain_op, [left, right], {})
        if folded is not None:
            return folded
    target = inplace_op if inplace else plain_op
    if t.tensors.takes_binary(left, right):
        return t.tensor_call(target, [left, right], {})
    if inplace and t.lookup(left.cls, f"__i{name}__") is not MISSING:
        result = call_special(t, left, f"__i{name}__", [right])
        if not _not_implemented(result):
            return result
    result = _two_sided(t, f"__{name}__", f"__r{name}__", left, right)
    if _not_implemented(result):
        if symbol in ("*", "*="):
            _no_repetition(t, left, right)
        t.raise_error(
            TypeError,
            f"unsupported operand type(s) for {symbol}: {left.title!r} and {right.title!r}",
        )
    return result


def _no_repetition(t: Tracer, left: Value, right: Value) -> None:
    """The error for a sequence that is multiplied with what is no number."""
    for sequence, count in ((left, right), (right, left)):
        if issubclass(sequence.cls, _REPEATABLE):
            kind = count.cls.__name__
            t.raise_error(TypeError, f"can't multiply sequence by non-int of type {kind!r}")


def _two_sided(t: Tracer, name: str, reflected: str, left: Value, right: Value) -> Value:
    """Try the left operand's method, then the right's reflected one; a subclass goes first."""
    attempts = [(left, name, right)]
    if left.cls is not right.cls:
        other = (right, reflected, left)
        if issubclass(right.cls, left.cls) and _overrides(t, right.cls, left.cls, reflected):
            attempts.insert(0, other)
        else:
            attempts.append(other)
    for obj, method, operand in attempts:
        if t.lookup(obj.cls, method) is MISSING:
            continue
        result = call_special(t, obj, method, [operand])
        if not _not_implemented(result):
            return result
    return Const(NotImplemented)


def _overrides(t: Tracer, sub: type, base: type, name: str) -> bool:
    found = t.lookup(sub, name)
    return found is not MISSING and found is not t.lookup(base, name)


def unary_op(t: Tracer, symbol: str, operand: Value) -> Value:
    """``-x``, ``+x``, ``~x``."""
    name, real = _UNARY[symbol]
    if type(operand) is SymbolValue and operand.cls is int and symbol == "-":
        return binary_op(t, "-", Const(0), operand)
    if _folds(operand):
        folded = fold(t, real, [operand], {})
        if folded is not None:
            return folded
    if t.tensors.owns(operand):
        return t.tensor_call(real, [operand], {})
    if t.lookup(operand.cls, name) is MISSING:
        t.raise_error(TypeError, f"bad operand type for unary {symbol}: {operand.title!r}")
    return call_special(t, operand, name, [])


def compare(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """``left symbol right`` for the six rich comparisons."""
    name, reflected, real = _COMPARE[symbol]
    if type(left) is SymbolValue or type(right) is SymbolValue:
        answer = t.tensors.compare_numbers(real, left, right)
        if answer is not None:
            return Const(answer)
    if _folds(left) and _folds(right):
        folded = fold(t, real, [left, right], {})
        if folded is not None:
            return folded
    if t.tensors.takes_binary(left, right):
        return t.tensor_call(real, [left, right], {})
    attempts = [(left, name, right), (right, reflected, left)]
    if right.cls is not left.cls and issubclass(right.cls, left.cls):
        attempts.reverse()
    for obj, method, operand in attempts:
        raw = t.lookup(obj.cls, method)
        if raw is MISSING or raw is object.__eq__:
            continue
        result = (
            _inverted_eq(t, obj, operand)
            if raw is object.__ne__
            else call_special(t, obj, method, [operand])
        )
        if not _not_implemented(result):
            return result
    if symbol in ("==", "!="):
        return Const(is_same(t, left, right) == (symbol == "=="))
    return t.raise_error(
        TypeError,
        f"{symbol!r} not supported between instances of {left.title!r} and {right.title!r}",
    )


def _inverted_eq(t: Tracer, obj: Value, operand: Value) -> Value:
    """``object.__ne__`` turns the answer of ``__eq__`` round."""
    raw = t.lookup(obj.cls, "__eq__")
    if raw is object.__eq__:
        return Const(NotImplemented)
    result = call_special(t, obj, "__eq__", [operand])
    return result if _not_implemented(result) else Const(not truth(t, result))


def is_same(t: Tracer, left: Value, right: Value) -> bool:
    """``left is right``; guarded where both came from outside."""
    if left is right:
        return True
    if _is_empty_tuple(left) and _is_empty_tuple(right):
        return True  # there is only one
    known_left, known_right = _identity(left), _identity(right)
    if known_left is not MISSING and known_right is not MISSING:
        return known_left is known_right
    if left.source is not None and right.source is not None and left.cls is right.cls:
        t.guard("NotAliased", left.source, right.source)
    return False


def _is_empty_tuple(value: Value) -> bool:
    return type(value) is TupleValue and value.cls is tuple and not value.items


def _identity(value: Value) -> Any:
    """The very object where capture knows it; small constants are compared as CPython would."""
    return value.value if isinstance(value, (Const, Known)) else MISSING


def truth(t: Tracer, value: Value) -> bool:
    """``bool(value)``."""
    if type(value) is SymbolValue:
        return bool(compare(t, "!=", value, Const(0)).constant())
    if isinstance(value, Const):
        return bool(value.value)
    if t.tensors.owns(value):
        return t.tensors.truth(t, value)
    if t.lookup(value.cls, "__bool__") is not MISSING:
        result = call_special(t, value, "__bool__", [])
        if result.cls is not bool:
            t.raise_error(TypeError, f"__bool__ should return bool, returned {result.cls.__name__}")
        return bool(result.constant())
    if t.lookup(value.cls, "__len__") is not MISSING:
        return bool(call_special(t, value, "__len__", []).constant())
    return True


def _folds(value: Value) -> bool:
    """Operands on which an operator may run for real: no user code hides behind it."""
    kind = type(value)
    if kind is Const or kind is UnreadConst or kind is SymbolValue:
        return True
    if kind is TupleValue:
        return value.cls is tuple and all(_folds(item) for item in value.items)  # type: ignore[attr-defined]
    return kind is Known and isinstance(value.value, (type, enum.Enum))  # type: ignore[attr-defined]


def _not_implemented(value: Value) -> bool:
    return isinstance(value, (Const, Known)) and value.value is NotImplemented
