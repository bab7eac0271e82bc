"""Operators that torch's own code computes faster than a loop of ours, where nothing is fused.

Its functions come from MKL, ours from SLEEF and short polynomials: what others read and write in
the same loop is worth more than the difference, a function by itself is not.
"""

from __future__ import annotations

import torch

from dynacap.backends.native.loops.equation import Equation
from dynacap.backends.native.loops.expression import Load, Op
from dynacap.backends.native.loops.program import Call
from dynacap.backends.native.schedule.group import Group

_FASTER = frozenset("sin cos tan asin acos atan tanh log log2 log10 erfc".split())
_ENOUGH = 1 << 13  # elements that make up for the way through torch's dispatcher


def alone(group: Group) -> Call | None:
    """The operator that a group comes to, if it is one of these, on a whole tensor."""
    if len(group.members) != 1:
        return None
    equation = group.members[0].equation
    value, result = equation.value, equation.buffer
    if not isinstance(value, Op) or value.name not in _FASTER or equation.combiner:
        return None
    (operand,) = value.args
    if not isinstance(operand, Load) or not _like(equation, operand):
        return None
    target = getattr(torch.ops.aten, value.name).default
    return Call(target, (operand.buffer,), {}, (result,), equation.origins)


def _like(equation: Equation, operand: Load) -> bool:
    """Whether an operand lies in memory as the result does, element by element."""
    source, result = operand.buffer, equation.buffer
    return (
        equation.whole
        and result.dtype is source.dtype is torch.float32
        and isinstance(result.numel, int)
        and result.numel >= _ENOUGH
        and operand.offset == equation.offset
        and (source.shape, source.strides, source.offset) == (result.shape, result.strides, 0)
    )
