"""The table of instruction handlers, which checks itself as it is filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynacap.opcodes.canonical import pops, window
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Sentinel, Value
from dynacap.values.natives import registers

if TYPE_CHECKING:
    from dynacap.executor.frame import Frame
    from dynacap.executor.machine import Machine

OpHandler = Callable[["Machine", "Frame", Instruction], Sentinel | None]

HANDLERS: dict[str, OpHandler] = {}


handles = registers(HANDLERS)  # a function as the handler of these canonical instructions


def operation(name: str, apply: Callable[..., Value | None]) -> None:
    """Register an instruction that pushes what ``apply`` makes, if anything, of its operand and of
    the values that it looks at, the deepest first; it pops as many of them as it is known to.
    """

    def handler(m: Machine, f: Frame, i: Instruction) -> None:
        depth = len(f.stack)
        seen = f.stack[depth - window(i) :]
        del f.stack[depth - pops(i) :]
        made = apply(m, i.arg, *seen)
        if made is not None:
            f.stack.append(made)

    handles(name)(handler)
