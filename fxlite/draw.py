"""The graph as a picture: text in graphviz's DOT language, which any viewer of it can draw."""

from typing import TYPE_CHECKING

from dynacap.fxlite.node import Node, target_text
from dynacap.fxlite.printer import describe, example_value

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

_SHAPES = {
    "placeholder": "invhouse",
    "get_attr": "note",
    "output": "house",
}


def to_dot(graph: "Graph", title: str = "graph") -> str:
    """DOT source: a box for each node, an arrow for each use of a result."""
    lines = [f"digraph {_quoted(title)} {{", '  node [shape=box, fontname="monospace"];']
    for node in graph.nodes:
        shape = _SHAPES.get(node.op)
        shown = f", shape={shape}" if shape else ""
        lines.append(f"  {_quoted(node.name)} [label={_quoted(_label(node))}{shown}];")
    for node in graph.nodes:
        for used in node.all_input_nodes:
            lines.append(f"  {_quoted(used.name)} -> {_quoted(node.name)};")
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: Node) -> str:
    parts = [node.name]
    if node.op not in ("placeholder", "output"):
        parts.append(target_text(node.target))
    result = describe(example_value(node))
    return "\n".join([*parts, result] if result else parts)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
