"""Whether a graph that raised can be run again from its start."""

import itertools
from enum import Enum
from typing import NamedTuple

from dynacap.fxlite.effects import is_random, mutates
from dynacap.fxlite.module import GraphModule
from dynacap.fxlite.node import Node
from dynacap.fxlite.risks import (
    changes_outside,
    is_foreign,
    may_raise,
    raises_midway,
    storage_of,
    written_by,
)


class Replay(Enum):
    """Whether a region whose graph raised can be run again from its start."""

    ALWAYS = "the graph changes nothing"
    UNLESS_LATE = "it changes something only after all that is known to raise"
    NEVER = "something was changed before"


class Plan(NamedTuple):
    """How far a graph can be run again; whether random numbers have to be drawn again then; the
    first call that cannot be made twice; the places of the inputs that are kept as they were, so
    that it can be all the same.
    """

    replay: Replay
    rewinds: bool = False
    change: Node | None = None
    kept: tuple[int, ...] = ()


def replay_of(graph: GraphModule) -> Plan:
    """What can be done where a graph has raised.

    The nodes that set torch's state are undone anyway.  ``meta["handled"]`` says of a node that an
    error of it meets a handler of the program's.
    """
    rewinds = False
    change = draw = None
    outside = _memory_of_inputs(graph)
    for node in graph.graph.nodes:
        if not node.op.startswith("call_") or node.meta.get("sets_state"):
            continue
        if may_raise(node):
            if change is not None or raises_midway(node, outside):
                return Plan(Replay.NEVER)
            rewinds = rewinds or draw is not None
        if draw is None and is_random(node):
            draw = node
        if change is None and changes_outside(node, outside):
            change = node
    if not rewinds and draw is not None:
        change = next(node for node in graph.graph.nodes if node in (draw, change))
    kept = () if change is None else _kept(graph, change)
    replay = Replay.ALWAYS if change is None else Replay.UNLESS_LATE
    return Plan(replay, rewinds or bool(kept and draw), change, kept)


def _kept(graph: GraphModule, change: Node) -> tuple[int, ...]:
    """The inputs that a graph writes to, if a handler of the program's would see the error of a
    call behind the first change, be it one that nobody foresees.
    """
    nodes = graph.graph.nodes
    behind = itertools.dropwhile(lambda node: node is not change, nodes)
    if not any(node.meta.get("handled") for node in itertools.islice(behind, 1, None)):
        return ()
    written = {storage_of(each) for node in nodes if mutates(node) for each in written_by(node)}
    inputs = enumerate(graph.graph.placeholders)
    return tuple(at for at, node in inputs if (storage_of(node) or 0) in written)


def _memory_of_inputs(graph: GraphModule) -> set[int]:
    memory = {storage_of(node) for node in graph.graph.placeholders}
    return {storage for storage in memory if storage is not None}


def needs_its_order(graph: GraphModule) -> bool:
    """Whether an error leaves other things done than eager's unless each call is made in its place.

    Where nothing is changed before the end, a graph that failed can be run eagerly; but not code
    that is not torch's, which someone may see run twice.
    """
    outside = _memory_of_inputs(graph)
    changed = foreign = False
    for node in graph.graph.nodes:
        if not node.op.startswith("call_") or node.meta.get("sets_state"):
            continue
        if is_foreign(node):
            if changed:
                return True
            foreign, changed = True, mutates(node)
        else:
            if foreign and may_raise(node):
                return True
            changed = changed or changes_outside(node, outside)
    return False


def draws_before_it_raises(graph: GraphModule) -> bool:
    """Whether random numbers may have been drawn by the time that a call in the graph raises, be it
    one of which that is known or not.
    """
    nodes = [node for node in graph.graph.nodes if node.op.startswith("call_")]
    drew = next((index for index, node in enumerate(nodes) if is_random(node)), None)
    return drew is not None and (nodes[drew] is not nodes[-1] or may_raise(nodes[drew]))
