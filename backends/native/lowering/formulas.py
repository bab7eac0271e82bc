"""What one element of a pointwise operator's result is, in terms of its operands' elements.

Operands come in the dtype that the operator computes in; a number stays a number.  The operators
are listed at the end, by the dtype in which they compute.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Expression as E, Op, constant, op, where
from dynacap.backends.native.loops.program import Number
from dynacap.backends.native.lowering.promotion import HALVES

Formula = Callable[..., Any]  # an expression, or NotImplemented
_SQRT_HALF = math.sqrt(0.5)
_SQRT_2_PI = math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715


def add(a: E, b: E, alpha: float = 1) -> E:
    """``a + alpha * b``."""
    a, b = as_stored(a, b), as_stored(b, a)
    return a + (b if alpha == 1 else b * alpha)


def sub(a: E, b: E, alpha: float = 1) -> E:
    """``a - alpha * b``."""
    a, b = as_stored(a, b), as_stored(b, a)
    return a - (b if alpha == 1 else b * alpha)


def rsub(a: E, b: E, alpha: float = 1) -> E:
    """``b - alpha * a``."""
    return sub(b, a, alpha)


def mul(a: E, b: E) -> E:
    """The product."""
    return a * b


def div(a: E, b: E) -> E:
    """The quotient."""
    return a / b


def div_mode(a: E, b: Any, *, rounding_mode: str | None = None) -> Any:
    """The quotient, rounded towards zero or down; down only where that is simple."""
    if rounding_mode is None:
        return a / b
    if a.dtype.is_floating_point:
        return op("trunc", rounded(a / b)) if rounding_mode == "trunc" else NotImplemented
    return floor_divide(a, b) if rounding_mode == "floor" else NotImplemented


def rounded(x: E) -> E:
    """Rounded to its dtype, where eager does so before a step that a rounding changes much."""
    return Op("cast", (x,), x.dtype)


def floor_divide(a: E, b: Any) -> Any:
    """By a known number only: division by zero is an error that eager raises."""
    if not isinstance(a, E) or a.dtype.is_floating_point or isinstance(b, E) or int(b) == 0:
        return NotImplemented
    return op("floordiv", a, b)


def remainder(a: E, b: Any) -> Any:
    """What is left of a division rounded down: it has the divisor's sign."""
    if not isinstance(a, E):
        return NotImplemented
    if a.dtype.is_floating_point:
        b = as_stored(b, a)
        rest = op("fmod", a, b)
        crossed = op("ne", op("lt", rest, 0), op("lt", as_operand(b, a), 0))
        return where(op("and", op("ne", rest, 0), crossed), rest + b, rest)
    if isinstance(b, E) or int(b) == 0:
        return NotImplemented
    return a - op("floordiv", a, b) * b


def as_operand(value: Any, like: E) -> E:
    """A number as an expression of the same dtype as another."""
    return value if isinstance(value, E) else constant(value, like.dtype)


def as_stored(value: Any, like: Any) -> Any:
    """A number as a tensor of halves would hold it, which eager adds and compares."""
    if isinstance(value, E) or not isinstance(like, E) or like.dtype not in HALVES:
        return value
    return rounded(constant(value, like.dtype))


def fmod(a: E, b: Any) -> Any:
    """What is left of a division rounded towards zero: it has the dividend's sign."""
    if not isinstance(a, E) or not a.dtype.is_floating_point:
        return NotImplemented
    return op("fmod", a, as_stored(b, a))


def pow_(a: Any, b: Any) -> Any:
    """Small whole and half exponents by multiplication and roots."""
    if isinstance(b, Number):
        return NotImplemented  # how eager computes it depends on the number
    if isinstance(b, E) or not isinstance(a, E):
        dtype = (a if isinstance(a, E) else b).dtype
        return op("pow", a, b) if dtype.is_floating_point else NotImplemented
    if b in _POWERS:
        return _POWERS[b](a)
    if a.dtype.is_floating_point:
        root = b in (0.5, -0.5) and a.dtype is not torch.float16  # which has none in eager either
        return _FLOAT_POWERS[b](a) if root or b in (-1, -2) else op("pow", a, b)
    return NotImplemented


_POWERS: Mapping[float, Callable[[E], E]] = {
    1: lambda a: a,
    2: lambda a: a * a,
    3: lambda a: a * a * a,
}
_FLOAT_POWERS: Mapping[float, Callable[[E], E]] = {
    0.5: lambda a: op("sqrt", a),
    -0.5: lambda a: op("rsqrt", a),
    -1: lambda a: 1.0 / a,
    -2: lambda a: 1.0 / (a * a),
}


def maximum(a: E, b: Any) -> E:
    """The greater, or NaN if either is; of two zeros the second, or the one that is no bound."""
    return op("maximum", *((a, b) if isinstance(b, E) else (as_stored(b, a), a)))


def minimum(a: E, b: Any) -> E:
    """The smaller, or NaN if either is; of two zeros the second, or the one that is no bound."""
    return op("minimum", *((a, b) if isinstance(b, E) else (as_stored(b, a), a)))


def clamp(x: E, low: Any = None, high: Any = None) -> E:
    """No lower than one bound, no higher than another."""
    if low is not None:
        x = maximum(x, low)
    return x if high is None else minimum(x, high)


def clamp_max(x: E, high: Any) -> E:
    """No higher than a bound."""
    return clamp(x, None, high)


def reciprocal(x: E) -> E:
    """One divided by it."""
    return 1.0 / x


def square(x: E) -> E:
    """Times itself."""
    return x * x


def relu(x: E) -> E:
    """Zero below zero."""
    return maximum(x, 0)


def hardtanh(x: E, low: float = -1.0, high: float = 1.0) -> E:
    """Between two bounds."""
    return clamp(x, low, high)


def leaky_relu(x: E, slope: float = 0.01) -> E:
    """A slope below zero."""
    return where(op("gt", x, 0), x, x * slope)


def elu(x: E, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> E:
    """An exponential below zero."""
    return where(op("gt", x, 0), x * scale, op("expm1", x * input_scale) * (alpha * scale))


def threshold(x: E, limit: float, value: float) -> E:
    """A fixed value up to a limit."""
    return where(op("le", x, limit), value, x)


def softplus(x: E, beta: float = 1.0, limit: float = 20.0) -> E:
    """``log(1 + exp(x))``, and ``x`` where that makes no difference."""
    z = x * beta
    return where(op("gt", z, limit), x, op("log1p", op("exp", z)) / beta)


def silu(x: E) -> E:
    """``x * sigmoid(x)``."""
    return x / (1.0 + op("exp", -x))


def mish(x: E) -> E:
    """``x * tanh(softplus(x))``."""
    return x * op("tanh", softplus(x))


def hardswish(x: E) -> E:
    """``x`` times a clipped line."""
    return x * clamp(x + 3.0, 0, 6) / 6.0


def hardsigmoid(x: E) -> E:
    """A clipped line."""
    return clamp(x + 3.0, 0, 6) / 6.0


def gelu(x: E, *, approximate: str = "none") -> E:
    """``x`` times the normal distribution's share below it, or what tanh makes of that."""
    if approximate == "none":
        return x * 0.5 * (1.0 + op("erf", x * _SQRT_HALF))
    inner = (x + x * x * x * _GELU_CUBE) * _SQRT_2_PI
    return x * 0.5 * (1.0 + op("tanh", inner))


def lerp(a: E, b: E, weight: Any) -> E:
    """Two forms, so that it is exact at both ends."""
    near: E = a + (b - a) * weight
    far: E = b - (b - a) * (1 - weight)
    if not isinstance(weight, E):
        return near if abs(weight) < 0.5 else far
    return where(op("lt", op("abs", weight), 0.5), near, far)


def addcmul(x: E, a: E, b: E, *, value: float = 1) -> E:
    """``x + value * a * b``."""
    return x + a * value * b


def addcdiv(x: E, a: E, b: E, *, value: float = 1) -> E:
    """``x + value * a / b``."""
    return x + a * value / b


def xlogy(x: Any, y: Any) -> E:
    """``x * log(y)``, and zero where ``x`` is, unless ``y`` is NaN."""
    x, y = as_operand(x, y), as_operand(y, x)
    product = x * op("log", y)
    return where(op("isnan", y), y, where(op("eq", x, 0), 0, product))


def logaddexp(a: E, b: E) -> E:
    """``log(exp(a) + exp(b))`` without overflow."""
    high = op("maximum", a, b)
    same = op("and", op("eq", a, b), op("isinf", a))
    return where(same, a, high + op("log1p", op("exp", -op("abs", a - b))))


def nan_to_num(
    x: E, nan: float | None = None, high: float | None = None, low: float | None = None
) -> Any:
    """NaN and the infinities replaced by numbers."""
    if not x.dtype.is_floating_point:
        return x
    limits = torch.finfo(x.dtype)
    high, low = limits.max if high is None else high, limits.min if low is None else low
    finite = where(op("gt", x, limits.max), high, where(op("lt", x, limits.min), low, x))
    return where(op("isnan", x), nan or 0.0, finite)


def isfinite(x: E) -> E:
    """Neither infinite nor NaN."""
    return op("eq", x - x, 0)


def copysign(a: E, b: Any) -> Any:
    """The size of one, the sign of the other."""
    return op("copysign", a, b)


# Gradients.  The first operand is the gradient of the result.


def sigmoid_backward(g: E, y: E) -> E:
    """From the result."""
    return g * (y * (1.0 - y))


def tanh_backward(g: E, y: E) -> E:
    """From the result."""
    return g * (1.0 - y * y)


def threshold_backward(g: E, x: E, limit: float) -> E:
    """Nothing up to the limit."""
    return where(op("le", x, limit), 0, g)


def hardtanh_backward(g: E, x: E, low: float, high: float) -> E:
    """Nothing outside the bounds."""
    return where(op("and", op("gt", x, low), op("lt", x, high)), g, 0)


def leaky_relu_backward(g: E, x: E, slope: float, is_result: bool) -> E:
    """The slope below zero."""
    return where(op("gt", x, 0), g, g * slope)


def elu_backward(g: E, alpha: float, scale: float, input_scale: float, is_result: bool, x: E) -> E:
    """From the operand, or from the result of which it is told."""
    below = op("exp", x * input_scale) * (alpha * input_scale * scale)
    if is_result:
        below = (x + alpha * scale) * input_scale
    return where(op("gt", x, 0), g * scale, g * below)


def softplus_backward(g: E, x: E, beta: float, limit: float) -> E:
    """The sigmoid, and one where softplus is ``x``."""
    z = x * beta
    return where(op("gt", z, limit), g, g * op("sigmoid", z))


def silu_backward(g: E, x: E) -> E:
    """The product rule."""
    s = op("sigmoid", x)
    return g * s * (1.0 + x * (1.0 - s))


def mish_backward(g: E, x: E) -> E:
    """The product rule, through softplus and tanh."""
    t, s = op("tanh", softplus(x)), op("sigmoid", x)
    return g * (t + x * s * (1.0 - t * t))


def hardswish_backward(g: E, x: E) -> E:
    """A line between the bends."""
    inside = where(op("ge", x, 3), g, g * (x / 3.0 + 0.5))
    return where(op("le", x, -3), 0, inside)


def hardsigmoid_backward(g: E, x: E) -> E:
    """A sixth between the bends."""
    return where(op("and", op("gt", x, -3), op("lt", x, 3)), g / 6.0, 0)


def gelu_backward(g: E, x: E, *, approximate: str = "none") -> E:
    """The product rule: the share itself, and ``x`` times its density."""
    if approximate == "none":
        cdf = (1.0 + op("erf", x * _SQRT_HALF)) * 0.5
        pdf = op("exp", x * x * -0.5) * (_SQRT_HALF / math.sqrt(math.pi))
        return g * (cdf + x * pdf)
    t = op("tanh", (x + x * x * x * _GELU_CUBE) * _SQRT_2_PI)
    slope = (x * x * (3 * _GELU_CUBE) + 1.0) * _SQRT_2_PI
    return g * ((1.0 + t) * 0.5 + x * 0.5 * (1.0 - t * t) * slope)


def log_sigmoid_backward(g: E, x: E, z: E) -> E:
    """From ``exp(-|x|)``, which the forward function has kept."""
    share = z / (1.0 + z)
    return g * where(op("lt", x, 0), 1.0 - share, share)


def dropout_backward(g: E, mask: E, scale: float) -> E:
    """What was kept, scaled."""
    return g * mask * scale


def _named(name: str) -> Formula:
    def formula(*operands: Any) -> E:
        return op(name, *operands)

    return formula


def _comparison(name: str) -> Formula:
    def formula(a: E, b: Any) -> E:
        return op(name, a, as_stored(b, a))

    return formula


def _rounding(name: str) -> Formula:
    """Integers are round already."""

    def formula(x: E) -> E:
        return op(name, x) if x.dtype.is_floating_point else x

    return formula


def _of_stored(formula: Formula) -> Formula:
    """A formula on halves as memory holds them, since a rounding before it may change much."""

    def of_stored(*operands: Any, **options: Any) -> Any:
        return formula(*map(in_memory, operands), **options)

    return of_stored


def in_memory(value: Any) -> Any:
    """A half with the precision that it would have in memory; anything else as it is."""
    is_half = isinstance(value, E) and value.dtype in HALVES
    return rounded(value) if is_half else value


def _named_all(names: str) -> dict[str, Formula]:
    return {name: _named(name) for name in names.split()}


# In the dtype of the result.
IN_RESULT: dict[str, Formula] = {
    **_named_all(
        "exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh asinh acosh"
        " atanh erf erfc sqrt rsqrt sigmoid lgamma abs neg sign atan2 hypot"
    ),
    "floor": _rounding("floor"), "ceil": _rounding("ceil"), "trunc": _rounding("trunc"),
    "round": _rounding("rint"), "sgn": _named("sign"),
    "bitwise_and.Tensor": _named("and"), "bitwise_and.Scalar": _named("and"),
    "bitwise_or.Tensor": _named("or"), "bitwise_or.Scalar": _named("or"),
    "bitwise_xor.Tensor": _named("xor"), "bitwise_xor.Scalar": _named("xor"),
    "bitwise_not": _named("not"),
    "add.Tensor": add, "add.Scalar": add, "sub.Tensor": sub, "sub.Scalar": sub,
    "rsub.Tensor": rsub, "rsub.Scalar": rsub, "mul.Tensor": mul, "mul.Scalar": mul,
    "div.Tensor": div, "div.Scalar": div, "true_divide.Tensor": div,
    "div.Tensor_mode": div_mode, "div.Scalar_mode": div_mode,
    "floor_divide": floor_divide, "floor_divide.Scalar": floor_divide,
    "remainder.Scalar": remainder, "remainder.Tensor": remainder,
    "fmod.Scalar": fmod, "fmod.Tensor": fmod,
    "pow.Tensor_Scalar": pow_, "pow.Tensor_Tensor": pow_, "pow.Scalar": pow_,
    "maximum": maximum, "minimum": minimum,
    "clamp": clamp, "clamp.Tensor": clamp, "clamp_min": maximum, "clamp_min.Tensor": maximum,
    "clamp_max": clamp_max, "clamp_max.Tensor": clamp_max,
    "reciprocal": reciprocal, "square": square, "relu": relu, "hardtanh": hardtanh,
    "leaky_relu": leaky_relu, "elu": elu, "threshold": threshold, "softplus": softplus,
    "silu": silu, "mish": mish, "hardswish": hardswish, "hardsigmoid": hardsigmoid, "gelu": gelu,
    "lerp.Scalar": lerp, "lerp.Tensor": lerp, "addcmul": addcmul, "addcdiv": addcdiv,
    "xlogy.Tensor": xlogy, "xlogy.Scalar_Self": xlogy,
    "xlogy.Scalar_Other": xlogy, "logaddexp": logaddexp, "nan_to_num": nan_to_num,
    "copysign.Tensor": copysign, "copysign.Scalar": copysign,
    "sigmoid_backward": sigmoid_backward, "tanh_backward": tanh_backward,
    "threshold_backward": threshold_backward, "hardtanh_backward": hardtanh_backward,
    "leaky_relu_backward": leaky_relu_backward, "elu_backward": elu_backward,
    "softplus_backward": softplus_backward, "silu_backward": silu_backward,
    "mish_backward": mish_backward, "hardswish_backward": hardswish_backward,
    "hardsigmoid_backward": hardsigmoid_backward, "gelu_backward": gelu_backward,
    "log_sigmoid_backward": log_sigmoid_backward, "native_dropout_backward": dropout_backward,
}  # fmt: skip

# In the dtype that the operands have together; the result is a truth value.
IN_OPERANDS: dict[str, Formula] = {
    **{f"{name}.{kind}": _comparison(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
       for kind in ("Tensor", "Scalar")},
    "isnan": _named("isnan"), "isinf": _named("isinf"), "isfinite": isfinite,
}  # fmt: skip

_STEPS = frozenset(
    """eq ne lt le gt ge isinf isfinite floor ceil trunc round sgn sign div.Tensor_mode
    div.Scalar_mode remainder fmod threshold threshold_backward hardtanh_backward
    leaky_relu_backward hardswish_backward hardsigmoid_backward""".split()
)
for _table in (IN_RESULT, IN_OPERANDS):
    _table.update({
        name: _of_stored(formula) for name, formula in _table.items()
        if not _STEPS.isdisjoint((name, name.partition(".")[0]))
    })  # fmt: skip

# On truth values.
IN_BOOL: dict[str, Formula] = {
    "logical_and": _named("and"), "logical_or": _named("or"), "logical_xor": _named("xor"),
    "logical_not": _named("not"),
}  # fmt: skip
