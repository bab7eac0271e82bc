"""What AOTAutograd found out of a graph, as a note on disk; and its autograd function, by a note.

Torch's own runtime around the two graphs is made again from what it knows of the captured graph
(``ViewAndMutationMeta``), so that it does in a later process what it did in this one.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd import graph_compile as stages
from torch._functorch._aot_autograd.runtime_wrappers import (
    AOTDispatchAutograd,
    AOTDispatchAutogradCompileSpec,
    CachedAutogradLazyBackwardCompileInfo,
)
from torch._functorch._aot_autograd.schemas import AOTConfig, ViewAndMutationMeta
from torch._functorch.aot_autograd import AOT_COUNTER
from torch._guards import TracingContext

from dynacap.backends.native.aten.trace import Compiled, Keep, Note
from dynacap.backends.native.aten.words import NoWords, from_words, in_words


class Notes:
    """Collects what is to be noted of a graph; the backward pass comes last, when it first runs."""

    def __init__(self, keep: Keep) -> None:
        self._keep = keep
        self._forward: Note | None = None
        self._metadata: Any = None

    def of_forward(self, gm: torch.fx.GraphModule) -> Keep:
        """What is to be told of the forward graph, while AOTAutograd has it compiled."""
        self._metadata = TracingContext.get().fw_metadata
        text = _digest(gm)

        def keep(part: Note) -> None:
            self._forward = {**part, "graph": text}

        return keep

    def of_backward(self, gm: torch.fx.GraphModule) -> Keep:
        """The same for the backward graph."""
        text = _digest(gm)
        metadata = self._metadata
        detached = stages._compute_indices_of_inps_to_detach(gm, None, metadata, metadata)

        def keep(part: Note) -> None:
            try:
                words = in_words(_at_run_time(metadata))
            except NoWords:
                return
            if self._forward is not None:
                parts = [self._forward, {**part, "graph": text}]
                self._keep({"parts": parts, "metadata": words, "detached": detached})

        return keep


def _at_run_time(metadata: ViewAndMutationMeta) -> ViewAndMutationMeta:
    """Without what only errors about subclasses of tensors say, which no argument here is."""
    if metadata.traced_tangents or metadata.tokens or metadata.dynamic_saved_tensors_idxs:
        raise NoWords
    unsaid = [None] * len(metadata.traced_tangents_descs)
    return dataclasses.replace(
        metadata,
        traced_tangents_descs=unsaid,  # type: ignore[arg-type]
        tangent_source_stack_traces=None,
        compile_id_str=None,
    )


class Graphs:
    """The two ATen graphs of a note, traced when one is first needed."""

    def __init__(self, trace: Callable[[Any], None], note: Note) -> None:
        self._trace = trace
        self._digests = [part["graph"] for part in note["parts"]]

    @functools.cached_property
    def _graphs(self) -> list[torch.fx.GraphModule]:
        found: list[torch.fx.GraphModule] = []

        def keep(gm: torch.fx.GraphModule) -> Compiled:
            found.append(gm)
            return gm

        with functorch_config.patch(force_non_lazy_backward_lowering=True):
            self._trace((keep, keep, keep))
        if list(map(_digest, found)) != self._digests:
            raise RuntimeError("a graph was traced otherwise than in the process that noted it")
        return found

    @property
    def forward(self) -> torch.fx.GraphModule:
        """The graph of the results and of what is saved."""
        return self._graphs[0]

    @property
    def backward(self) -> torch.fx.GraphModule:
        """The graph of the gradients."""
        return self._graphs[1]


def _digest(gm: torch.fx.GraphModule) -> str:
    return hashlib.sha256(str(gm.graph).encode()).hexdigest()


def as_autograd(note: Note, graphs: Graphs, forward: Compiled, backward: Compiled) -> Compiled:
    """What AOTAutograd would have made of the two compiled graphs."""
    spec = AOTDispatchAutogradCompileSpec(
        compiled_fw_func=forward,
        compiled_bw_func=backward,
        maybe_subclass_meta=None,
        num_symints_saved_for_bw=0,
        backward_state_indices=[],
        disable_amp=torch._C._is_any_autocast_enabled(),
        indices_of_inps_to_detach=note["detached"],
        lazy_backward_info=CachedAutogradLazyBackwardCompileInfo(lambda: graphs.backward),
        bw_compiler=None,
        aot_config=_config(),
        fw_metadata=from_words(note["metadata"]),
        try_save_cache_entry=None,
    )
    compiled = AOTDispatchAutograd.post_compile(spec)
    return lambda *args: compiled(list(args))


def _config() -> AOTConfig:
    return AOTConfig(
        fw_compiler=None,
        bw_compiler=None,
        partition_fn=None,
        decompositions={},
        num_params_buffers=0,
        aot_id=next(AOT_COUNTER),
        keep_inference_input_mutations=True,
    )
