"""Jumps, loops and returns."""

from __future__ import annotations

from collections.abc import Callable

from dynacap.executor.frame import RETURN, Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import OpHandler, handles
from dynacap.opcodes.analysis import ends_in_raise
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Sentinel, Value, is_none
from dynacap.values.data_model import advance, truth


def _jump(m: Machine, f: Frame, i: Instruction) -> None:
    assert i.target is not None
    if i.target < f.pc:
        m.look()
    f.pc = i.target


@handles("JUMP")
def jump(m: Machine, f: Frame, i: Instruction) -> None:
    """Go on at the target."""
    _jump(m, f, i)


Test = Callable[[Machine, Frame, Instruction, Value], bool]


def _none(m: Machine, f: Frame, i: Instruction, value: Value) -> bool:
    return is_none(value)


def _truth(m: Machine, f: Frame, i: Instruction, value: Value) -> bool:
    return truth(m, value)


def _truth_or_error(m: Machine, f: Frame, i: Instruction, value: Value) -> bool:
    """The truth of a tensor is known where the other way only raises: the graph checks it, and if
    it is not so, the region runs again as plain Python, and raises there."""
    if m.tensors.owns(value) and not m.inside_try():
        assert i.target is not None
        jumps, falls = ends_in_raise(f.code, i.target), ends_in_raise(f.code, f.pc)
        expected = falls is (i.op == "POP_JUMP_IF_TRUE")
        if jumps is not falls and m.tensors.assume(m, value, expected):
            return expected
    return truth(m, value)


def _jumps(test: Test, when: bool, pops: bool) -> OpHandler:
    def handler(m: Machine, f: Frame, i: Instruction) -> None:
        """Jump if the test of the top says so; drop the top, or only where it does not jump."""
        top = f.pop()
        jumps = test(m, f, i, top) is when
        if jumps:
            _jump(m, f, i)
        if jumps and not pops:
            f.stack.append(top)

    return handler


handles("POP_JUMP_IF_TRUE")(_jumps(_truth_or_error, True, True))
handles("POP_JUMP_IF_FALSE")(_jumps(_truth_or_error, False, True))
handles("POP_JUMP_IF_NONE")(_jumps(_none, True, True))
handles("POP_JUMP_IF_NOT_NONE")(_jumps(_none, False, True))
handles("JUMP_IF_TRUE_OR_POP")(_jumps(_truth, True, False))
handles("JUMP_IF_FALSE_OR_POP")(_jumps(_truth, False, False))


@handles("FOR_ITER")
def for_iter(m: Machine, f: Frame, i: Instruction) -> None:
    """Push the iterator's next element, or jump past the loop, most often without the iterator."""
    iterator = f.stack[-1]
    assert isinstance(iterator, Value)
    found = advance(m, iterator)
    if found is None:
        if not i.arg:
            f.stack.pop()
        _jump(m, f, i)
    else:
        f.stack.append(found)


@handles("RETURN_VALUE")
def return_value(m: Machine, f: Frame, i: Instruction) -> Sentinel:
    """Return the top."""
    return RETURN
