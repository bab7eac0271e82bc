"""A large graph as a function with a small frame.

CPython keeps frames in chunks of 16 KB.  One that does not fit into what is left of a chunk has new
memory mapped on each call, which takes longer than a hundred operations on small tensors.  So the
function of a large graph takes its inputs as one tuple, and results whose lifetimes do not meet
share a local variable.  It stands beside the readable source, line for line.
"""

from typing import TYPE_CHECKING

from dynacap.fxlite.codegen import PythonCode, Writer
from dynacap.fxlite.node import Node

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

MANY_LOCALS = 96
_INPUTS = "__inputs__"


def generate_with_few_locals(graph: "Graph") -> PythonCode | None:
    """The source of such a function; None where the readable one does as well."""
    if graph.node_count < MANY_LOCALS or not all(map(_is_by_position, graph.nodes)):
        return None
    return _FewLocals(graph).write()


def _is_by_position(node: Node) -> bool:
    plain = not node.args and isinstance(node.target, str) and not node.target.startswith("*")
    return node.op != "placeholder" or plain


class _FewLocals(Writer):
    def __init__(self, graph: "Graph") -> None:
        self.local: dict[Node, str] = {}
        self.inputs = 0
        self.free: list[str] = []
        super().__init__(graph, "self", self.local)

    def write(self) -> PythonCode:
        """All of it."""
        code = super().write()
        code.parameters[:] = [f"*{_INPUTS}"]
        return code

    def parameter(self, node: Node) -> str:
        """Behind those before it in the tuple."""
        self.local[node] = f"{_INPUTS}[{self.inputs}]"
        self.inputs += 1
        return ""

    def kept(self, node: Node) -> str:
        """A local that is free, or a new one, called as the node."""
        name = self.local[node] = self.free.pop() if self.free else node.name
        return name

    def released(self, nodes: list[Node]) -> str:
        """Results only: the caller holds the inputs."""
        names = [self.local[node] for node in nodes if node.op != "placeholder"]
        self.free += names
        return f"{' = '.join(names)} = None" if names else ""
