"""What every pass is."""

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph


class Pass:
    """A rewrite of a graph, with the name that it goes by."""

    name: ClassVar[str] = ""

    def apply(self, graph: "Graph") -> bool:
        """Rewrite ``graph`` in place; whether anything changed."""
        raise NotImplementedError
