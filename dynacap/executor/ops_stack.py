"""Instructions that only move values on the stack."""

from __future__ import annotations

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import NULL


@handles("POP_TOP")
def pop_top(m: Machine, f: Frame, i: Instruction) -> None:
    """Drop the top."""
    f.stack.pop()


@handles("PUSH_NULL")
def push_null(m: Machine, f: Frame, i: Instruction) -> None:
    """Push NULL."""
    f.stack.append(NULL)


@handles("COPY")
def copy(m: Machine, f: Frame, i: Instruction) -> None:
    """Push the i-th item from the top again."""
    f.stack.append(f.stack[-i.arg])


@handles("SWAP")
def swap(m: Machine, f: Frame, i: Instruction) -> None:
    """Exchange the top with the i-th item."""
    f.stack[-1], f.stack[-i.arg] = f.stack[-i.arg], f.stack[-1]
