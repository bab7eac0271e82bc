"""The graph: nodes, graph, graph module, interpreter, passes, printers."""

if __name__ != "dynacap.fxlite":  # a second copy under the folder's own name would not be equal
    raise ImportError("import this package as dynacap.fxlite, not as fxlite")

from dynacap.errors import GraphError
from dynacap.fxlite.draw import to_dot
from dynacap.fxlite.graph import Graph
from dynacap.fxlite.interpreter import Interpreter
from dynacap.fxlite.module import GraphModule
from dynacap.fxlite.node import Node, map_aggregate, map_arg
from dynacap.fxlite.passes import run_passes
from dynacap.fxlite.printer import table

__all__ = [
    "Graph",
    "GraphError",
    "GraphModule",
    "Interpreter",
    "Node",
    "map_aggregate",
    "map_arg",
    "run_passes",
    "table",
    "to_dot",
]
