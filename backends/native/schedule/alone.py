"""Operators that torch's own code computes faster than a loop of ours, where nothing is fused.

Its functions come from MKL, ours from SLEEF and short polynomials, and what it does to bfloat16
and float16 it does on whole vectors of them, where ours go through float32: what others read and
write in the same loop is worth more than the difference, a function by itself is not.
"""

from __future__ import annotations

import torch

from dynacap.backends.native.loops.equation import Equation
from dynacap.backends.native.loops.expression import Load, loads
from dynacap.backends.native.loops.program import Buffer, Call
from dynacap.backends.native.schedule.group import Group

_HALF = frozenset("abs neg hardswish hardsigmoid gelu cos acos erfc log2 log10".split())
_FASTER = {
    torch.float32: frozenset("sin cos tan asin acos atan tanh log log2 log10 erfc".split()),
    torch.bfloat16: _HALF,
    torch.float16: _HALF,
}
_ENOUGH = 1 << 13  # elements that make up for the way through torch's dispatcher


def alone(group: Group) -> Call | None:
    """The operator that a group comes to, if it is one of these, on a whole tensor."""
    if len(group.members) != 1:
        return None
    equation = group.members[0].equation
    call = equation.call
    if call is None or call.target.overloadpacket.__name__ not in _FASTER.get(
        equation.buffer.dtype, ()
    ):
        return None
    read = [_like(equation, load, call.args[0]) for load in loads(equation.value)]
    return call if read and all(read) else None


def _like(equation: Equation, operand: Load, source: Buffer) -> bool:
    """Whether it is this tensor that is read, laid out as the result, element by element."""
    result = equation.buffer
    return (
        operand.buffer is source
        and equation.whole
        and result.dtype is source.dtype
        and isinstance(result.numel, int)
        and result.numel >= _ENOUGH
        and operand.offset == equation.offset
        and (source.shape, source.strides, source.offset) == (result.shape, result.strides, 0)
    )
