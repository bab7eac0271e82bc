"""Many threads call compiled functions while another changes what they are guarded by.

    python benchmarks/soak_threads.py [--threads 8] [--seconds 60]

A dozen compiled functions and modules are called with changing shapes; each result is compared
with eager Python's, computed in the same thread. Meanwhile one thread toggles ``train()`` and
``eval()``, replaces parameters, exchanges submodules, a global and an attribute, each time while no
call of the model is on its way. Nothing may be wrong or raise, and memory must stay flat.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from compilers import COMPILERS
from machine import save
from rich.console import Console
from soak import resident
from torch import Tensor, nn

FACTOR = 2


class Gate:
    """Many who read, or one who writes and goes first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._wanted = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._wanted)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._condition:
            self._wanted = True
            self._condition.wait_for(lambda: not self._readers)
            yield
            self._wanted = False
            self._condition.notify_all()


class Scaled(nn.Module):
    """Its way hangs on ``training`` and on an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.rate = 1.0

    def forward(self, x: Tensor) -> Any:
        y = self.first(x) * self.rate
        return self.second(torch.relu(y)) if self.training else y


class Breaks(Scaled):
    """The same, with a break in the middle."""

    def forward(self, x: Tensor) -> Any:
        y = self.first(x)
        torch._dynamo.graph_break()
        return self.second(y) * (2 if self.training else 3)


def plain(x: Tensor) -> Any:
    return x * 2 + x.sum(0)


def by_size(x: Tensor) -> Any:
    return x.flatten() * x.shape[0] if x.shape[0] > 3 else x - 1


def by_global(x: Tensor) -> Any:
    return x * FACTOR


def by_data(x: Tensor) -> Any:
    return x + 1 if x.sum() > 0 else x - 1


def containers(x: Tensor) -> Any:
    parts: dict[str, Any] = {"double": x * 2, "parts": [x + n for n in range(3)]}
    return parts, (parts["double"] + 1,)


def in_pieces(x: Tensor) -> Any:
    for number in range(2):
        x = x * 2 + number
        torch._dynamo.graph_break()
    return x - 1


def raises(x: Tensor) -> Any:
    try:
        return torch.cat([x, x[:, :1].expand(-1, 2)], dim=0)
    except RuntimeError as error:
        return type(error).__name__, x + 1


def with_number(x: Tensor) -> Any:
    return _with_default(x, by=x.shape[0] * 3)


def _with_default(x: Tensor, by: int = 3, *, then: float = 0.5) -> Any:
    return x * by + then


class Call:
    """One program, compiled and not, and who may use it when."""

    def __init__(self, program: Callable[..., Any]) -> None:
        self.program = program
        self.compiled = COMPILERS["dynacap"].compile(program)
        self.gate = Gate()


@dataclass
class Report:
    """What a soak found."""

    calls: int = 0
    changes: int = 0
    problems: list[str] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    @property
    def growth(self) -> float:
        """MiB from a third of the time on."""
        settled = self.memory[len(self.memory) // 3 :] or [0.0]
        return settled[-1] - settled[0]


def same(left: Any, right: Any) -> bool:
    """Whether two results are alike in type and value."""
    if isinstance(left, Tensor):
        return isinstance(right, Tensor) and left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def change(models: list[Call], shared: Call, chosen: random.Random) -> None:
    """One change of what a call is guarded by."""
    global FACTOR
    call = chosen.choice([*models, shared])
    with call.gate.writing():
        if call is shared:
            FACTOR = chosen.randint(1, 3)
            return
        model: Any = call.program
        match chosen.randrange(5):
            case 0:
                model.train(not model.training)
            case 1:
                model.first.weight = nn.Parameter(torch.randn(4, 4))
            case 2:
                model.first.bias.data = torch.randn(4)
            case 3:
                model.second = nn.Linear(4, 4)
            case 4:
                model.rate = chosen.choice([1.0, 0.5])


def soak(threads: int, seconds: float) -> Report:
    """Let them run."""
    report = Report()
    models = [Call(Scaled()), Call(Breaks()), Call(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))]
    shared = Call(by_global)
    functions = (plain, by_size, by_data, containers, in_pieces, raises, with_number, _with_default)
    calls = [*models, shared, *map(Call, functions)]
    until = time.monotonic() + seconds
    counting = threading.Lock()

    def work(number: int) -> None:
        chosen = random.Random(number)
        while time.monotonic() < until and not report.problems:
            call = chosen.choice(calls)
            x = torch.full((chosen.randint(1, 6), 4), chosen.random() - 0.5)
            try:
                with torch.no_grad(), call.gate.reading():
                    wanted, found = call.program(x), call.compiled(x)
                    if not same(wanted, found):
                        name = getattr(call.program, "__name__", type(call.program).__name__)
                        report.problems.append(f"{name}({tuple(x.shape)}): {found}, not {wanted}")
            except Exception as error:
                report.problems.append(f"{call.program}: {type(error).__name__}: {error}")
            with counting:
                report.calls += 1

    def disturb() -> None:
        chosen = random.Random(99)
        while time.monotonic() < until:
            change(models[:2], shared, chosen)
            report.changes += 1
            time.sleep(0.002)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    running.append(threading.Thread(target=disturb))
    for thread in running:
        thread.start()
    while time.monotonic() < until:
        report.memory.append(round(resident(), 2))
        time.sleep(seconds / 30)
    for thread in running:
        thread.join()
    COMPILERS["dynacap"].reset()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = soak(options.threads, options.seconds)
    Console().print(
        f"{found.calls} calls in {options.threads} threads, {found.changes} changes,"
        f" {len(found.problems)} problems, memory {found.growth:+.1f} MiB"
    )
    for problem in found.problems:
        Console().print(problem)
    facts = {"calls": found.calls, "changes": found.changes, "problems": found.problems}
    save("soak_threads", facts | {"threads": options.threads, "resident_mib": found.memory})
    raise SystemExit(bool(found.problems))


if __name__ == "__main__":
    main()
