"""``lower(graph) -> Program``: equations for each node, then the schedule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Graph

from dynacap import log
from dynacap.backends.native.loops.kernel import Kernel
from dynacap.backends.native.loops.program import Buffer, Program, is_symbolic, symbols_of
from dynacap.backends.native.lowering import (
    convolutions,
    creation,
    gathering,
    joining,
    pointwise,
    products,
    reductions,
)
from dynacap.backends.native.lowering.lower import RULES, Lowering, Rule
from dynacap.backends.native.schedule.in_place import write_in_place
from dynacap.backends.native.schedule.plan import schedule

_loops = log.channel("loops")

RULE_FILES = (convolutions, creation, gathering, joining, pointwise, products, reductions)


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
    if loops:
        try:
            return _program(graph, RULES)
        except _SizesVary:
            pass
    return _program(graph, {})


class _SizesVary(Exception):
    """Sizes that are symbols were met where loops need numbers."""


def _program(graph: Graph, rules: Mapping[torch._ops.OpOverload, Rule]) -> Program:
    lowering = Lowering(rules)
    lowering.run(graph)
    sizes = tuple(filter(is_symbolic, lowering.inputs))
    program = Program(
        lowering.buffers, lowering.inputs, lowering.outputs, [], sizes, finite=lowering.finite
    )
    symbols = tuple(symbols_of(program))
    if symbols and rules and not all(map(_sums_and_products, lowering.buffers)):
        raise _SizesVary
    if _loops.enabled:
        _loops.emit("\n".join(map(str, lowering.steps)))
    try:
        program.steps = schedule(lowering.steps, lowering.outputs)
    except TypeError as error:
        if symbols and rules:
            raise _SizesVary from error
        raise
    for step in program.steps:
        if isinstance(step, Kernel):
            step.sizes = symbols
    write_in_place(program)
    return program
