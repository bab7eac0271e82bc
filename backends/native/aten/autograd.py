"""The graph and its backward graph, by torch's AOTAutograd.

Loaded when the first graph needs a gradient: AOTAutograd brings ``torch._dynamo`` with it, whose
import takes longer than all that a small graph needs besides.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd import graph_compile as _stages
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified
from torch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from torch._guards import TracingContext, tracing

from dynacap.backends.native.aten.again import with_eager
from dynacap.backends.native.aten.decompositions import DECOMPOSITIONS
from dynacap.backends.native.aten.inputs import stand_ins
from dynacap.backends.native.aten.tokens import drop_tokens
from dynacap.fxlite import GraphModule

Compiled = Callable[..., Any]
CompileAten = Callable[[torch.fx.GraphModule, Compiled], Compiled]

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
        return self._forward(*args)


_TENSORIFY = "_apply_tensorify_python_scalars"
_ours = threading.local()


def _keep_floats() -> bool:
    """Have torch leave our graphs' floats as they are; False if this torch has no such place.

    It makes tensors of the floats that vary, which rounds them otherwise, or fixes them.
    """
    tensorify = getattr(_stages, _TENSORIFY, None)
    if tensorify is None:
        return False

    def apply(module: torch.fx.GraphModule) -> None:
        if not getattr(_ours, "active", False):
            tensorify(module)

    setattr(_stages, _TENSORIFY, apply)
    return True


_floats_are_kept = _keep_floats()


@contextlib.contextmanager
def _floats_as_they_are() -> Iterator[None]:
    _ours.active = True
    try:
        yield
    finally:
        _ours.active = False


@contextlib.contextmanager
def _failing_backward() -> Iterator[None]:
    """A backward pass that cannot be is for eager PyTorch to refuse, if it is ever asked for."""
    try:
        yield
    except RuntimeError as error:
        if re.search(_NO_BACKWARD, str(error)) is None:
            raise
        raise NotImplementedError(f"its backward pass fails: {error}") from error


def through_autograd(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    compile_aten: CompileAten,
    eager: Compiled,
) -> Compiled:
    """The callable for a graph, which has a backward pass where the inputs want one."""
    mode, inputs = stand_ins(graph_module, example_inputs, gradient=True)

    def compiler(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Compiled:
        drop_tokens(gm)
        boxed: Compiled = make_boxed_func(compile_aten(gm, gm))
        return boxed

    floats = any(isinstance(each, torch.SymFloat) for each in inputs)
    if floats and not _floats_are_kept:
        raise NotImplementedError("a float in it varies, which this torch rounds as a tensor")
    with (
        tracing(TracingContext(mode)),
        torch._functorch.config.patch(unlift_effect_tokens=True),
        _failing_backward(),
        _floats_as_they_are(),
    ):
        compiled: Compiled = aot_module_simplified(
            _Module(graph_module.forward),  # type: ignore[arg-type]
            inputs,
            fw_compiler=compiler,
            bw_compiler=compiler,
            inference_compiler=compiler,
            partition_fn=_PARTITION[floats],
            decompositions=dict(DECOMPOSITIONS),
            keep_inference_input_mutations=True,
        )
    return with_eager(compiled, graph_module, eager)
