"""The backend ``native``: a graph as one C function."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from dynacap import log
from dynacap.backends.native.aten.trace import compile_traced
from dynacap.backends.native.build import HOW_TO_GET_ONE, Compiler, build_later, find_compiler
from dynacap.backends.native.c.program import Source, program_source
from dynacap.backends.native.loops.program import Buffer, Program, is_symbolic
from dynacap.backends.native.lowering import NotLowered, lower
from dynacap.backends.native.pending import Pending
from dynacap.backends.native.run.attach import extension
from dynacap.backends.native.run.steps import make_step
from dynacap.backends.registry import register_backend
from dynacap.config import config
from dynacap.errors import UserError
from dynacap.fxlite import GraphModule

MODES = (None, "default", "background")

# Operators whose results' sizes are in the data, or that need the data.
_BEYOND_FAKE_TENSORS = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)


@register_backend(name="native")
def native(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile the graph to C; without a compiler it runs as ``eager`` does.

    ``mode``: "default" waits for the C compiler at the first call, "background" never does.
    """
    if mode not in MODES:
        raise UserError(f"backend 'native' has no mode {mode!r}; there are {MODES[1:]}")
    if options:
        raise UserError(f"backend 'native' has no options {sorted(options)}")
    crun, compiler = extension(), find_compiler()
    if crun is None:
        _run_eagerly("this dynacap was built without its C code, or for another torch")
        return graph_module.forward
    if compiler is None:
        _run_eagerly(f"there is no C compiler: {HOW_TO_GET_ONE}")
        return graph_module.forward
    compile_aten = _Compile(crun, compiler, mode != "background")
    try:
        return compile_traced(graph_module, example_inputs, compile_aten)
    except _BEYOND_FAKE_TENSORS as error:
        _run_eagerly(f"{type(error).__name__}: {error}")
        return graph_module.forward
    except Exception as error:
        if config.raise_internal_errors:
            raise
        _run_eagerly(f"{type(error).__name__}: {error}; please report this")
        return graph_module.forward


def _run_eagerly(why: str) -> None:
    log.warn_once(("native", why), f"a graph of backend 'native' runs eagerly: {why}")


@dataclasses.dataclass(frozen=True)
class _Compile:
    """From an ATen graph to a callable, through all stages."""

    crun: ModuleType
    compiler: Compiler
    waits: bool

    def __call__(
        self, graph: torch.fx.GraphModule, eager: Callable[..., Any]
    ) -> Callable[..., Any]:
        try:
            program, source = self._written(graph)
        except NotLowered as error:
            _run_eagerly(str(error))
            return eager
        except Exception as error:
            if config.raise_internal_errors:
                raise
            _run_eagerly(f"{type(error).__name__}: {error}; please report this")
            return eager
        library = build_later(source.text, self.compiler)
        pending = Pending(library, eager, waits=self.waits)
        callable_: Callable[..., Any] = self.crun.Graph(
            pending.call,
            lambda index: make_step(source.calls[index]),
            bytes(ord("t" if isinstance(value, Buffer) else "s") for value in program.inputs),
            tuple(map(_output_kind, program.outputs)),
            tuple(buffer.value for buffer in source.constants),
        )
        return callable_

    def _written(self, graph: torch.fx.GraphModule) -> tuple[Program, Source]:
        """The program and its C code; if loops cannot be made of it, operators are called."""
        try:
            program = lower(graph.graph)
            return program, program_source(program)
        except NotLowered:
            raise
        except Exception as error:
            if config.raise_internal_errors:
                raise
            log.warn_once(
                ("native", type(error), str(error)),
                f"backend 'native' found no loops for a graph ({type(error).__name__}: {error}) and"
                " calls its operators one by one; please report this",
            )
            program = lower(graph.graph, loops=False)
            return program, program_source(program)


def _output_kind(value: Any) -> Any:
    """What the C code gives: a tensor (None), a size (a type), or a constant (in a tuple)."""
    if isinstance(value, Buffer):
        return None
    return int if is_symbolic(value) else (value,)
