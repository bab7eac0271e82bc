"""The backend that compiles nothing: the graph's own Python code."""

from collections.abc import Callable, Sequence
from typing import Any

from dynacap import log
from dynacap.backends.registry import register_backend
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
    for name, value in (("mode", mode), ("options", options)):
        if value is not None:
            log.warn_once(("eager", name), f"backend 'eager' has no use for {name}={value!r}")
    return graph_module.by_position()
