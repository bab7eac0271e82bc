"""From the captured graph to a functional ATen graph; with its backward where one is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext, tracing

from dynacap.backends.native.aten.decompositions import DECOMPOSITIONS
from dynacap.backends.native.aten.in_place import NotFunctional
from dynacap.backends.native.aten.inputs import share_memory, stand_ins
from dynacap.backends.native.aten.recorder import Recorder, Replay
from dynacap.fxlite import GraphModule

Compiled = Callable[..., Any]
CompileAten = Callable[[torch.fx.GraphModule, Compiled], Compiled]


def compile_traced(
    graph_module: GraphModule, example_inputs: Sequence[Any], compile_aten: CompileAten
) -> Compiled:
    """The callable for a graph: ``compile_aten(graph, eager)`` makes one of each ATen graph.

    ``eager`` computes the same, operator by operator.
    """
    if not needs_gradient(graph_module, example_inputs):
        with contextlib.suppress(NotFunctional):
            return compile_aten(record(graph_module, example_inputs), graph_module.forward)
    return _through_autograd(graph_module, example_inputs, compile_aten)


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


class _Module(torch.nn.Module):
    """What AOTAutograd takes: it calls the captured graph's own code, with nothing converted, and
    without the hooks that the user has put on all modules.
    """

    def __init__(self, forward: Compiled) -> None:
        super().__init__()
        self._forward = forward

    def __call__(self, *args: Any) -> Any:
        return self._forward(*args)


@contextlib.contextmanager
def _failing_backward() -> Iterator[None]:
    """A backward pass that cannot be is for eager PyTorch to refuse, if it is ever asked for."""
    try:
        yield
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        raise NotImplementedError(f"its backward pass fails: {error}") from error


def _through_autograd(
    graph_module: GraphModule, example_inputs: Sequence[Any], compile_aten: CompileAten
) -> Compiled:
    mode, inputs = stand_ins(graph_module, example_inputs, gradient=True)

    def compiler(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        boxed: Compiled = make_boxed_func(compile_aten(gm, gm))
        return boxed

    with tracing(TracingContext(mode)), _failing_backward():
        compiled: Compiled = aot_module_simplified(
            _Module(graph_module.forward),  # type: ignore[arg-type]
            inputs,
            fw_compiler=compiler,
            bw_compiler=compiler,
            inference_compiler=compiler,
            partition_fn=min_cut_rematerialization_partition,
            decompositions=dict(DECOMPOSITIONS),
            keep_inference_input_mutations=True,
        )
    return compiled
