"""``lower(graph) -> Program``: equations for each node, then the schedule."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Graph

from dynacap.backends.native.loops.kernel import Kernel
from dynacap.backends.native.loops.program import Buffer, Program, is_symbolic
from dynacap.backends.native.lowering import creation, joining, pointwise, reductions
from dynacap.backends.native.lowering.lower import RULES, Lowering
from dynacap.backends.native.schedule.plan import schedule

RULE_FILES = (creation, joining, pointwise, reductions)


def lowered() -> frozenset[torch._ops.OpOverload]:
    """The operators that become loops; some of them not for all arguments."""
    return frozenset(RULES)


def _sums_and_products(buffer: Buffer) -> bool:
    """Whether a buffer's sizes are such as loops are written over."""
    numbers = (*buffer.shape, *buffer.strides, buffer.offset)
    return all(map(_plain, filter(is_symbolic, numbers)))


def _plain(size: Any) -> bool:
    return (size.is_Symbol or size.is_Integer or size.is_Add or size.is_Mul) and all(
        map(_plain, size.args)
    )


def lower(graph: Graph, *, loops: bool = True) -> Program:
    """The program of a functional ATen graph whose nodes carry fake tensors in ``meta["val"]``.

    Without ``loops`` each operator is called as it is.
    """
    lowering = Lowering(RULES if loops else {})
    lowering.run(graph)
    sizes = tuple(filter(is_symbolic, lowering.inputs))
    if sizes and not all(map(_sums_and_products, lowering.buffers)):
        lowering = Lowering({})
        lowering.run(graph)
    steps = schedule(lowering.steps, lowering.outputs)
    for step in steps:
        if isinstance(step, Kernel):
            step.sizes = tuple(dict.fromkeys(sizes))
    return Program(lowering.buffers, lowering.inputs, lowering.outputs, steps, sizes)
