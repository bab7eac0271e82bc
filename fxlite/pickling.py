"""A graph as flat records, which is what pickle stores.

Nodes link to each other in both directions, so pickling them one inside the other would recurse
once for each; in a record a node is the number of its place.  Targets go by qualified name where
they have one (operators of ``torch.ops`` cannot be pickled themselves).  Of ``meta`` only plain
data is kept: fake tensors belong to the process that made them.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynacap.errors import GraphError, UserFrame
from dynacap.fxlite.names import qualified_name
from dynacap.fxlite.node import Node, map_aggregate

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

_PLAIN = (str, bytes, int, float, complex, bool, type(None), UserFrame)


@dataclass(frozen=True, slots=True)
class Place:
    """A node inside the arguments of another, by its number."""

    index: int


@dataclass(frozen=True, slots=True)
class ByName:
    """A function or class, by the name under which it is found."""

    name: str


@dataclass(frozen=True, slots=True)
class Record:
    """One node."""

    op: str
    name: str
    target: Any
    args: Any
    kwargs: Any
    type: Any
    meta: dict[str, Any]


def to_records(graph: "Graph") -> list[Record]:
    """The nodes of ``graph`` in order."""
    places = {node: Place(index) for index, node in enumerate(graph.nodes)}

    def store(leaf: Any) -> Any:
        if isinstance(leaf, Node):
            return places[leaf]
        return _named(leaf) if callable(leaf) else leaf

    return [
        Record(
            node.op,
            node.name,
            _named(node.target),
            map_aggregate(node.args, store),
            map_aggregate(node.kwargs, store),
            node.type,
            {key: value for key, value in node.meta.items() if _is_plain(value)},
        )
        for node in graph.nodes
    ]


def from_records(records: list[Record], make: "Callable[[], Graph]") -> "Graph":
    """The graph again."""
    graph = make()
    nodes: list[Node] = []

    def load(leaf: Any) -> Any:
        if isinstance(leaf, Place):
            return nodes[leaf.index]
        return _found(leaf) if isinstance(leaf, ByName) else leaf

    for record in records:
        node = graph.create_node(
            record.op,
            load(record.target),
            map_aggregate(record.args, load),
            map_aggregate(record.kwargs, load),
            record.name,
            record.type,
        )
        graph.rename(node, record.name)
        node.meta = dict(record.meta)
        nodes.append(node)
    return graph


def _named(value: Any) -> Any:
    name = None if isinstance(value, str) else qualified_name(value)
    return value if name is None else ByName(name)


def _found(stored: ByName) -> Any:
    """The object of that name: import as much of it as is a module, look the rest up."""
    parts = stored.name.split(".")
    value: Any = importlib.import_module(parts[0])
    for index, part in enumerate(parts[1:], start=2):
        if not hasattr(value, part):
            try:
                importlib.import_module(".".join(parts[:index]))
            except ImportError:
                raise GraphError(
                    f"cannot load a graph that calls {stored.name}: there is no"
                    f" {'.'.join(parts[:index])} here; load it with the versions that saved it"
                ) from None
        value = getattr(value, part)
    return value


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_plain(item) for item in value)
    if isinstance(value, dict):
        return all(_is_plain(item) for item in (*value, *value.values()))
    return isinstance(value, _PLAIN)
