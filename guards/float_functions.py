"""Functions of numbers that give a float, for arguments that they do not refuse."""

import math
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

Condition = tuple[Callable[..., Any], float]  # a comparison and what the argument is compared with

_FINITE: tuple[Condition, ...] = ((operator.gt, -math.inf), (operator.lt, math.inf))
_POSITIVE: tuple[Condition, ...] = ((operator.gt, 0.0), (operator.lt, math.inf))
_SMALL: tuple[Condition, ...] = ((operator.lt, 700.0),)  # whose exponential is a float
_BETWEEN: tuple[Condition, ...] = ((operator.ge, -1.0), (operator.le, 1.0))

# Function -> how it is written, and what its argument must fulfil.
FLOAT_FUNCTIONS: dict[Callable[..., Any], tuple[str, tuple[Condition, ...]]] = {
    abs: ("abs({})", ()),
    math.fabs: ("math.fabs({})", ()),
    math.tanh: ("math.tanh({})", ()),
    math.atan: ("math.atan({})", ()),
    math.erf: ("math.erf({})", ()),
    math.radians: ("math.radians({})", ()),
    math.degrees: ("math.degrees({})", ()),
    math.sin: ("math.sin({})", _FINITE),
    math.cos: ("math.cos({})", _FINITE),
    math.tan: ("math.tan({})", _FINITE),
    math.asin: ("math.asin({})", _BETWEEN),
    math.acos: ("math.acos({})", _BETWEEN),
    math.exp: ("math.exp({})", _SMALL),
    math.expm1: ("math.expm1({})", _SMALL),
    math.sqrt: ("math.sqrt({})", ((operator.ge, 0.0),)),
    math.log: ("math.log({})", _POSITIVE),
    math.log2: ("math.log2({})", _POSITIVE),
    math.log10: ("math.log10({})", _POSITIVE),
    math.log1p: ("math.log1p({})", ((operator.gt, -1.0), (operator.lt, math.inf))),
}

# What base and exponent must fulfil, the first that they do: no zero to a negative power, no root
# of a negative number, no result that is too large.
POWERS: tuple[tuple[tuple[Condition, ...], tuple[Condition, ...]], ...] = (
    (((operator.gt, 0.0), (operator.le, 1.0)), ((operator.ge, 0.0),)),
    (((operator.ge, 0.0), (operator.le, 1e30)), ((operator.ge, 0.0), (operator.le, 8.0))),
)


def meets(number: float | None, conditions: Iterable[Condition]) -> bool:
    """Whether a number fulfils them."""
    return number is not None and all(real(number, limit) for real, limit in conditions)


def computed(function: Callable[..., Any], operands: Iterable[Any]) -> float | None:
    """What Python computes; None where that is no finite float."""
    try:
        made = function(*operands)
    except ArithmeticError:
        return None  # an int that is too large
    return made if type(made) is float and math.isfinite(made) else None


def is_ordinary(number: float) -> bool:
    """Whether a number is compared with real numbers as with floats, of which some are infinite,
    and some no number."""
    return abs(number) <= sys.float_info.max
