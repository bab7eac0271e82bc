"""What a check of guards costs, by what is guarded: one table, both checkers.

    OMP_NUM_THREADS=1 python benchmarks/bench_guards.py [--save]

Least time of many short runs, so that what else the machine does counts as little as it can. The
bare loop is taken off. The modules are `torch.nn.Linear`s in a `ModuleList`; of each the type, its
`forward`, the absence of an overriding attribute, `training`, four empty dicts of hooks and the
weight are guarded.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from machine import save
from rich.console import Console
from rich.table import Table

from dynacap.guards import (
    Checker,
    ClassAttr,
    ConstEq,
    DictItem,
    Guard,
    GuardSet,
    IdIs,
    InstanceDict,
    LacksKey,
    Length,
    Local,
    ProcessState,
    Source,
    Tensor,
    TypeIs,
    TypeOf,
)
from dynacap.guards.checker import PythonChecker
from dynacap.guards.fast import FastChecker

HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
Case = tuple[str, GuardSet, list[Source], tuple[object, ...]]


class Stack(torch.nn.Module):
    """So many small linear layers."""

    def __init__(self, count: int) -> None:
        super().__init__()
        linear = torch.nn.Linear
        self.layers = torch.nn.ModuleList([linear(2, 2, bias=False) for _ in range(count)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def module_guards(source: Source, module: torch.nn.Module) -> Iterator[Guard]:
    """What capture guards of a module and all below it."""
    fields = InstanceDict(source)
    forward = ClassAttr(TypeOf(source), "forward")
    yield TypeIs(source, type(module))
    yield IdIs(forward, type(module).forward)
    yield LacksKey(fields, "forward")
    yield ConstEq(DictItem(fields, "training"), module.training)
    for hooks in HOOKS:
        yield Length(DictItem(fields, hooks), 0)
    for name, parameter in module._parameters.items():
        if parameter is not None:
            yield Tensor.of(DictItem(DictItem(fields, "_parameters"), name), parameter)
    for name, child in module._modules.items():
        if child is not None:
            yield from module_guards(DictItem(DictItem(fields, "_modules"), name), child)


def tensor_case(count: int) -> Case:
    """So many tensor arguments, and torch's state."""
    tensors = [torch.randn(4, 4) for _ in range(count)]
    sources: list[Source] = [Local(i, f"x{i}") for i in range(count)]
    guards = GuardSet([ProcessState.current()])
    guards.update(Tensor.of(s, t) for s, t in zip(sources, tensors, strict=True))
    return (f"state and {count} tensors", guards, sources, tuple(tensors))


def module_case(count: int, with_tensors: bool) -> Case:
    """So many modules, with their parameters' metadata or without."""
    model = Stack(count)
    guards = GuardSet([ProcessState.current()])
    found = [guard for guard in module_guards(Local(0, "self"), model)]
    guards.update(g for g in found if with_tensors or g.kind != "tensor")
    slots = [g.source for g in found if isinstance(g, Tensor)]
    name = f"{count} modules" + ("" if with_tensors else ", parameters not checked")
    return (name, guards, slots, (model,))


def cases() -> Iterator[Case]:
    """All that is measured."""
    for count in (0, 1, 2, 20):
        yield tensor_case(count)
    for count in (10, 100, 400, 1600):
        yield module_case(count, True)
        yield module_case(count, False)


def least(run: Callable[[tuple[object, ...]], object], flat: tuple[object, ...]) -> float:
    """Microseconds of one call."""
    run(flat)
    started = time.perf_counter()
    run(flat)
    once = max(time.perf_counter() - started, 1e-7)
    repeats = max(1, int(1e-4 / once))
    best = min(_timed(run, flat, repeats) for _ in range(max(5, int(0.5 / (once * repeats)))))
    bare = min(_timed(len, flat, repeats) for _ in range(50))
    return (best - bare) / repeats * 1e6


def _timed(run: Callable[[Any], object], flat: tuple[object, ...], repeats: int) -> float:
    started = time.perf_counter()
    for _ in range(repeats):
        run(flat)
    return time.perf_counter() - started


def measure(case: Case) -> dict[str, float | str]:
    """One row."""
    name, guards, slots, flat = case
    makers: dict[str, Callable[[GuardSet, Sequence[Source]], Checker]] = {
        "c": FastChecker,
        "python": PythonChecker,
    }
    row: dict[str, float | str] = {"case": name, "guards": len(guards)}
    for label, maker in makers.items():
        started = time.perf_counter()
        checker = maker(guards, slots)
        row[f"{label}_make_ms"] = round((time.perf_counter() - started) * 1e3, 2)
        if checker.check(flat) is None:
            raise AssertionError(f"{name}: {checker.explain(flat)}")
        row[f"{label}_check_us"] = round(least(checker.check, flat), 3)
    return row


def main() -> None:
    """Measure, print, and on request save."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write results/bench_guards.json")
    options = parser.parse_args()
    rows = [measure(case) for case in cases()]
    table = Table(title="one check of guards")
    for heading in rows[0]:
        table.add_column(heading)
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console().print(table)
    if options.save:
        print(save("bench_guards", rows))


if __name__ == "__main__":
    main()
