"""From the captured graph to a functional ATen graph; with its backward where one is needed."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.fx._lazy_graph_module import _LazyGraphModule

from dynacap.backends.fall_back import withdraw
from dynacap.backends.native.aten.decompositions import DECOMPOSITIONS
from dynacap.backends.native.aten.in_place import NotFunctional
from dynacap.backends.native.aten.inputs import share_memory, stand_ins
from dynacap.backends.native.aten.recorder import Recorder, Replay
from dynacap.backends.native.versions import counts_of
from dynacap.backends.torch_state import current_state, restore_state
from dynacap.fxlite import GraphModule, Node
from dynacap.fxlite.risks import plain_name

Compiled = Callable[..., Any]
Note = dict[str, Any]
Keep = Callable[[Note], None]
CompileAten = Callable[[torch.fx.GraphModule, Compiled, Keep | None], Compiled]
CompileAgain = Callable[[Note, Compiled], Compiled]
_AUTOGRAD = "dynacap.backends.native.aten.autograd"


def compile_traced(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_aten: CompileAten,
    eager: Compiled,
    keep: Keep | None,
) -> Compiled:
    """The callable for a graph: ``compile_aten(graph, eager, keep)`` makes one of each ATen graph.

    ``eager`` computes the same, operator by operator.  ``keep`` is told what a later process needs
    besides the captured graph, if a note of it can be taken.
    """
    if not needs_gradient(graph_module, example_inputs):
        with contextlib.suppress(NotFunctional), _as_it_was():
            recorded = record(graph_module, example_inputs)
            only = None if keep is None else _as_only_part(keep)
            return _without_autocast(lambda eager: compile_aten(recorded, eager, only), eager)
    withdraw(graph_module)  # AOTAutograd may have counted a change by the time that it fails
    compiled: Compiled = _autograd().through_autograd(
        graph_module, example_inputs, compile_aten, eager, keep
    )
    return compiled


@contextlib.contextmanager
def _as_it_was() -> Iterator[None]:
    """Have torch's state back where something raises in the middle of a graph."""
    state = current_state()
    try:
        yield
    except BaseException:
        restore_state(state)
        raise


def _without_autocast(make: Callable[[Compiled], Compiled], eager: Compiled) -> Compiled:
    """What ``make(eager)`` gives, where operators that torch's dispatcher calls are not cast: the
    graph holds the casts already."""
    if not torch.is_autocast_enabled("cpu"):
        return make(eager)
    compiled = make(_cast(eager, on=True))
    return _cast(compiled, on=False)


def _cast(run: Compiled, *, on: bool) -> Compiled:
    def call(*args: Any) -> Any:
        torch.set_autocast_enabled("cpu", on)
        try:
            return run(*args)
        finally:
            torch.set_autocast_enabled("cpu", not on)

    return call


def _as_only_part(keep: Keep) -> Keep:
    return lambda part: keep({"parts": [part]})


def compile_again(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_aten: CompileAten,
    compile_part: CompileAgain,
    eager: Compiled,
    note: Note,
) -> Compiled:
    """The same by what was noted: ``compile_part(part, eager)`` makes one of each ATen graph."""
    if len(note["parts"]) == 1:
        return _without_autocast(lambda eager: compile_part(note["parts"][0], eager), eager)
    withdraw(graph_module)
    compiled: Compiled = _autograd().by_note(
        graph_module, example_inputs, compile_aten, compile_part, eager, note
    )
    return compiled


def _autograd() -> Any:
    return importlib.import_module(_AUTOGRAD)  # loaded late: it takes seconds


def needs_gradient(graph_module: GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether a call builds an autograd graph: an input wants it, and grad mode is on somewhere."""
    if not any(isinstance(v, torch.Tensor) and v.requires_grad for v in example_inputs):
        return False
    return torch.is_grad_enabled() or any(map(_may_set_grad_mode, graph_module.graph.nodes))


def _may_set_grad_mode(node: Node) -> bool:
    of_vmap = plain_name(node.target).startswith("_vmap_")
    return bool(node.meta.get("sets_state")) and not of_vmap


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
    module = _LazyGraphModule(recorder.constants, recorder.graph)  # whose code nobody runs
    module.meta["changes"] = counts_of(recorder.graph)
    return module
