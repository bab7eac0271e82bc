"""The graph and its backward graph, by torch's AOTAutograd.

Loaded when the first graph needs a gradient: AOTAutograd brings ``torch._dynamo`` with it, whose
import takes longer than all that a small graph needs besides.
"""

from __future__ import annotations

import contextlib
import re
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch._functorch._aot_autograd import graph_compile as _stages, runtime_wrappers as _wrappers
from torch._functorch._aot_autograd.schemas import MemoryFormatMeta, OutputType
from torch._functorch._aot_autograd.utils import make_boxed_func as make_boxed
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch._guards import TracingContext, tracing
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.utils._python_dispatch import _disable_current_modes

from dynacap.backends.native.aten.again import with_eager, writes_of
from dynacap.backends.native.aten.decompositions import DECOMPOSITIONS
from dynacap.backends.native.aten.draws import keep_apart
from dynacap.backends.native.aten.flows import tangents_of
from dynacap.backends.native.aten.functions import Reads
from dynacap.backends.native.aten.inputs import refused, share_memory, stand_ins
from dynacap.backends.native.aten.overlaps import meets_itself
from dynacap.backends.native.aten.parts import Backward, first_tangent, with_own_memory
from dynacap.backends.native.aten.tokens import drop_tokens
from dynacap.backends.native.aten.trace import CompileAgain, CompileAten, Compiled, Keep, Note
from dynacap.backends.native.versions import counted_by_autograd
from dynacap.backends.torch_state import current_state, restore_state
from dynacap.fxlite import GraphModule
from dynacap.fxlite.risks import has_detached_results

try:
    from dynacap.backends.native.aten import noted
except ImportError:  # this torch keeps elsewhere what a note is made of
    _noted: Any = None
else:
    _noted = noted

Compiler = Callable[[torch.fx.GraphModule], Compiled]
Compilers = tuple[Compiler, Compiler, Compiler]  # of forward, backward and inference graphs

# Whether a graph is given floats -> what divides it; the former leaves floats out of what is kept.
_PARTITION: dict[bool, Callable[..., Any]] = {
    False: min_cut_rematerialization_partition,
    True: default_partition,
}
_NO_BACKWARD = "modified by an inplace operation|derivative for .* is not implemented"


class _Module(torch.nn.Module):
    """What AOTAutograd takes: it calls the captured graph's own code, with nothing converted, and
    without the hooks that the user has put on all modules.
    """

    def __init__(self, forward: Compiled) -> None:
        super().__init__()
        self._forward = forward

    def __call__(self, *args: Any) -> Any:
        try:
            return self._forward(*args)
        except Exception as error:
            traceback.clear_frames(
                error.__traceback__
            )  # inference mode ends with the graph's frame
            raise refused(error) from error


_ours = threading.local()


def _without(name: str, instead: Any = None) -> bool:
    """Have torch leave out a stage for our graphs; False if this torch has none of that name."""
    stage = getattr(_stages, name, None)
    if stage is None:
        return False

    def unless_ours(*args: Any, **kwargs: Any) -> Any:
        return instead if getattr(_ours, "active", False) else stage(*args, **kwargs)

    setattr(_stages, name, unless_ours)
    return True


keep_apart()
# It makes tensors of the floats that vary, which rounds them otherwise, or fixes them.
_TENSORIFY = "_apply_tensorify_python_scalars"
_floats_are_kept = _without(_TENSORIFY)
# Graphs are written out for a log even if nobody reads it; there is one of ours.
_without("_log_joint_graph")
_without("_log_fw_bw_graphs", (None, None))


def _without_watched_first_call() -> None:
    """Have torch run the first call of our graphs as all others.

    It looks at custom operators by a dispatch mode there, and under any mode some operators of
    torch's give something else (``pinverse`` of complex numbers).
    """
    context: Any = getattr(_wrappers, "_FirstInvocationContext", None)
    if context is None:
        return
    begin = context.__init__

    def begin_without(self: Any) -> None:
        begin(self)
        self._is_first = self._is_first and not getattr(_ours, "active", False)

    context.__init__ = begin_without


_without_watched_first_call()


def _with_gradients_apart() -> None:
    """Have torch lay no gradient out as a result lies in which elements are one (``unfold``): the
    gradients of those would be one, too.

    It looks for strides of 0 only.
    """
    layout: Any = MemoryFormatMeta
    lay = layout.from_tensor

    def lay_apart(value: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if getattr(_ours, "active", False) and value.layout is torch.strided:
            with _disable_current_modes():
                if meets_itself(value):
                    kwargs["force_use_memory_format"] = True
        return lay(value, *args, **kwargs)

    layout.from_tensor = staticmethod(lay_apart)


_with_gradients_apart()


@contextlib.contextmanager
def _without_these() -> Iterator[None]:
    _ours.active = True
    try:
        yield
    finally:
        _ours.active = False


@contextlib.contextmanager
def _failing_backward() -> Iterator[None]:
    """A backward pass that cannot be is for eager PyTorch to refuse, if it is ever asked for."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Error detected in ")  # for AOTAutograd's detection
            yield
    except ZeroDivisionError as error:
        raise NotImplementedError(
            "torch divides by how many elements a tensor has, which are none, for its backward pass"
        ) from error
    except RuntimeError as error:
        if re.search(_NO_BACKWARD, str(error)) is None:
            raise
        raise NotImplementedError(f"its backward pass fails: {error}") from error


def through_autograd(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_aten: CompileAten,
    eager: Compiled,
    keep: Keep | None,
) -> Compiled:
    """The callable for a graph, which has a backward pass where the inputs want one."""
    reads = Reads(graph_module.graph)
    if reads.refused:
        raise NotImplementedError(f"it has a backward pass of its own: {reads.refused}")
    if has_detached_results(graph_module.graph):
        raise NotImplementedError(
            "it returns what was detached from an argument (detach(), .data), and is changed with a"
            " gradient"
        )
    mode, inputs = stand_ins(graph_module, example_inputs, gradient=True)
    taken = keep is not None and _noted is not None and not share_memory(example_inputs)
    notes = _noted.Notes(keep) if taken else None
    times = Counter(index for index, _ in writes_of(graph_module.graph))
    meanwhile: list[Callable[[], object]] = []
    backwards: list[Backward] = []

    def forward(gm: torch.fx.GraphModule) -> Compiled:
        # None of the saved tensors is written to, so that a backward pass can be made again.
        TracingContext.get().fw_metadata.bw_donated_idxs = []  # type: ignore[union-attr]
        gm.meta["changes"] = counted_by_autograd(gm.graph, times)
        gm.meta["meanwhile"] = meanwhile
        return compile_aten(gm, gm, None if notes is None else notes.of_forward(gm))

    def backward(gm: torch.fx.GraphModule) -> Compiled:
        _check_sparse(gm)
        gm.meta["continues"] = True
        keep = None if notes is None else notes.of_backward(gm)
        made = Backward(lambda: gm, compile_aten, keep, first_tangent(gm))
        backwards.append(made)
        meanwhile.append(made.begin)
        return made

    def alone(gm: torch.fx.GraphModule) -> Compiled:
        gm.meta["changes"] = counted_by_autograd(gm.graph, times)
        return compile_aten(gm, gm, None)

    compiled = _traced(graph_module, mode, inputs, (forward, backward, alone))
    return with_eager(compiled, graph_module, eager, reads, backwards[0] if backwards else None)


def by_note(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_aten: CompileAten,
    compile_part: CompileAgain,
    eager: Compiled,
    note: Note,
) -> Compiled:
    """The callable for a graph of which an earlier process noted what it came to.

    What cannot be run as C is run by the ATen graphs, which are traced only then.
    """
    mode, inputs = stand_ins(graph_module, example_inputs, gradient=True)
    state = current_state()

    def trace(compilers: Compilers) -> None:
        now = current_state()
        restore_state(state)
        try:
            with _disable_current_modes():  # those that see the call in which this is done
                _traced(graph_module, mode, inputs, compilers)
        finally:
            restore_state(now)

    graphs = _noted.Graphs(trace, note)
    of_forward, of_backward = note["parts"]
    forward = compile_part(of_forward, lambda *args: graphs.forward(*args))
    backward = Backward(lambda: graphs.backward, compile_aten, None, of_backward["first"])
    backward.take_up(of_backward, compile_part)
    with _without_these():
        compiled = _noted.as_autograd(note, graphs, make_boxed(forward), make_boxed(backward))
    return with_eager(compiled, graph_module, eager, Reads(graph_module.graph), backward)


def _traced(
    graph_module: GraphModule, mode: Any, inputs: Sequence[Any], compilers: Compilers
) -> Compiled:
    forward, backward, alone = map(_compiler, compilers)
    floats = any(isinstance(each, torch.SymFloat) for each in inputs)
    if floats and not _floats_are_kept:
        raise NotImplementedError("a float in it varies, which this torch rounds as a tensor")
    with (
        tracing(TracingContext(mode)),
        _use_lazy_graph_module(True),  # most are never run in Python, and need no code of theirs
        torch._functorch.config.patch(
            unlift_effect_tokens=True,
            force_non_lazy_backward_lowering=True,  # asked for now, and made when it is first run
        ),
        _failing_backward(),
        _without_these(),
    ):
        compiled: Compiled = aot_module_simplified(
            _Module(graph_module.forward),  # type: ignore[arg-type]
            inputs,
            fw_compiler=lambda gm, given: forward(_with_views(gm), given),
            bw_compiler=lambda gm, given: backward(with_own_memory(gm), given),
            inference_compiler=alone,
            partition_fn=_PARTITION[floats],
            decompositions=dict(DECOMPOSITIONS),
            keep_inference_input_mutations=True,
        )
    return compiled


def _check_sparse(gm: torch.fx.GraphModule) -> None:
    """Refuse a sparse gradient of an argument that is changed as well: AOTAutograd adds to it the
    gradient of what the argument is changed to, which is dense, be it of zeros."""
    for node in gm.graph.find_nodes(op="call_function", target=torch.ops.aten.add.Tensor):
        operands = node.all_input_nodes
        layouts = {getattr(each.meta["val"], "layout", torch.strided) for each in operands}
        if layouts != {torch.strided} and any(each.op == "placeholder" for each in operands):
            raise NotImplementedError("it changes an argument whose gradient is sparse")


def _with_views(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The forward graph with results that count changes with what they are views of.

    Torch would make other tensors of those results when the graph has run, to which a change is
    none of what is saved for the backward pass, although it lies in the same memory.
    """
    metadata: Any = TracingContext.get().fw_metadata
    (output,) = gm.graph.find_nodes(op="output")
    results = list(output.args[0])
    for index in metadata.unsafe_view_out_indices:
        place = metadata.num_mutated_inp_runtime_indices + index
        results[place] = _alias(gm, results[place])
        about = metadata.output_info[index]
        metadata.output_info[index] = replace(about, output_type=OutputType.non_alias)
    if len(tangents_of(metadata)) > 1:
        _save_apart(gm, results, metadata.num_forward_returns)
    output.args = (tuple(results),)
    metadata.unsafe_view_out_indices, metadata.num_unsafe_view_outputs = [], 0
    gm.recompile()
    return gm


def _save_apart(gm: torch.fx.GraphModule, results: list[Any], count: int) -> None:
    """Have no result saved as the result that it is: torch gives back such only all together."""
    returned = {x for x in results[:count] if isinstance(x.meta.get("val"), torch.Tensor)}
    results[count:] = [_alias(gm, x) if x in returned else x for x in results[count:]]


def _alias(gm: torch.fx.GraphModule, node: torch.fx.Node) -> torch.fx.Node:
    (output,) = gm.graph.find_nodes(op="output")
    with gm.graph.inserting_before(output):
        alias = gm.graph.call_function(torch.ops.aten.detach.default, (node,))
    alias.meta = dict(node.meta)
    return alias


def _compiler(compile_aten: Callable[[torch.fx.GraphModule], Compiled]) -> Compiled:
    def compile_functional(gm: torch.fx.GraphModule, _: Sequence[Any]) -> Compiled:
        drop_tokens(gm)
        boxed: Compiled = make_boxed(compile_aten(gm))
        return boxed

    return compile_functional
