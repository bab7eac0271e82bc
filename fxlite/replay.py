"""Whether a graph that raised can be run again from its start."""

from enum import Enum

from dynacap.fxlite.effects import is_random, mutates
from dynacap.fxlite.module import GraphModule
from dynacap.fxlite.risks import (
    changes_outside,
    is_foreign,
    may_raise,
    raises_midway,
    storage_of,
)


class Replay(Enum):
    """Whether a region whose graph raised can be run again from its start."""

    ALWAYS = "the graph changes nothing"
    UNLESS_MEMORY = "it changes something only after all that raises, short of lack of memory"
    NEVER = "something was changed before"


def replay_of(graph: GraphModule) -> tuple[Replay, bool]:
    """How far a graph can be run again, and whether random numbers have to be drawn again then.

    The nodes that set torch's state are undone anyway.
    """
    changed = drew = rewinds = False
    outside = _memory_of_inputs(graph)
    for node in graph.graph.nodes:
        if not node.op.startswith("call_") or node.meta.get("sets_state"):
            continue
        if may_raise(node):
            if changed or raises_midway(node, outside):
                return Replay.NEVER, False
            rewinds = rewinds or drew
        drew = drew or is_random(node)
        changed = changed or changes_outside(node, outside)
    changed = changed or (drew and not rewinds)
    return Replay.UNLESS_MEMORY if changed else Replay.ALWAYS, rewinds


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
    """Whether random numbers may have been drawn by the time that a call in the graph raises."""
    nodes = [node for node in graph.graph.nodes if node.op.startswith("call_")]
    drew = [index for index, node in enumerate(nodes) if is_random(node)]
    return bool(drew) and any(map(may_raise, nodes[drew[0] :]))
