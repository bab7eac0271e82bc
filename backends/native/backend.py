"""The backend ``native``: a graph as one C function."""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols

from dynacap import log
from dynacap.backends.collector import resting
from dynacap.backends.fakes.world import without_logs
from dynacap.backends.fall_back import announced, withdraw
from dynacap.backends.native.aten.functions import is_taken_apart
from dynacap.backends.native.aten.inputs import is_variable, refused, share_memory
from dynacap.backends.native.aten.overlaps import check_overlaps
from dynacap.backends.native.aten.trace import (
    Keep,
    Note,
    compile_again,
    compile_traced,
    needs_gradient,
)
from dynacap.backends.native.build import (
    HOW_TO_GET_ONE,
    Compiler,
    build_later,
    find_compiler,
    find_note,
    keep_note,
    library_name,
    library_path,
)
from dynacap.backends.native.c.program import Source, program_source
from dynacap.backends.native.describe import description, known_of_symbols
from dynacap.backends.native.known import kinds, noted_calls, noted_constants, noted_kinds, part_of
from dynacap.backends.native.loops.program import Call, Program, check_number
from dynacap.backends.native.lowering import lower
from dynacap.backends.native.numbers import where_they_fit, without_float_arithmetic
from dynacap.backends.native.pending import Pending, Run, warn_eager
from dynacap.backends.native.refused import is_taken_apart_wrongly, refuses_whole_numbers
from dynacap.backends.native.rewind import Rewind
from dynacap.backends.native.run.attach import extension
from dynacap.backends.native.run.steps import make_step
from dynacap.backends.native.unused import with_unused_calls
from dynacap.backends.native.versions import counted
from dynacap.backends.registry import register_backend, warn_of_unused
from dynacap.backends.torch_state import is_tracked
from dynacap.config import config
from dynacap.errors import UserError
from dynacap.fxlite import GraphModule, Node
from dynacap.fxlite.printer import example_value
from dynacap.fxlite.replay import draws_before_it_raises, needs_its_order
from dynacap.fxlite.risks import plain_name

_STAGES = tuple(map(log.channel, ("aten", "loops", "schedule", "c")))  # what each stage made
_aten, _, _schedule, _c = _STAGES

# The last are torch.compile's: how long to look for kernels, which nothing here hangs on.
MODES = (
    *(None, "default", "background"),
    *("reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"),
)


@register_backend(name="native")
def native(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Run:
    """Compile the graph to C; without a compiler it runs as ``eager`` does.

    ``mode``: "default" waits for the C compiler at the first call, "background" never does; the
    other modes of torch.compile mean "default".
    """
    if mode not in MODES:
        raise UserError(f"backend 'native' has no mode {mode!r}; there are {MODES[1:]}")
    warn_of_unused("native", options=options)
    waits, eager = mode != "background", announced(graph_module)
    parts = without_float_arithmetic(graph_module)
    if parts is not None:
        rest, floats = parts
        run = native(rest, [*example_inputs, *floats(*example_inputs)], mode=mode, options=options)
        return lambda *args: run(*args, *floats(*args))
    if needs_gradient(graph_module, example_inputs):
        whole = with_unused_calls(graph_module)
        if whole is not None:
            count = len(graph_module.graph.output_node().args[0])
            run = native(whole, example_inputs, mode=mode, options=options)
            return lambda *args: run(*args)[:count]
    rewind = Rewind(eager) if draws_before_it_raises(graph_module) else None

    def make() -> Run:
        if rewind is None:
            return _compiled(graph_module, example_inputs, eager, waits)
        return rewind.around(_compiled(graph_module, example_inputs, rewind.eager, waits))

    run = _or_eagerly(make, graph_module.on_call)
    if run is graph_module.on_call:
        withdraw(graph_module)
    return where_they_fit(run, graph_module)


def _or_eagerly(make: Callable[[], Run], eager: Run) -> Run:
    """What ``make`` gives; where it fails, ``eager``, and a warning that says why."""
    try:
        # What is traced is as much garbage at its end as a capture, and no more.
        with without_logs(), resting():
            return make()
    except NotImplementedError as error:
        warn_eager(str(error))
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        warn_eager(str(refused(error)))  # in the backward pass, whose operators torch chooses
    except Exception as error:
        if config.raise_internal_errors:
            raise
        told = refused(error) if _is_torch_s(error) else f"{error!r}; please report this"
        warn_eager(str(told))
    return eager


def _is_torch_s(error: Exception) -> bool:
    """Whether an error comes from torch's own code, of an operator that it found wrong."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__")).partition(".")[0] == "torch"


def _compiled(
    graph_module: GraphModule, example_inputs: Sequence[Any], eager: Run, waits: bool
) -> Run:
    crun, compiler = extension(), find_compiler()
    if crun is None:
        raise NotImplementedError("this dynacap was built without its C code, or for another torch")
    if compiler is None:
        raise NotImplementedError(f"there is no C compiler: {HOW_TO_GET_ONE}")
    _check_inputs(graph_module, example_inputs)
    make = _Compile(crun, compiler, waits)
    shown = any(each.enabled for each in _STAGES)
    key = None if shown else description(graph_module, example_inputs)
    note = None if key is None else find_note(key, compiler)
    if note is None or share_memory(example_inputs):  # else who took the note has looked
        _check_graph(graph_module, example_inputs)
    if key is None:
        return compile_traced(graph_module, example_inputs, make, eager, None)
    if note is not None:
        return compile_again(graph_module, example_inputs, make, make.again, eager, note)
    before = known_of_symbols(graph_module)

    def keep(note: Note) -> None:
        if known_of_symbols(graph_module) == before:  # else a guard would be missed that it needs
            keep_note(key, compiler, note)

    return compile_traced(graph_module, example_inputs, make, eager, keep)


def _check_inputs(graph_module: GraphModule, example_inputs: Sequence[Any]) -> None:
    """NotImplementedError for what C code would take for plain memory, and is not."""
    values = [*example_inputs, *map(example_value, graph_module.graph.nodes)]
    for value in values:
        check_number(value)  # before tracing, which fixes what varies to what it is now
    if any(map(has_free_unbacked_symbols, filter(is_variable, values))):
        raise NotImplementedError("a size or a number in it lies in the data")
    devices = {value.device.type for value in values if isinstance(value, torch.Tensor)}
    if not devices <= {"cpu"}:
        raise NotImplementedError(f"it has tensors on {', '.join(sorted(devices - {'cpu'}))}")
    if any(isinstance(v, torch.Tensor) and (v.is_neg() or v.is_conj()) for v in example_inputs):
        raise NotImplementedError("an argument is to be negated or conjugated when it is read")


def _check_graph(graph_module: GraphModule, example_inputs: Sequence[Any]) -> None:
    """The same for what the graph does with them."""
    check_overlaps(graph_module.graph)
    if needs_its_order(graph_module):
        raise NotImplementedError("others' code runs in it behind a change, or before an error")
    for node, value in zip(graph_module.graph.placeholders, example_inputs, strict=True):
        if _resized(example_value(node), value):
            raise NotImplementedError(f"{node.name} gets another number of elements")
    for node in graph_module.graph.nodes:
        _check_node(node)


def _check_node(node: Node) -> None:
    """The same for one call of the captured graph."""
    if node.op != "placeholder" and isinstance(example_value(node), torch.SymFloat):
        raise NotImplementedError(f"{node.name} is a float that the graph computes")
    leaf = node.kwargs.get("requires_grad") or plain_name(node.target) == "requires_grad"
    if leaf and not is_tracked(example_value(node)):  # a transform's own is gone when it ends
        raise NotImplementedError("it makes a tensor that requires a gradient")
    if refuses_whole_numbers(node):
        raise NotImplementedError(f"{node.name} has whole numbers, which eager refuses")
    if is_taken_apart_wrongly(node):
        raise NotImplementedError(f"torch's tracing makes of {node.name} what gives something else")
    if is_taken_apart(node.target):
        raise NotImplementedError(f"{plain_name(node.target)} is Python code of its own")
    placed = len(node.args) > 3 or "storage_offset" in node.kwargs
    if placed and plain_name(node.target) == "as_strided":
        raise NotImplementedError("as_strided names a place in the memory of a tensor")


def _resized(after: Any, before: Any) -> bool:
    if not (isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)):
        return False
    return type(after.numel()) is int and after.numel() != before.numel()


@dataclasses.dataclass(frozen=True)
class _Compile:
    """From an ATen graph to a callable, through all stages."""

    crun: ModuleType
    compiler: Compiler
    waits: bool

    def __call__(self, graph: torch.fx.GraphModule, eager: Run, keep: Keep | None = None) -> Run:
        """``keep`` is told what to note, if it is more than nothing."""
        # Here too: AOTAutograd may ask for a backward graph in the user's own ``backward()``.
        return _or_eagerly(lambda: self._graph(graph, eager, keep), eager)

    def _graph(self, graph: torch.fx.GraphModule, eager: Run, keep: Keep | None) -> Run:
        program, source = _written(graph)
        changes = graph.meta.get("changes", ())
        if keep is not None:
            part = part_of(program, source, library_name(source.text, self.compiler))
            if part is not None:
                keep(part | {"changes": changes})
        meanwhile = graph.meta.get("meanwhile", ())
        pending = Pending(
            lambda: build_later(source.text, self.compiler),
            eager,
            waits=self.waits,
            meanwhile=meanwhile,
        )
        constants = tuple(buffer.value for buffer in source.constants)
        return counted(self._made(pending, source.calls, kinds(program), constants), changes)

    def again(self, part: Note, eager: Run) -> Run:
        """One graph by what an earlier process noted."""
        there: Future[Path] = Future()
        there.set_result(library_path(part["library"]))
        pending = Pending(lambda: there, eager, waits=True)
        made = self._made(pending, noted_calls(part), noted_kinds(part), noted_constants(part))
        return counted(made, part["changes"])

    def _made(
        self,
        pending: Pending,
        calls: Sequence[Call] | Mapping[int, Call],
        takes_and_gives: tuple[bytes, tuple[Any, ...]],
        constants: tuple[Any, ...],
    ) -> Run:
        made: Run = self.crun.Graph(
            pending.call, lambda index: make_step(calls[index]), *takes_and_gives, constants
        )
        return made


def _written(graph: torch.fx.GraphModule) -> tuple[Program, Source]:
    """The program and its C code, which those who asked for the stages are shown."""
    if _aten.enabled:
        _aten.emit(str(graph.graph))
    program, source = _program_and_source(graph)
    if _schedule.enabled:
        _schedule.emit(str(program))
    _c.emit(source.text)
    return program, source


def _program_and_source(graph: torch.fx.GraphModule) -> tuple[Program, Source]:
    """If loops cannot be made of a graph, operators are called."""
    continues = graph.meta.get("continues", False)
    try:
        program = lower(graph.graph)
        program.continues = continues
        return program, program_source(program)
    except NotImplementedError:
        pass  # a limit that loops may have and calls have not
    except Exception as error:
        if config.raise_internal_errors:
            raise
        log.warn_once(
            ("native", type(error), str(error)),
            f"backend 'native' found no loops for a graph ({type(error).__name__}: {error}) and"
            " calls its operators one by one; please report this",
        )
    program = lower(graph.graph, loops=False)
    program.continues = continues
    return program, program_source(program)
