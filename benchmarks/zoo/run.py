"""Run an entry of the zoo, compiled or not, and describe what came out; measure what it took."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from dynacap.testing import Branch, Snapshot, Tolerance, differences
from dynacap.testing.observe import backward
from zoo.entry import AnyFunction, Built, Entry

Compile = Callable[[AnyFunction], AnyFunction]
Counters = Callable[[], Mapping[str, Any]]


@dataclass
class Result:
    """What became of one model in one mode under one compiler."""

    name: str
    mode: str
    right: bool
    problems: list[str] = field(default_factory=list)
    graphs: int = 0
    breaks: int = 0
    ops: int = 0
    skipped: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    eager_s: float = 0.0
    cold_s: float = 0.0


def modes(entry: Entry) -> list[str]:
    """The modes in which an entry is run."""
    return ["eval", "train"] if entry.train else ["eval"]


def observe(entry: Entry, mode: str, compile: Compile | None) -> tuple[Branch, float]:
    """Build and run it; describe results, parameters, buffers and gradients; CPU seconds."""
    train = mode == "train"
    built = entry.build(train)
    target = compile(built.model) if compile else built.model
    torch.manual_seed(11)
    gc.collect()  # a collection of all that was loaded is no part of a first call, but of chance
    with torch.set_grad_enabled(train or entry.grad_in_eval):
        start = time.process_time()
        results = built.drive(target)
        seconds = time.process_time() - start
        return describe(built, results, train), seconds


def describe(built: Built, results: Any, train: bool) -> Branch:
    """All that a run left behind."""
    taken = Snapshot()
    owner = built.state if built.state is not None else built.model
    parts = {"result": taken.describe(results, "result")}
    if isinstance(owner, torch.nn.Module):
        named = {**dict(owner.named_parameters()), **dict(owner.named_buffers())}
        parts["state"] = taken.describe(named, "state")
    if train:
        parts["gradients"] = backward(taken)
    parts["random"] = taken.describe(torch.rand(1), "random")
    return Branch("run", parts)


def measure(entry: Entry, mode: str, compile: Compile, counters: Counters) -> Result:
    """Run it eager and compiled, and compare."""
    expected, eager_seconds = observe(entry, mode, None)
    before = counters()
    found, cold_seconds = observe(entry, mode, compile)
    after = counters()
    problems = list(differences(expected, found, tolerance=Tolerance(2.0)))
    gained = {k: after.get(k, 0) - before.get(k, 0) for k in ("graphs", "breaks", "ops", "skipped")}
    earlier = before.get("reasons", {})
    reasons = {k: n - earlier.get(k, 0) for k, n in after.get("reasons", {}).items()}
    return Result(
        entry.name,
        mode,
        not problems,
        problems[:8],
        **gained,
        reasons={k: n for k, n in reasons.items() if n},
        eager_s=round(eager_seconds, 4),
        cold_s=round(cold_seconds, 4),
    )
