"""The table of instruction handlers, which checks itself as it is filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Sentinel, Value

if TYPE_CHECKING:
    from dynacap.executor.frame import Frame
    from dynacap.executor.machine import Machine

OpHandler = Callable[["Machine", "Frame", Instruction], Sentinel | None]

HANDLERS: dict[str, OpHandler] = {}


def handles(*names: str) -> Callable[[OpHandler], OpHandler]:
    """Register a function as the handler of these canonical instructions."""

    def register(handler: OpHandler) -> OpHandler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"instruction {name} has a handler already")
            HANDLERS[name] = handler
        return handler

    return register


def operation(name: str, count: int | None, apply: Callable[..., Value | None]) -> None:
    """Register an instruction that pops ``count`` values (None: as many as its operand says) and
    pushes what ``apply`` makes of its operand and of them, the deepest first, if anything.
    """

    def handler(m: Machine, f: Frame, i: Instruction) -> None:
        operand: Any = i.arg
        made = apply(m, operand, *f.pop_many(operand if count is None else count))
        if made is not None:
            f.stack.append(made)

    handles(name)(handler)
