"""What dynacap costs per warm call, and to capture, beside torch.compile(backend="eager").

    python benchmarks/overhead.py [--quick] [--only dynacap|torch] [--attributes]

Warm: the time of a call less the time of the bare operations (the same tensor operations in a plain
loop, without modules), for functions of 2 and 20 tensors, modules of 10 to 1,600 submodules with a
parameter each, and the same with attributes and containers alone (a forward that reads them and
does one operation; without a Python list in each submodule and with one; `--attributes` measures
these only), a ResNet-18 (its guards alone, too, as those of attributes), a function of symbolic
sizes (dynamic=True), one with a graph break, and one with 512 entries (the one that ran last, and
all by turns). Cold: the first call of a transformer of 1, 4, 16 and 64 layers.
All sides take turns within one process, and medians are shown: CPU time, wall time in brackets.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

# Threads that spin while they wait would be counted as work; must be set before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from compilers import COMPILERS, ENGINE
from machine import save
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from torch import Tensor, nn

from dynacap.compiled_module import call_module
from dynacap.guards import Checker, GuardSet, Tensor as TensorGuard
from dynacap.guards.choose import make_checker

Call = Callable[[], Any]
SIDES = ("dynacap", "torch")


@dataclass
class Timing:
    """Seconds for one thing on one side, medians over the rounds."""

    case: str
    side: str
    cpu: float
    wall: float


@dataclass
class Case:
    """One warm case: the bare operations, and the program that is compiled.

    ``calls`` are the arguments that it is called with by turns, each before it is timed, too.
    """

    name: str
    bare: Call
    program: Callable[..., Any]
    args: tuple[Any, ...]
    calls: tuple[tuple[Any, ...], ...] = ()
    dynamic: bool | None = None


class Scale(nn.Module):
    """A submodule with one parameter and one operation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Plain(nn.Module):
    """A submodule without parameters: attributes, a dict, a tuple or a list."""

    def __init__(self, number: int, rates: Sequence[float]) -> None:
        super().__init__()
        self.number = number
        self.rates = rates
        self.table = {"scale": 2}

    def forward(self, total: float) -> float:
        if self.training:
            return total
        return total + self.rates[1] * self.table["scale"] * self.number


class Attributes(nn.Module):
    """Reads what its submodules have, and does one operation."""

    def __init__(self, count: int, lists: bool) -> None:
        super().__init__()
        rates = [0.5, 0.25]
        self.parts = nn.ModuleList(
            Plain(number, list(rates) if lists else tuple(rates)) for number in range(count)
        )

    def forward(self, x: Tensor) -> Tensor:
        total = 0.0
        for part in self.parts:
            total = part(total)
        return x * total


class Residual(nn.Module):
    """The basic block of a ResNet."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        stride = 1 if before == width else 2
        self.conv1 = nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        self.shortcut: nn.Module = nn.Identity()
        if stride == 2:
            conv = nn.Conv2d(before, width, 1, stride, bias=False)
            self.shortcut = nn.Sequential(conv, nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Any:
        y = nn.functional.relu(self.norm1(self.conv1(x)))
        return nn.functional.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> nn.Module:
    """ResNet-18, narrow, so that the convolutions do not hide what is around them."""
    widths = (8, 8, 16, 32, 64)
    blocks = [
        Residual(before if first else width, width)
        for before, width in itertools.pairwise(widths)
        for first in (True, False)
    ]
    stem = [nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks, *head)


class Block(nn.Module):
    """A transformer layer in plain operations."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def chain(*tensors: Tensor) -> Tensor:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


def add_two(a: Tensor, b: Tensor) -> Tensor:
    return a + b


# fmt: off
def add_twenty(a: Tensor, b: Tensor, c: Tensor, d: Tensor, e: Tensor, f: Tensor, g: Tensor,
               h: Tensor, i: Tensor, j: Tensor, k: Tensor, m: Tensor, n: Tensor, o: Tensor,
               p: Tensor, q: Tensor, r: Tensor, s: Tensor, t: Tensor, u: Tensor) -> Tensor:
    return a + b + c + d + e + f + g + h + i + j + k + m + n + o + p + q + r + s + t + u
# fmt: on


def broken(x: Tensor) -> Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y * 2


def windows(x: Tensor, y: Tensor) -> Tensor:
    return x.view(x.shape[0] // 2, 2) + y


def warm_cases(entries: int) -> Iterator[Case]:
    """The warm cases, freshly made."""
    for count, function in ((2, add_two), (20, add_twenty)):
        tensors = tuple(torch.ones(4) for _ in range(count))
        yield Case(f"{count} tensors", functools.partial(chain, *tensors), function, tensors)
    for count in (10, 100, 400, 1600):
        model = nn.Sequential(*(Scale() for _ in range(count))).eval()
        weights, x = list(model.parameters()), torch.ones(4)
        yield Case(f"{count} submodules", functools.partial(multiply, x, weights), model, (x,))
    sized = torch.ones(8), torch.ones(4, 2)
    yield Case("dynamic sizes", lambda: sized[0].view(4, 2) + sized[1], windows, sized, (), True)
    yield from attribute_cases()
    x = torch.ones(4)
    image = torch.ones(1, 3, 16, 16)
    resnet = resnet18().eval()
    yield Case("ResNet-18", graph_of(resnet, image), resnet, (image,))
    yield Case("one graph break", lambda: (x + 1) * 2, broken, (x,))
    calls = tuple((x, f"flag {number}") for number in range(entries))
    turns = itertools.cycle(calls)
    yield Case(f"{entries} entries, the last", lambda: x + 1, flagged, calls[-1], calls)
    yield Case(f"{entries}, by turns", lambda: next(turns)[0] + 1, flagged, (), calls)


def attribute_cases() -> Iterator[Case]:
    """Attributes and containers alone, without a list in each module and with one."""
    x = torch.ones(4)
    for lists in (False, True):
        for count in (100, 400, 1600):
            name = f"attributes of {count}" + (", lists" if lists else "")
            yield Case(name, lambda: x * 2.5, Attributes(count, lists).eval(), (x,))


def graph_of(model: nn.Module, *args: Any) -> Call:
    """The operations of a model, one after the other, without the model."""
    seen: list[Call] = []

    def keep(graph: Any, inputs: Any) -> Callable[..., Any]:
        forward: Callable[..., Any] = graph.forward
        seen.append(functools.partial(forward, *inputs))
        return forward

    with torch.no_grad():
        ENGINE.compile(model, backend=keep, fullgraph=True)(*args)
    return seen[0]


def flagged(x: Tensor, flag: str) -> Tensor:
    return x - 1 if flag == "down" else x + 1


def multiply(x: Tensor, weights: list[nn.Parameter]) -> Tensor:
    for weight in weights:
        x = x * weight
    return x


def clock(call: Call, repeat: int) -> tuple[float, float]:
    """CPU and wall seconds of one call, averaged over a block."""
    cpu, wall = time.process_time_ns(), time.perf_counter_ns()
    for _ in range(repeat):
        call()
    spent = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    return spent[0] / repeat / 1e9, spent[1] / repeat / 1e9


def medians(case: str, calls: dict[str, Call], rounds: int, block: float) -> list[Timing]:
    """Time all sides in turns; one block lasts about `block` seconds."""
    repeats = {}
    for side, call in calls.items():
        for _ in range(20):
            call()
        repeats[side] = max(1, int(block / max(clock(call, 20)[1], 1e-7)))
    taken: dict[str, list[tuple[float, float]]] = {side: [] for side in calls}
    for _ in range(rounds):
        for side, call in calls.items():
            taken[side].append(clock(call, repeats[side]))
    return [
        Timing(case, side, *(statistics.median(column) for column in zip(*found, strict=True)))
        for side, found in taken.items()
    ]


def time_warm(case: Case, sides: list[str], rounds: int) -> list[Timing]:
    """Warm calls of one case on all sides."""
    calls: dict[str, Call] = {"bare": case.bare}
    limit = len(case.calls) + 8
    limits: dict[str, Any] = {"recompile_limit": limit, "accumulated_recompile_limit": limit}
    with torch.no_grad(), ENGINE.config.patch(**limits), torch._dynamo.config.patch(limits):
        for side in ("eager", *sides):
            target = (
                case.program
                if side == "eager"
                else COMPILERS[side].compile(case.program, dynamic=case.dynamic)
            )
            for args in case.calls:
                target(*args)
            calls[side] = (
                functools.partial(target, *case.args) if case.args else in_turn(target, case.calls)
            )
        return medians(case.name, calls, rounds, block=0.01)


def in_turn(target: Callable[..., Any], calls: tuple[tuple[Any, ...], ...]) -> Call:
    turns = itertools.cycle(calls)
    return lambda: target(*next(turns))


def guards_of(model: nn.Module, *args: Any) -> tuple[Checker, tuple[Any, ...]]:
    """The checker of a model's one entry, and what it checks."""
    with torch.no_grad():
        compiled: Any = ENGINE.compile(model, backend="eager")
        compiled(*args)
        (place,) = compiled._dynacap_session.places()
        checker: Checker = place.table.entries[0].checker
        return checker, (call_module, model, args, {})


def time_check(name: str, checker: Checker, flat: tuple[Any, ...], rounds: int) -> list[Timing]:
    """A warm check as the table of entries makes it: nothing is called."""
    with torch.no_grad():
        if checker.check(flat) is None:
            raise RuntimeError(f"guards that do not hold: {checker.explain(flat)}")
        call = functools.partial(checker.check, flat)
        return medians(name, {"dynacap": call}, rounds, block=0.01)


def guards_alone(rounds: int) -> list[Timing]:
    """The guards of a ResNet-18, without those on parameters and with them."""
    checker, flat = guards_of(resnet18().eval(), torch.ones(1, 3, 16, 16))
    own = "self["  # what parameters and buffers are called
    without = GuardSet(
        g for g in checker.guards if type(g) is not TensorGuard or own not in g.subject()
    )
    bare, full = make_checker(without, ()), make_checker(checker.guards, checker.slots)
    return [
        *time_check("guards alone, ResNet-18, without parameters", bare, flat, rounds),
        *time_check("guards alone, ResNet-18", full, flat, rounds),
    ]


def attribute_guards(rounds: int) -> list[Timing]:
    """The guards of attributes and containers alone."""
    timings = []
    for case in attribute_cases():
        checker, flat = guards_of(case.program, *case.args)  # type: ignore[arg-type]
        timings += time_check(f"guards alone, {case.name}", checker, flat, rounds)
    return timings


def time_cold(layers: int, sides: list[str], rounds: int) -> list[Timing]:
    """First calls of a transformer, each time on a fresh model and after a reset."""
    taken: dict[str, list[tuple[float, float]]] = {side: [] for side in ("eager", *sides)}
    x = torch.randn(2, 8, 32)
    with torch.no_grad():
        for _ in range(rounds):
            for side, found in taken.items():
                COMPILERS[side].reset()
                model = nn.Sequential(*(Block() for _ in range(layers))).eval()
                target = COMPILERS[side].compile(model)
                found.append(clock(functools.partial(target, x), 1))
    return [
        Timing(f"{layers} layers", side, *(statistics.median(c) for c in zip(*found, strict=True)))
        for side, found in taken.items()
    ]


@contextmanager
def settled() -> Iterator[None]:
    """One thread, so that what is measured is the compiler and not the pool of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def amount(seconds: float, warm: bool) -> str:
    return f"{seconds * 1e6:.1f} µs" if warm else f"{seconds:.3f} s"


def show(timings: list[Timing], sides: list[str]) -> None:
    """Print one table: per case what each side takes over the base, and the ratio."""
    table = Table(title="over the bare operations (warm), for the first call (cold): CPU (wall)")
    for heading in ("case", "bare", "eager", *sides, "dynacap / torch"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    cases: dict[str, dict[str, Timing]] = {}
    for one in timings:
        cases.setdefault(one.case, {})[one.side] = one
    for name, found in cases.items():
        warm = "bare" in found
        base = found["bare"] if warm else None
        over = {s: (t.cpu - (base.cpu if base else 0), t.wall - (base.wall if base else 0))
                for s, t in found.items()}  # fmt: skip
        cells = [
            f"{amount(over[s][0], warm)} ({amount(over[s][1], warm)})" for s in ("eager", *sides)
        ]
        ratio = f"{over['dynacap'][0] / over['torch'][0]:.3f}" if len(sides) == 2 else "-"
        table.add_row(name, amount(base.cpu, True) if base else "-", *cells, ratio)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no deep models")
    parser.add_argument("--only", choices=SIDES)
    parser.add_argument("--attributes", action="store_true", help="attributes and containers alone")
    options = parser.parse_args()
    sides = [options.only] if options.only else list(SIDES)
    rounds = 5 if options.quick else 21
    depths: tuple[int, ...] = (1, 4) if options.quick else (1, 4, 16, 64)
    entries = 64 if options.quick else 512
    cases = list(attribute_cases() if options.attributes else warm_cases(entries))
    timings: list[Timing] = []
    with settled(), Progress(transient=True) as progress:
        depths = () if options.attributes else depths
        task = progress.add_task("measuring", total=1 + len(cases) + len(depths))
        alone = attribute_guards(rounds)
        if not options.attributes:
            alone += guards_alone(rounds)
        progress.advance(task)
        for case in cases:
            timings += time_warm(case, sides, rounds)
            progress.advance(task)
        for layers in depths:
            timings += time_cold(layers, sides, 3)
            progress.advance(task)
    show(timings, sides)
    for one in alone:
        Console().print(f"{one.case}: {amount(one.cpu, warm=True)}")
    version = ".".join(platform.python_version_tuple()[:2])
    name = f"overhead_attributes_{version}" if options.attributes else "overhead"
    save(name, [asdict(one) for one in (*timings, *alone)])


if __name__ == "__main__":
    main()
