"""The compilers that the benchmarks set side by side: how to compile, count and forget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo

import dynacap

ENGINE: Any = dynacap  # its names are loaded when they are asked for


@dataclass(frozen=True)
class Compiler:
    """A compiler under a name."""

    name: str
    compile: Callable[..., Any]
    counters: Callable[[], Mapping[str, Any]]
    reset: Callable[[], None]


def torch_counters() -> Mapping[str, Any]:
    """torch.compile's own counts, under dynacap's names."""
    counters = torch._dynamo.utils.counters
    reasons = {k.split("\n")[0][:100]: v for k, v in counters["graph_break"].items()}
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "ops": counters["stats"]["calls_captured"],
        "breaks": sum(counters["graph_break"].values()),
        "reasons": reasons,
    }


COMPILERS = {
    "dynacap": Compiler(
        "dynacap",
        lambda function, **options: ENGINE.compile(function, backend="eager", **options),
        lambda: dict(ENGINE.counters()),
        lambda: ENGINE.reset(),
    ),
    "torch": Compiler(
        "torch.compile(backend='eager')",
        lambda function, **options: torch.compile(function, backend="eager", **options),
        torch_counters,
        torch._dynamo.reset,
    ),
    "eager": Compiler("eager", lambda function: function, dict, lambda: None),
}
