"""The table of instruction handlers, which checks itself as it is filled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Sentinel

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
