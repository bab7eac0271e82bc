"""The backend that compiles nothing: the graph's own Python code."""

from collections.abc import Callable, Sequence
from typing import Any

from dynacap.backends.registry import register_backend, warn_of_unused
from dynacap.fxlite import GraphModule


@register_backend(name="eager")
def eager(
    graph_module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The generated function itself, with nothing in between."""
    warn_of_unused("eager", mode=mode, options=options)
    return graph_module.by_position()
