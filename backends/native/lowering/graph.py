"""``lower(graph) -> Program``: equations for each node, then the schedule."""

from __future__ import annotations

import torch
from torch.fx import Graph

from dynacap.backends.native.loops.program import Buffer, Program
from dynacap.backends.native.lowering import creation, joining, pointwise, reductions
from dynacap.backends.native.lowering.lower import RULES, Lowering
from dynacap.backends.native.schedule.plan import schedule

RULE_FILES = (creation, joining, pointwise, reductions)


def lowered() -> frozenset[torch._ops.OpOverload]:
    """The operators that become loops; some of them not for all arguments."""
    return frozenset(RULES)


def lower(graph: Graph) -> Program:
    """The program of a functional ATen graph whose nodes carry fake tensors in ``meta["val"]``."""
    lowering = Lowering()
    lowering.run(graph)
    sizes = tuple(v for v in lowering.inputs if not isinstance(v, Buffer | int | float | None))
    steps = schedule(lowering.steps, lowering.outputs)
    return Program(lowering.buffers, lowering.inputs, lowering.outputs, steps, sizes)
