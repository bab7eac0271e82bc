"""The backend ``native``: a graph as one C function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import torch

from dynacap import log
from dynacap.backends.native.aten.trace import compile_traced
from dynacap.backends.native.build.build import build_later
from dynacap.backends.native.build.compiler import HOW_TO_GET_ONE, find_compiler
from dynacap.backends.native.c.program import Source, program_source
from dynacap.backends.native.loops.program import Buffer, Program
from dynacap.backends.native.lowering.calls import lower_calls
from dynacap.backends.native.run.attach import extension
from dynacap.backends.native.run.steps import make_step
from dynacap.backends.registry import register_backend
from dynacap.fxlite import GraphModule


@register_backend(name="native")
def native(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile the graph to C; without a compiler it runs as ``eager`` does."""
    crun, compiler = extension(), find_compiler()
    if crun is None or compiler is None:
        what = "its C extension" if crun is None else "a C compiler"
        log.warn_once(
            "native", f"backend 'native' lacks {what}, graphs run eagerly: {HOW_TO_GET_ONE}"
        )
        return graph_module.forward

    def compile_aten(graph: torch.fx.GraphModule, part: str) -> Callable[..., Any]:
        program = lower_calls(graph)
        source = program_source(program)
        return _callable(crun, program, source, build_later(source.text, compiler), graph)

    return compile_traced(graph_module, example_inputs, compile_aten)


def _callable(
    crun: Any, program: Program, source: Source, library: Future[Path], eager: Any
) -> Callable[..., Any]:
    inputs = bytes(ord("t" if isinstance(v, Buffer) else "s") for v in program.inputs)
    outputs = tuple(map(_output_kind, program.outputs))
    constants = tuple(buffer.value for buffer in source.constants)

    def first_call(*args: Any) -> Any:
        graph.load(str(library.result()))
        return graph(*args)

    graph = crun.Graph(
        first_call, lambda index: make_step(source.calls[index]), inputs, outputs, constants
    )
    return graph  # type: ignore[no-any-return]


def _output_kind(value: Any) -> Any:
    if isinstance(value, Buffer):
        return None
    return int if hasattr(value, "free_symbols") else (value,)
