"""Jumps, loops and returns."""

from __future__ import annotations

from dynacap.executor.frame import RETURN, Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Const, Sentinel, Value
from dynacap.values.data_model import advance, iterate, truth


def _jump(f: Frame, i: Instruction) -> None:
    assert i.target is not None
    f.pc = i.target


@handles("JUMP")
def jump(m: Machine, f: Frame, i: Instruction) -> None:
    """Go on at the target."""
    _jump(f, i)


@handles("POP_JUMP_IF_TRUE")
def pop_jump_if_true(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop; jump if true."""
    if truth(m, f.pop()):
        _jump(f, i)


@handles("POP_JUMP_IF_FALSE")
def pop_jump_if_false(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop; jump if false."""
    if not truth(m, f.pop()):
        _jump(f, i)


def _is_none(value: Value) -> bool:
    return type(value) is Const and value.value is None


@handles("POP_JUMP_IF_NONE")
def pop_jump_if_none(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop; jump if None."""
    if _is_none(f.pop()):
        _jump(f, i)


@handles("POP_JUMP_IF_NOT_NONE")
def pop_jump_if_not_none(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop; jump if not None."""
    if not _is_none(f.pop()):
        _jump(f, i)


@handles("JUMP_IF_TRUE_OR_POP")
def jump_if_true_or_pop(m: Machine, f: Frame, i: Instruction) -> None:
    """Jump and keep the top if it is true, else pop it."""
    _jump_or_pop(m, f, i, True)


@handles("JUMP_IF_FALSE_OR_POP")
def jump_if_false_or_pop(m: Machine, f: Frame, i: Instruction) -> None:
    """Jump and keep the top if it is false, else pop it."""
    _jump_or_pop(m, f, i, False)


def _jump_or_pop(m: Machine, f: Frame, i: Instruction, when: bool) -> None:
    top = f.stack[-1]
    assert isinstance(top, Value)
    if truth(m, top) is when:
        _jump(f, i)
    else:
        f.stack.pop()


@handles("GET_ITER")
def get_iter(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace the top by its iterator."""
    f.stack.append(iterate(m, f.pop()))


@handles("FOR_ITER")
def for_iter(m: Machine, f: Frame, i: Instruction) -> None:
    """Push the iterator's next element, or jump past the loop, most often without the iterator."""
    iterator = f.stack[-1]
    assert isinstance(iterator, Value)
    found = advance(m, iterator)
    if found is None:
        if not i.arg:
            f.stack.pop()
        _jump(f, i)
    else:
        f.stack.append(found)


@handles("RETURN_VALUE")
def return_value(m: Machine, f: Frame, i: Instruction) -> Sentinel:
    """Return the top."""
    return RETURN
