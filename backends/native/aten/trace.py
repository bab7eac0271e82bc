"""From the captured graph to a functional ATen graph; with its backward where one is needed."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynacap.backends.native.aten.decompositions import DECOMPOSITIONS
from dynacap.backends.native.aten.in_place import NotFunctional
from dynacap.backends.native.aten.inputs import share_memory, stand_ins
from dynacap.backends.native.aten.recorder import Recorder, Replay
from dynacap.fxlite import GraphModule

Compiled = Callable[..., Any]
CompileAten = Callable[[torch.fx.GraphModule, Compiled], Compiled]
_AUTOGRAD = "dynacap.backends.native.aten.autograd"


def compile_traced(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_aten: CompileAten,
    compile_recorded: CompileAten,
    eager: Compiled,
) -> Compiled:
    """The callable for a graph: ``compile_aten(graph, eager)`` makes one of each ATen graph.

    ``eager`` computes the same, operator by operator.  ``compile_recorded`` gets a graph that is
    all there is to compile: it takes the captured graph's inputs, and gives what that gives.
    """
    if not needs_gradient(graph_module, example_inputs):
        with contextlib.suppress(NotFunctional):
            return compile_recorded(record(graph_module, example_inputs), eager)
    autograd: Any = importlib.import_module(_AUTOGRAD)  # loaded late: it takes seconds
    compiled: Compiled = autograd.through_autograd(
        graph_module, example_inputs, compile_aten, eager
    )
    return compiled


def needs_gradient(graph_module: GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether a call builds an autograd graph: an input wants it, and grad mode is on somewhere."""
    if not any(isinstance(v, torch.Tensor) and v.requires_grad for v in example_inputs):
        return False
    sets_state = any(node.meta.get("sets_state") for node in graph_module.graph.nodes)
    return torch.is_grad_enabled() or sets_state


def record(graph_module: GraphModule, example_inputs: Sequence[Any]) -> torch.fx.GraphModule:
    """The ATen graph of a graph that needs no gradient; NotFunctional for what is not taken."""
    mode, fakes = stand_ins(graph_module, example_inputs, gradient=False)
    recorder = Recorder(mode, DECOMPOSITIONS)
    for node, fake in zip(graph_module.graph.placeholders, fakes, strict=True):
        recorder.placeholder(node.name, fake)
    with torch.no_grad(), torch.inference_mode(False), mode:
        with recorder:
            outputs = Replay(graph_module, recorder).run(*fakes)
        recorder.output(outputs)
    if recorder.changes_inputs and share_memory(example_inputs):
        raise NotFunctional("an input is changed, and inputs share memory")
    return torch.fx.GraphModule(recorder.constants, recorder.graph)
