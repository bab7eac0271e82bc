"""Instructions that always break the graph, each with a reason of its own."""

from __future__ import annotations

from dynacap.executor.frame import Frame
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles
from dynacap.opcodes.instruction import Instruction

UNSUPPORTED: dict[str, tuple[str, str]] = {
    "PRINT_EXPR": ("interactive", "an interactive statement"),
    "IMPORT_STAR": ("import", "import *"),
    "ASYNC_GEN_WRAP": ("async", "an async generator"),
}


def unsupported(m: Machine, f: Frame, i: Instruction) -> None:
    """Break with the reason of the table."""
    reason, what = UNSUPPORTED[i.op]
    m.graph_break(reason, what)


handles(*UNSUPPORTED)(unsupported)
