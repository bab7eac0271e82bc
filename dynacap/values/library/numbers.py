"""Numbers: conversions, and the built-in functions on them."""

from __future__ import annotations

import math
import sys
from typing import Any

from dynacap.values.base import MISSING, Const, Value, constant_or, is_const
from dynacap.values.data_model import binary_op, call_special, truth
from dynacap.values.data_model.calls import fold
from dynacap.values.identity import IdentityValue
from dynacap.values.library.handlers import constant_of, folded, handles, index_of, is_none
from dynacap.values.tracer import Tracer

_PLAIN = (int, float, complex, bool, str, bytes)


@handles(bool)
def _bool(t: Tracer, obj: Value = Const(False), /) -> Value:
    return Const(truth(t, obj))


def _convert(t: Tracer, target: type, obj: Value, names: tuple[str, ...]) -> Value:
    """A number of a type, through the first conversion method that the object has."""
    if obj.cls is target:
        return obj
    if obj.cls in _PLAIN and is_const(obj):
        return folded(t, target, [obj])
    for name in names:
        if t.lookup(obj.cls, name) is not MISSING:
            found = call_special(t, obj, name, [])
            return found if found.cls is target else folded(t, target, [found])
    return folded(t, target, [obj])


@handles(int)
def _int(t: Tracer, obj: Value = Const(0), /, base: Value | None = None) -> Value:
    if base is not None:
        return folded(t, int, [obj, Const(index_of(t, base))])
    return _convert(t, int, obj, ("__int__", "__index__", "__trunc__"))


@handles(float)
def _float(t: Tracer, obj: Value = Const(0.0), /) -> Value:
    return _convert(t, float, obj, ("__float__", "__index__"))


@handles(complex)
def _complex(t: Tracer, real: Value | None = None, imag: Value | None = None) -> Value:
    if real is not None and imag is None:
        return _convert(t, complex, real, ("__complex__", "__float__", "__index__"))
    named = {"real": real, "imag": imag}
    return folded(t, complex, [], {name: part for name, part in named.items() if part is not None})


@handles(abs)
def _abs(t: Tracer, obj: Value, /) -> Value:
    return _through(t, abs, obj, "__abs__", "bad operand type for abs(): {!r}")


@handles(round)
def _round(t: Tracer, number: Value, ndigits: Value | None = None) -> Value:
    args = [] if ndigits is None else [ndigits]
    if t.tensors.owns(number):
        return t.tensor_method("round", [number], {"decimals": ndigits} if ndigits else {})
    message = "type {} doesn't define __round__ method"
    return _through(t, round, number, "__round__", message, args)


def _through(
    t: Tracer, real: Any, obj: Value, name: str, message: str, args: list[Value] | None = None
) -> Value:
    """Run for real on constants, else call the special method."""
    args = args or []
    if obj.cls in _PLAIN and (done := fold(t, real, [obj, *args], {})) is not None:
        return done
    if t.lookup(obj.cls, name) is MISSING:
        t.raise_error(TypeError, message.format(obj.cls.__name__))
    return call_special(t, obj, name, args)


@handles(divmod)
def _divmod(t: Tracer, left: Value, right: Value, /) -> Value:
    if left.cls in _PLAIN and right.cls in _PLAIN and is_const(left) and is_const(right):
        return folded(t, divmod, [left, right])
    for obj, name, operand in ((left, "__divmod__", right), (right, "__rdivmod__", left)):
        if t.lookup(obj.cls, name) is not MISSING:
            found = call_special(t, obj, name, [operand])
            if constant_or(found, None) is not NotImplemented:
                return found
    return t.raise_error(
        TypeError,
        f"unsupported operand type(s) for divmod(): {left.title!r} and {right.title!r}",
    )


@handles(pow)
def _pow(t: Tracer, base: Value, exp: Value, mod: Value = Const(None)) -> Value:
    if is_none(mod):
        return binary_op(t, "**", base, exp)
    if base.cls not in _PLAIN and t.lookup(base.cls, "__pow__") is not MISSING:
        return call_special(t, base, "__pow__", [exp, mod])
    return folded(t, pow, [base, exp, mod])


def _register_rounding(function: Any, name: str) -> None:
    @handles(function)
    def rounding(t: Tracer, obj: Value, /) -> Value:
        if obj.cls not in _PLAIN and t.lookup(obj.cls, name) is not MISSING:
            return call_special(t, obj, name, [])
        return folded(t, function, [_as_float(t, obj)])


def _as_float(t: Tracer, obj: Value) -> Value:
    """An operand of a ``math`` function: objects are asked for their ``__float__``."""
    if is_const(obj) or t.lookup(obj.cls, "__float__") is MISSING:
        return obj
    return call_special(t, obj, "__float__", [])


for _function, _name in (
    (math.floor, "__floor__"),
    (math.ceil, "__ceil__"),
    (math.trunc, "__trunc__"),
):
    _register_rounding(_function, _name)


def _register_float_function(function: Any) -> None:
    @handles(function)
    def compute(t: Tracer, /, *args: Value) -> Value:
        return folded(t, function, [_as_float(t, arg) for arg in args])


for _name in (
    "acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2"
    " expm1 fabs fmod frexp gamma isfinite isinf isnan ldexp lgamma log log10 log1p log2 modf"
    " nextafter pow radians remainder sin sinh sqrt tan tanh ulp"
).split():
    _register_float_function(getattr(math, _name))


@handles(chr)
def _chr(t: Tracer, code: Value, /) -> Value:
    return folded(t, chr, [Const(index_of(t, code))])


def _register_radix(function: Any) -> None:
    @handles(function)
    def write(t: Tracer, number: Value, /) -> Value:
        return folded(t, function, [Const(index_of(t, number))])


for _radix in (hex, bin, oct):
    _register_radix(_radix)


@handles(range)
def _range(t: Tracer, /, *bounds: Value) -> Value:
    return folded(t, range, [Const(index_of(t, bound)) for bound in bounds])


@handles(bytes)
def _bytes(t: Tracer, /, *args: Value, **kwargs: Value) -> Value:
    if args and not is_const(args[0]) and t.lookup(args[0].cls, "__bytes__") is not MISSING:
        return call_special(t, args[0], "__bytes__", [])
    return folded(t, bytes, list(args), kwargs)


@handles(hash)
def _hash(t: Tracer, obj: Value, /) -> Value:
    if t.lookup(obj.cls, "__hash__") in (None, MISSING):
        t.raise_error(TypeError, f"unhashable type: {obj.title!r}")
    found = call_special(t, obj, "__hash__", [])
    if isinstance(found, IdentityValue):
        return found
    number = int(constant_of(t, found, "a hash"))
    if not -sys.maxsize - 1 <= number <= sys.maxsize:
        number = hash(number)
    return Const(-2 if number == -1 else number)
