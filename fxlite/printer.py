"""The graph as a table in plain text: what runs, on what, of which shape, from which line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dynacap.fxlite.locations import innermost, raw_location
from dynacap.fxlite.node import Node, format_arg, target_text

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

HEADER = ("op", "name", "target", "arguments", "result", "from")
_SHORT_DTYPES = {
    "float": "f",
    "bfloat": "bf",
    "int": "i",
    "uint": "u",
    "complex": "c",
}
_WIDEST = 60


def rows(graph: "Graph") -> list[tuple[str, str, str, str, str, str]]:
    """A row of texts for each node, under :data:`HEADER`."""
    return [_row(node) for node in graph.nodes]


def table(graph: "Graph") -> str:
    """The rows, aligned."""
    cells = [tuple(_shortened(cell) for cell in row) for row in (HEADER, *rows(graph))]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADER))]
    used = [column for column, width in enumerate(widths) if any(row[column] for row in cells[1:])]
    lines = ["  ".join(row[column].ljust(widths[column]) for column in used) for row in cells]
    rule = "  ".join("-" * widths[column] for column in used)
    return "\n".join(line.rstrip() for line in [lines[0], rule, *lines[1:]])


def _row(node: Node) -> tuple[str, str, str, str, str, str]:
    place = innermost(raw_location(node.meta))
    arguments = [format_arg(arg) for arg in node.args]
    arguments += [f"{key}={format_arg(value)}" for key, value in node.kwargs.items()]
    return (
        node.op,
        node.name,
        target_text(node.target),
        ", ".join(arguments),
        describe(example_value(node)),
        str(place) if place is not None else "",
    )


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def example_value(node: Node) -> Any:
    """The value that stands for the node's result, usually a fake tensor; None if not known."""
    value = node.meta.get("example_value")
    return node.meta.get("val") if value is None else value


def describe(value: Any) -> str:
    """A value in a few letters: ``f32[2, 3]`` for a tensor."""
    if value is None:
        return ""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{short_dtype(value.dtype)}{_sizes(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(describe(item) or 'None' for item in value)})"
    if isinstance(value, (bool, int, float, str)):
        return repr(value)
    kind = type(value)
    return str(value) if kind.__name__.startswith("Sym") else kind.__name__


def short_dtype(dtype: object) -> str:
    """``f32`` for ``torch.float32`` or numpy's, and so on."""
    name = str(dtype).removeprefix("torch.")
    letters = name.rstrip("0123456789")
    return _SHORT_DTYPES.get(letters, letters) + name[len(letters) :]


def _sizes(shape: Sequence[object]) -> str:
    return f"[{', '.join(str(size) for size in shape)}]"
