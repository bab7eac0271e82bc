"""``lower(graph) -> Program``: equations for each node, then the schedule."""

from __future__ import annotations

from torch.fx import Graph

from dynacap.backends.native.loops.equation import Equation
from dynacap.backends.native.loops.program import Buffer, Program
from dynacap.backends.native.lowering.lower import Lowering


def lower(graph: Graph) -> Program:
    """The program of a functional ATen graph whose nodes carry fake tensors in ``meta["val"]``."""
    lowering = Lowering()
    lowering.run(graph)
    sizes = tuple(v for v in lowering.inputs if not isinstance(v, Buffer | int | float | None))
    steps = [step for step in lowering.steps if not isinstance(step, Equation)]
    return Program(lowering.buffers, lowering.inputs, lowering.outputs, steps, sizes)
