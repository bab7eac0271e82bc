"""Passes: a valid graph in, a valid graph out.  One file each, found by name."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from dynacap.errors import GraphError
from dynacap.fxlite.passes.base import Pass
from dynacap.fxlite.passes.dce import DeadCodeElimination

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

PASSES: dict[str, type[Pass]] = {}


def register_pass(kind: type[Pass]) -> type[Pass]:
    """Make a pass known by its ``name``."""
    if not kind.name or PASSES.get(kind.name, kind) is not kind:
        raise GraphError(
            f"cannot register pass {kind.__qualname__}: its name {kind.name!r} is empty or taken;"
            " give the class a name of its own"
        )
    PASSES[kind.name] = kind
    return kind


def run_passes(graph: "Graph", names: Iterable[str], *, lint: bool = False) -> bool:
    """Run passes by name, in order; whether any changed the graph."""
    changed = False
    for name in names:
        if name not in PASSES:
            raise GraphError(f"no pass is called {name!r}; there are: {', '.join(sorted(PASSES))}")
        changed |= PASSES[name]().apply(graph)
        if lint:
            graph.lint()
    return changed


register_pass(DeadCodeElimination)
