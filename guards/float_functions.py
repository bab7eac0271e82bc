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

# Function -> what its argument must fulfil.
FLOAT_FUNCTIONS: dict[Callable[..., Any], tuple[Condition, ...]] = {
    **dict.fromkeys((abs, operator.neg, math.fabs, math.tanh, math.atan, math.erf), ()),
    **dict.fromkeys((math.radians, math.degrees), ()),
    **dict.fromkeys((math.sin, math.cos, math.tan), _FINITE),
    **dict.fromkeys((math.asin, math.acos), _BETWEEN),
    **dict.fromkeys((math.exp, math.expm1), _SMALL),
    **dict.fromkeys((math.log, math.log2, math.log10), _POSITIVE),
    math.sqrt: ((operator.ge, 0.0),),
    math.log1p: ((operator.gt, -1.0), (operator.lt, math.inf)),
}
_WRITTEN = {abs: "abs({})", operator.neg: "(-{})"}

# What base and exponent must fulfil, the first that they do: no zero to a negative power, no root
# of a negative number, no result that is too large.
POWERS: tuple[tuple[tuple[Condition, ...], tuple[Condition, ...]], ...] = (
    (((operator.gt, 0.0), (operator.le, 1.0)), ((operator.ge, 0.0),)),
    (((operator.ge, 0.0), (operator.le, 1e30)), ((operator.ge, 0.0), (operator.le, 8.0))),
)


def written(function: Callable[..., Any]) -> str:
    """The text of a call, with ``{}`` in the argument's place."""
    return _WRITTEN.get(function) or f"math.{function.__name__}({{}})"


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
