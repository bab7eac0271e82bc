"""Drops nodes whose results no one uses, unless someone could notice that they are gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from dynacap.fxlite.effects import is_impure
from dynacap.fxlite.node import Node
from dynacap.fxlite.passes.base import Pass

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph


class DeadCodeElimination(Pass):
    """Backwards through the graph, so that what only dead nodes used goes in the same sweep.

    What changes an argument or draws random numbers stays.
    """

    name: ClassVar[str] = "dce"

    def __init__(self, is_impure: Callable[[Node], bool] | None = None) -> None:
        self._given = is_impure

    def apply(self, graph: "Graph") -> bool:
        keep = self._given or is_impure
        changed = False
        for node in reversed(graph.nodes):
            if node.users or node.op in ("placeholder", "output") or keep(node):
                continue
            graph.erase_node(node)
            changed = True
        return changed
