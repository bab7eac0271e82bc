"""Numbers: conversions, and the built-in functions on them."""

from __future__ import annotations

import operator
import sys
from typing import Any

from dynacap.guards.float_functions import FLOAT_FUNCTIONS
from dynacap.values.base import MISSING, Const, Value
from dynacap.values.data_model import binary_op, call_special, truth
from dynacap.values.data_model.calls import compute
from dynacap.values.data_model.operators import two_sided
from dynacap.values.data_model.refusals import refuse
from dynacap.values.identity import IdentityValue
from dynacap.values.library.handlers import constant_of, handles, is_none, real_of_known
from dynacap.values.natives import native
from dynacap.values.object import payload_of
from dynacap.values.symbol import SymbolValue
from dynacap.values.tracer import Tracer


def _register_float_function(function: Any) -> None:
    @native(function)
    def call(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found: Value | None = None
        if len(args) == 1 and not kwargs and type(args[0]) is SymbolValue:
            found = t.tensors.symbols.function(t, function, args[0])
        return found or compute(t, function, args, kwargs)


for _function in FLOAT_FUNCTIONS.keys() - {operator.neg}:  # which is an operator
    _register_float_function(_function)


@handles(bool)
def _bool(t: Tracer, obj: Value = Const(False), /) -> Value:
    return Const(truth(t, obj))


def _register_conversion(kind: Any) -> None:
    @handles(kind)
    def convert(t: Tracer, /, *args: Value, **kwargs: Value) -> Value:
        """A number of the very type stays as it is: it may be symbolic."""
        if len(args) == 1 and args[0].cls is kind and not kwargs:
            return args[0]
        if len(args) == 1 and t.tensors.owns(args[0]) and not kwargs:
            return t.tensors.method(t, f"__{kind.__name__}__", [args[0]], {})
        return compute(t, kind, list(args), kwargs)


for _kind in (int, float):
    _register_conversion(_kind)


def _register_maker(owner: Any, name: str) -> None:
    @handles(vars(owner)[name])
    def make(t: Tracer, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        """Of a subclass: a call of the class with what the built-in type makes."""
        found = compute(t, getattr(owner, name), list(args), kwargs)
        return found if cls.known() is owner else t.call(cls, [found])


for _maker in ((int, "from_bytes"), (float, "fromhex"), (bytes, "fromhex")):
    _register_maker(*_maker)


@handles(round)
def _round(t: Tracer, number: Value, ndigits: Value | None = None) -> Value:
    if t.tensors.owns(number):
        return t.tensors.method(t, "round", [number], {"decimals": ndigits} if ndigits else {})
    return compute(t, round, [number], {} if ndigits is None else {"ndigits": ndigits})


@handles(divmod)
def _divmod(t: Tracer, left: Value, right: Value, /) -> Value:
    found = two_sided(t, "__divmod__", "__rdivmod__", left, right)
    if real_of_known(found) is NotImplemented:
        refuse(t, divmod, left, right)
    return found


@handles(pow)
def _pow(t: Tracer, base: Value, exp: Value, mod: Value = Const(None)) -> Value:
    return binary_op(t, "**", base, exp) if is_none(mod) else compute(t, pow, [base, exp, mod])


@handles(hash)
def _hash(t: Tracer, obj: Value, /) -> Value:
    if t.lookup(obj.cls, "__hash__") in (None, MISSING):
        t.raise_error(TypeError, f"unhashable type: {obj.title!r}")
    if issubclass(obj.cls, float) and (number := payload_of(obj)) != number:
        t.graph_break("address", "the hash of a NaN is made of its address")
    found = call_special(t, obj, "__hash__", [])
    if isinstance(found, IdentityValue):
        return found
    number = int(constant_of(t, found, "a hash"))
    if not -sys.maxsize - 1 <= number <= sys.maxsize:
        number = hash(number)
    return Const(-2 if number == -1 else number)
