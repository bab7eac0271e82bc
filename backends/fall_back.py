"""Compiled graphs that change nothing when they fail, and then run eagerly: who wants to know when.

A backend whose callables are such takes :func:`announced` for the graph's own code, so that what
the graph changes need not be kept as it was before each call, but only before those that fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dynacap.fxlite import GraphModule

_KEY = "fall_back"


@dataclass(eq=False)
class _FallBack:
    """Of one graph, and of its copies; ``sure`` while it is announced whatever happens."""

    sure: bool = True
    listeners: list[Callable[[], object]] = field(default_factory=list)


def announced(graph_module: GraphModule) -> Callable[..., Any]:
    """The graph's own code, which tells those who listen when it begins."""
    forward = graph_module.on_call
    fall_back = graph_module.meta.setdefault(_KEY, _FallBack())

    def eager(*args: Any) -> Any:
        for listener in fall_back.listeners:
            listener()
        return forward(*args)

    return eager


def withdraw(graph_module: GraphModule) -> None:
    """The graph's code may run unannounced."""
    if _KEY in graph_module.meta:
        graph_module.meta[_KEY].sure = False


def listen(graph_module: GraphModule, listener: Callable[[], object]) -> bool:
    """Have a function called when the graph's own code begins; False if that is not announced."""
    fall_back = graph_module.meta.get(_KEY)
    if fall_back is None or not fall_back.sure:
        return False
    fall_back.listeners.append(listener)
    return True
