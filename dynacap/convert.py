"""A captured region becomes an entry: graph → backend → generated function, under its guards."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dynacap import log
from dynacap.backends import compile_graph, eager, interpreter
from dynacap.backends.numpy_layer.memory import as_tensor
from dynacap.backends.recovery import Recovery
from dynacap.backends.registry import Backend, makes_functional
from dynacap.backends.torch_state import current_state, plain, restore_state
from dynacap.break_reasons import RUNNING_FRAME
from dynacap.capture import Region
from dynacap.codegen import Emitter, EntryCode, GraphCall, generate_entry
from dynacap.codegen.replay import replay
from dynacap.errors import GraphBreak
from dynacap.executor.aliasing import guard_aliasing
from dynacap.executor.chain import Site
from dynacap.fxlite import GraphModule
from dynacap.fxlite.node import Node
from dynacap.fxlite.replay import Replay
from dynacap.guards import Checker, GuardSet
from dynacap.guards.source import Source
from dynacap.suspend import Suspend, suspend_failed
from dynacap.torch_compile import skip_code
from dynacap.values.array import MemoryValue
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.family import is_symbolic
from dynacap.values.tensor.overrides import overrides
from dynacap.values.tensor.value import TensorValue

_graph_log = log.channel("graph")
_code_log = log.channel("code")


class Parts(NamedTuple):
    """What an entry is made of, for another process to make it again.

    ``inputs``: where those of the graph are found.  ``compiles``: the backend is given the graph.
    """

    graph: GraphModule | None = None
    inputs: tuple[Source, ...] = ()
    sets_state: bool = False
    compiles: bool = False


@dataclass
class Built:
    """An entry's function before it is cached, with what reports want to know."""

    fn: Callable[..., Any]
    slots: tuple[Source, ...]
    code: EntryCode
    graph: GraphModule | None
    parts: Parts | None = None  # None where only this process can make it

    @property
    def op_count(self) -> int:
        """How many operations the graph has."""
        return 0 if self.graph is None else count_ops(self.graph)


class Entry(NamedTuple):
    """An entry with its guards; ``reason``: why its graph breaks."""

    built: Built
    guards: GuardSet
    checker: Checker
    reason: GraphBreak | None


def count_ops(graph: GraphModule) -> int:
    """The ``call_*`` nodes of a graph, those that compute sizes alone left out."""
    return sum(node.op.startswith("call_") and not is_symbolic(node) for node in graph.graph.nodes)


def add_shape_guards(machine: Any) -> None:
    """Add what capture and the backend found out about symbolic sizes."""
    if machine.tensors.symbols is not None:
        machine.tensors.symbols.add_guards(machine.guards)


@dataclass
class Draft:
    """What a region does besides its graph, as text; making it shows whether that can be said."""

    region: Region
    emitter: Emitter
    result: str


def draft_entry(region: Region, backend: Backend) -> Draft:
    """Write the effects and the result of a region; GraphBreak for what no code can make again."""
    region.machine.guards.leave_out_types()
    guard_aliasing(region.machine, functional_backend=backend not in (eager, interpreter))
    emitter = Emitter(region.machine)
    left = region.machine.tensors.end_state
    if left is not None:
        # A backend may keep a graph's operations and drop the state in which it leaves torch.
        emitter.line(f"{emitter.helper(restore_state)}({emitter.constant(left, 'state')})")
    replay(emitter, region.machine.touched)
    # After the effects: iterators start on what is there now.
    result = _result(emitter, region)
    emitter.lines += emitter.late
    return Draft(region, emitter, result)


def build_entry(
    draft: Draft, backend: Backend, sites: tuple[Site, ...] | None, flat_sources: list[Source]
) -> Built:
    """Generate the function of a region and compile its graph."""
    emitter, result = draft.emitter, draft.result
    machine = draft.region.machine
    graph, inputs = _finish_graph(machine, list(emitter.outputs))
    if graph is None:
        code = generate_entry(emitter, result, None)
        fn = code.make(None)
        _report(None, code)
        return Built(fn, code.slots, code, None, Parts())
    sets_state = machine.tensors.state_nodes > 0
    computes = count_ops(graph) > machine.tensors.state_nodes
    compiles = computes and not (machine.tensors.stays_eager and makes_functional(backend))
    examples = list(map(_example, inputs))
    compiled = compile_for(backend, graph, examples, sets_state) if compiles else graph.forward
    recovery = Recovery(graph, compiled, sets_state, sites is not None)
    call = _graph_call(emitter, sites, flat_sources, inputs, recovery)
    code = generate_entry(emitter, result, call)
    found = (value.source for value in inputs if type(value) is TensorValue)
    sources = tuple(source for source in found if source is not None)
    others = len(sources) < len(inputs)
    parts = None if others else Parts(graph, sources, sets_state, compiles)
    built = bind(code, graph, compiled, parts)
    # One that at most sets grad mode and the like is nothing for a backend, nor to count.
    return built if computes else replace(built, graph=None)


def compile_for(
    backend: Backend, graph: GraphModule, examples: list[Any], sets_state: bool
) -> Callable[..., Any]:
    """What the backend makes of a graph, which leaves torch's state as it was."""
    before = current_state()
    try:
        return compile_graph(backend, graph, examples)
    finally:
        if sets_state:
            restore_state(before)  # a backend may run the graph, and not to its end


def bind(
    code: EntryCode, graph: GraphModule, compiled: Callable[..., Any], parts: Parts | None = None
) -> Built:
    """The entry's function, bound to the compiled graph."""
    fn = code.make(compiled)
    if code.function is not None:
        skip_code(code.function.__code__)
    graph.on_call.tell_code(skip_code)
    _report(graph, code)
    return Built(fn, code.slots, code, graph, parts)


def _graph_call(
    emitter: Emitter,
    sites: tuple[Site, ...] | None,
    flat_sources: list[Source],
    inputs: list[TensorValue | SymbolValue],
    recovery: Recovery,
) -> GraphCall:
    """How the graph is called; what raises is run again eagerly if nothing has happened yet."""
    kept = list(emitter.args.values())
    names = [_input(emitter, value) for value in inputs]
    outputs = list(emitter.outputs.values())
    if not recovery.needed:
        return GraphCall(names, outputs, kept)
    recover = emitter.constant(recovery, "recover")
    if recovery.replay is Replay.NEVER and not recovery.inside:
        return GraphCall(names, outputs, kept, recover)
    flat = tuple(map(emitter.arg, flat_sources))
    run_plain = functools.partial(suspend_failed, recovery.interruption, sites)
    again = emitter.constant(run_plain, "run_plain")
    return GraphCall(names, outputs, kept, recover, again, flat, recovery.rewinds)


def _example(value: TensorValue | SymbolValue) -> Any:
    if isinstance(value, SymbolValue):
        return value.sym.node.hint
    return plain(value.real) if overrides(value) else value.real


def _input(emitter: Emitter, value: TensorValue | SymbolValue) -> str:
    """An input as a graph takes it, which knows neither arrays nor subclasses."""
    if value.source is None:
        return emitter.constant(_example(value), "constant")
    name = emitter.arg(value.source)
    if type(value) is MemoryValue:
        return f"{emitter.helper(as_tensor)}({name})"
    return f"{emitter.helper(plain)}({name})" if overrides(value) else name


def _result(emitter: Emitter, region: Region) -> str:
    if region.result is not None:
        return emitter.expr(region.result)
    suspend = emitter.constant(Suspend, "Suspend")
    sites = emitter.constant(region.sites, "SITES")
    values = f"({emitter.exprs(list(region.values))})"
    stack = region.reason is not None and region.reason.reason == RUNNING_FRAME
    return f"{suspend}({sites}, {values}{', stack=True' if stack else ''})"


def _finish_graph(
    machine: Any, outputs: list[Node]
) -> tuple[GraphModule | None, list[TensorValue | SymbolValue]]:
    """The graph module with its outputs, and its inputs that are used."""
    graph = machine.tensors.graph
    if not any(node.op.startswith("call_") for node in graph.nodes):
        return None, []
    graph.output(tuple(outputs))
    machine.tensors.drop_unused_items()
    placeholders = {
        node: value for node, value in zip(graph.placeholders, machine.tensors.inputs, strict=True)
    }
    kept: list[TensorValue | SymbolValue] = []
    for node, value in placeholders.items():
        if node.users:
            kept.append(value)
        else:
            graph.erase_node(node)
    return GraphModule({}, graph), kept


def _report(graph: GraphModule | None, code: EntryCode) -> None:
    if graph is not None and _graph_log.enabled:
        ops = count_ops(graph)
        _graph_log.emit(
            f"captured {graph.name}: {ops} operations\n{graph.code}", graph=graph.name, ops=ops
        )
    if _code_log.enabled:
        _code_log.emit(f"{code.filename}\n{code.source}", source=code.source)
