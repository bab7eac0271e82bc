"""Operators: binary with reflected and in-place forms, comparison, truth, identity.

Source: the language reference, "Emulating numeric types" and "Value comparisons".
"""

from __future__ import annotations

import enum
import operator
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from dynacap.guards.raw import IMMUTABLE_TYPE, derives
from dynacap.values.base import MISSING, Alias, Const, Known, UnreadConst, Value, real_of_known
from dynacap.values.container import TupleValue
from dynacap.values.data_model.calls import call_special, compute, fold
from dynacap.values.data_model.refusals import refuse
from dynacap.values.object import PayloadValue
from dynacap.values.symbol import SymbolValue
from dynacap.values.tracer import Tracer

# symbol -> special name without underscores
_NAMES = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod",
    "**": "pow", "@": "matmul", "&": "and", "|": "or", "^": "xor", "<<": "lshift",
    ">>": "rshift",
}  # fmt: skip
# symbol -> (that name, operator, in-place operator)
BINARY: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    symbol: (name, getattr(operator, f"__{name}__"), getattr(operator, f"__i{name}__"))
    for symbol, name in _NAMES.items()
}
_SEQUENCE_METHODS = {
    id(vars(kind)[name])
    for kind in (str, bytes, bytearray, list, tuple, deque)
    for name in ("__add__", "__iadd__", "__mul__", "__rmul__", "__imul__")
    if name in vars(kind)
}
UNARY: dict[str, tuple[str, Callable[..., Any]]] = {
    "-": ("__neg__", operator.neg),
    "+": ("__pos__", operator.pos),
    "~": ("__invert__", operator.invert),
}
# symbol -> (special name, reflected special name, operator)
COMPARE: dict[str, tuple[str, str, Callable[..., Any]]] = {
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
    name, plain_op, inplace_op = BINARY[symbol[:-1] if inplace else symbol]
    if type(left) is SymbolValue or type(right) is SymbolValue:
        computed: Value | None = t.tensors.symbols.arithmetic(t, symbol.rstrip("="), left, right)
        if computed is not None:
            return computed
    target = inplace_op if inplace else plain_op
    if isinstance(left, Const) and isinstance(right, Const):  # a tuple may give itself
        folded = fold(t, target, [left, right], {})
        if folded is not None:
            return folded
    if type(left) is not PayloadValue and t.tensors.takes_binary(left, right):
        return t.tensors.call(t, target, [left, right], {})
    if inplace and _is_of_numbers(t, left, f"__i{name}__"):
        result = call_special(t, left, f"__i{name}__", [right])
        if not _not_implemented(result):
            return result
    result = two_sided(t, f"__{name}__", f"__r{name}__", left, right)
    if _not_implemented(result) and name in ("add", "mul"):
        result = _of_sequences(t, name, left, right, inplace)
    if _not_implemented(result):
        refuse(t, target, left, right)
    return result


def _is_of_numbers(t: Tracer, obj: Value, method: str) -> bool:
    """Whether a class has the method, other than as a built-in sequence."""
    raw = t.lookup(obj.cls, method)
    return raw is not MISSING and id(raw) not in _SEQUENCE_METHODS


def _of_sequences(t: Tracer, name: str, left: Value, right: Value, inplace: bool) -> Value:
    """``+`` and ``*`` of built-in sequences come after the methods of both operands."""
    for sequence, other, first in ((left, right, True), (right, left, False)):
        if not first and (name == "add" or (inplace and not _is_no_sequence(left.cls))):
            break
        for method in (f"__i{name}__", f"__{name}__"):
            if method[2] == "i" and not (inplace and first):
                continue
            if id(t.lookup(sequence.cls, method)) not in _SEQUENCE_METHODS:
                continue
            if name == "mul" and t.lookup(other.cls, "__index__") is MISSING:
                kind = other.cls.__name__
                t.raise_error(TypeError, f"can't multiply sequence by non-int of type {kind!r}")
            return call_special(t, sequence, method, [other])
    return Const(NotImplemented)


def _is_no_sequence(cls: type) -> bool:
    """Whether C code has no table of a sequence's methods for a type, not even an empty one."""
    static = cls.__flags__ & IMMUTABLE_TYPE
    return bool(static) and not any(hasattr(cls, name) for name in ("__len__", "__contains__"))


def two_sided(t: Tracer, name: str, reflected: str, left: Value, right: Value) -> Value:
    """Try the left operand's method, then the right's reflected one; a subclass goes first."""
    attempts = [(left, name, right)]
    if left.cls is not right.cls:
        other = (right, reflected, left)
        if derives(right.cls, left.cls) and _overrides(t, right.cls, left.cls, reflected):
            attempts.insert(0, other)
        else:
            attempts.append(other)
    for obj, method, operand in attempts:
        if not _is_of_numbers(t, obj, method):
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
    name, real = UNARY[symbol]
    if type(operand) is SymbolValue and symbol == "-":
        negated: Value | None = t.tensors.symbols.function(t, real, operand)
        return negated or binary_op(t, "*", operand, Const(operand.cls(-1)))
    if _folds(operand):
        folded = fold(t, real, [operand], {})
        if folded is not None:
            return folded
    if t.tensors.owns(operand):
        return t.tensors.call(t, real, [operand], {})
    if t.lookup(operand.cls, name) is MISSING:
        refuse(t, real, operand)
    return call_special(t, operand, name, [])


def compare(t: Tracer, symbol: str, left: Value, right: Value) -> Value:
    """``left symbol right`` for the six rich comparisons."""
    name, reflected, real = COMPARE[symbol]
    if type(left) is SymbolValue or type(right) is SymbolValue:
        answer: Value | None = t.tensors.symbols.compare(t, real, left, right)
        if answer is not None:
            return answer
    if _folds(left) and _folds(right):
        folded = fold(t, real, [left, right], {})
        if folded is not None:
            return folded
    if t.tensors.takes_binary(left, right):
        return t.tensors.call(t, real, [left, right], {})
    attempts = [(left, name, right), (right, reflected, left)]
    if right.cls is not left.cls and derives(right.cls, left.cls):
        attempts.reverse()
    for obj, method, operand in attempts:
        raw = t.lookup(obj.cls, method)
        if raw is MISSING or raw is object.__eq__:
            continue
        result = (
            inverted_eq(t, obj, operand)
            if raw is object.__ne__
            else call_special(t, obj, method, [operand])
        )
        if not _not_implemented(result):
            return result
    if symbol in ("==", "!="):
        return Const(is_same(t, left, right) == (symbol == "=="))
    return refuse(t, real, left, right)


def inverted_eq(t: Tracer, obj: Value, operand: Value, /) -> Value:
    """``object.__ne__`` turns the answer of ``__eq__`` round."""
    result = call_special(t, obj, "__eq__", [operand])
    return result if _not_implemented(result) else Const(not truth(t, result))


def is_same(t: Tracer, left: Value, right: Value) -> bool:
    """``left is right``; guarded where both came from outside."""
    if left is right:
        return True
    if _is_empty_tuple(left) and _is_empty_tuple(right):
        return True  # there is only one
    known_left, known_right = real_of_known(left), real_of_known(right)
    if known_left is not MISSING and known_right is not MISSING:
        return known_left is known_right
    if left.source is not None and right.source is not None and left.cls is right.cls:
        t.guard("NotAliased", left.source, right.source)
    return False


def _is_empty_tuple(value: Value) -> bool:
    return type(value) is TupleValue and value.cls is tuple and not value.items


def truth(t: Tracer, value: Value) -> bool:
    """``bool(value)``."""
    if type(value) is SymbolValue:
        answer = value if value.cls is bool else compare(t, "!=", value, Const(0))
        return bool(answer.constant())
    if isinstance(value, Const) and value.value is not NotImplemented:
        return bool(value.value)
    if t.tensors.owns(value):
        return t.tensors.truth(t, value)
    for name in ("__bool__", "__len__"):
        raw = t.lookup(value.cls, name)
        if raw is None or isinstance(raw, types.FunctionType):
            return bool(compute(t, bool, [value], {}, (name,)).constant())
        if raw is not MISSING:
            return bool(call_special(t, value, name, []).constant())
    return True


_COMPARED = (type, enum.Enum, types.GenericAlias, types.UnionType)


def _folds(value: Value) -> bool:
    """Operands on which an operator may run for real: no user code hides behind it."""
    kind = type(value)
    if kind is Const or kind is UnreadConst or kind is SymbolValue:
        return True
    if kind is TupleValue:
        return value.cls is tuple and all(_folds(item) for item in value.items)  # type: ignore[attr-defined]
    return kind in (Known, Alias) and isinstance(value.value, _COMPARED)  # type: ignore[attr-defined]


def _not_implemented(value: Value) -> bool:
    return real_of_known(value) is NotImplemented
