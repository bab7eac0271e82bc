"""A captured region becomes an entry: graph → backend → generated function, under its guards."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynacap import log
from dynacap.backends import compile_graph
from dynacap.backends.registry import Backend
from dynacap.capture import Region
from dynacap.codegen import Emitter, EntryCode, generate_entry
from dynacap.codegen.replay import replay
from dynacap.codegen.runtime import call_flat
from dynacap.executor.chain import Site
from dynacap.fxlite import GraphModule
from dynacap.fxlite.effects import is_impure
from dynacap.fxlite.node import Node
from dynacap.guards.source import Source
from dynacap.suspend import Suspend
from dynacap.values.tensor.value import TensorValue

_graph_log = log.channel("graph")
_code_log = log.channel("code")


@dataclass
class Built:
    """An entry's function before it is cached, with what reports want to know."""

    fn: Callable[..., Any]
    slots: tuple[Source, ...]
    code: EntryCode
    graph: GraphModule | None
    backend_seconds: float = 0.0

    @property
    def op_count(self) -> int:
        """How many operations the graph has."""
        return 0 if self.graph is None else count_ops(self.graph)


def count_ops(graph: GraphModule) -> int:
    """The ``call_*`` nodes of a graph."""
    return sum(node.op.startswith("call_") for node in graph.graph.nodes)


def build_entry(
    region: Region, backend: Backend, sites: tuple[Site, ...] | None, flat_sources: list[Source]
) -> Built:
    """Generate the function of a region and compile its graph."""
    machine = region.machine
    emitter = Emitter(machine)
    replay(emitter, machine.touched)
    result = _result(emitter, region)  # after the effects: iterators start on what is there now
    graph, inputs = _finish_graph(machine, list(emitter.outputs))
    compiled: Any = graph
    seconds = 0.0
    sets_state = machine.tensors.state_nodes > 0
    computes = graph is not None and count_ops(graph) > machine.tensors.state_nodes
    if graph is not None and computes:
        started = time.perf_counter()
        compiled = compile_graph(backend, graph, [value.real for value in inputs])
        seconds = time.perf_counter() - started
    recover = _recover(emitter, region, sites, flat_sources) if graph is not None else None
    names = [_input(emitter, value) for value in inputs]
    outputs = list(emitter.outputs.values())
    if graph is None:
        code = generate_entry(emitter, result, None, [], None)
    else:
        code = generate_entry(emitter, result, names, outputs, recover, sets_state=sets_state)
    fn = code.make(compiled)
    _report(graph, code)
    if not computes:
        graph = None  # at most it sets grad mode and the like: nothing for a backend, nor to count
    return Built(fn, code.slots, code, graph, seconds)


def _input(emitter: Emitter, value: TensorValue) -> str:
    if value.source is not None:
        return emitter.arg(value.source)
    return emitter.constant(value.real, "constant")


def _result(emitter: Emitter, region: Region) -> str:
    if region.result is not None:
        return emitter.expr(region.result)
    suspend = emitter.constant(Suspend, "Suspend")
    sites = emitter.constant(region.sites, "SITES")
    return f"{suspend}({sites}, ({emitter.exprs(list(region.values))}))"


def _finish_graph(
    machine: Any, outputs: list[Node]
) -> tuple[GraphModule | None, list[TensorValue]]:
    """The graph module with its outputs, and its inputs that are used."""
    graph = machine.tensors.graph
    if not any(node.op.startswith("call_") for node in graph.nodes):
        return None, []
    graph.output(tuple(outputs))
    placeholders = {
        node: value for node, value in zip(graph.placeholders, machine.tensors.inputs, strict=True)
    }
    kept: list[TensorValue] = []
    for node, value in placeholders.items():
        if node.users:
            kept.append(value)
        else:
            graph.erase_node(node)
    return GraphModule({}, graph), kept


def _recover(
    emitter: Emitter, region: Region, sites: tuple[Site, ...] | None, flat_sources: list[Source]
) -> str | None:
    """If the graph can be run again from the start, do that eagerly when it raises."""
    if not _replayable(region):
        return None
    flat = ", ".join(emitter.arg(source) for source in flat_sources)
    recover = emitter.constant(_Recover(sites), "run_eagerly")
    return f"{recover}({flat})"


def _replayable(region: Region) -> bool:
    tensors = region.machine.tensors
    return not tensors.state_nodes and not any(
        is_impure(node) for node in tensors.graph.nodes if node.op.startswith("call_")
    )


class _Recover:
    """Runs a region as plain Python from its start."""

    def __init__(self, sites: tuple[Site, ...] | None) -> None:
        self.sites = sites

    def __call__(self, *flat: Any) -> Any:
        if self.sites is None:
            return call_flat(flat)
        return Suspend(self.sites, flat, plain=True)


def _report(graph: GraphModule | None, code: EntryCode) -> None:
    if graph is not None and _graph_log.enabled:
        ops = count_ops(graph)
        _graph_log.emit(
            f"captured {graph.name}: {ops} operations\n{graph.code}", graph=graph.name, ops=ops
        )
    if _code_log.enabled:
        _code_log.emit(f"{code.filename}\n{code.source}", source=code.source)
