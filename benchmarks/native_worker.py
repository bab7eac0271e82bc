"""What `native.py` measures in a process of its own: the first call, calls by turns, bandwidth."""

from __future__ import annotations

import contextlib
import ctypes
import os
import statistics
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from native_cases import CASES, Case, Made, floats

import dynacap

ENGINE: Any = dynacap  # its names are loaded when they are asked for
ROUNDS = 15
SECONDS = 0.05  # a timing is of as many calls as take so long


def compiled(side: str, target: Any) -> Any:
    """The target under one compiler; `eager` leaves it as it is."""
    if side == "eager":
        return target
    if side == "inductor":
        return torch.compile(target)
    return ENGINE.compile(target, backend=side)


def grad_mode(case: Case) -> contextlib.AbstractContextManager[Any]:
    """Gradients are recorded in training only."""
    return contextlib.nullcontext() if case.train else torch.no_grad()


def first(side: str, name: str) -> dict[str, Any]:
    """Seconds to the first result, after eager has run once.

    `start` is what a small function took before: each compiler loads what it consists of, a matter
    of seconds for both, when it is first asked for anything.
    """
    case = CASES[name]
    start = start_up(side, train=case.train)
    with grad_mode(case):
        made = case.make()
        made.call(made.target)
        began = time.perf_counter()
        made.call(compiled(side, made.target))
        return {"seconds": time.perf_counter() - began, "start": start}


def start_up(side: str, *, train: bool) -> float:
    """Seconds for the first function that a process compiles, with a gradient if wanted."""
    x = torch.ones(3, requires_grad=train)
    began = time.perf_counter()
    result = compiled(side, lambda x: x + 1)(x)
    if train:
        result.sum().backward()
    return time.perf_counter() - began


def warm(backend: str, name: str) -> dict[str, Any]:
    """Medians of all sides, which take turns."""
    case = CASES[name]
    sides = ("eager", "inductor", backend)
    found: dict[str, Any] = {"first": {}, "wrong": {}}
    with grad_mode(case):
        ready: dict[str, tuple[Made, Any]] = {}
        for side in sides:
            start_up(side, train=case.train)
            made = case.make()
            target = compiled(side, made.target)
            start = time.perf_counter()
            ready[side] = made, target
            made.call(target)
            found["first"][side] = time.perf_counter() - start
        calls = {
            side: (lambda m=made, t=target: m.call(t)) for side, (made, target) in ready.items()
        }
        expected = list(floats(calls["eager"]()))
        for side in sides[1:]:
            found["wrong"][side] = difference(expected, list(floats(calls[side]())))
        found["seconds"] = by_turns(calls)
        found["peak"] = {side: peak_memory(call) for side, call in calls.items()}
        found["moves"] = ready["eager"][0].moves
    return found


def difference(expected: list[Any], found: list[Any]) -> str:
    """How results differ from eager's, with room for reordered sums; '' if they do not."""
    try:
        torch.testing.assert_close(found, expected, rtol=2e-3, atol=2e-4, equal_nan=True)
    except AssertionError as error:
        return str(error)[:300]
    return ""


def by_turns(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of a call on each side: the median over rounds, in which the sides take turns."""
    repeats = {}
    for side, call in calls.items():
        for _ in range(3):
            call()
        start = time.perf_counter()
        call()
        repeats[side] = max(1, int(SECONDS / (time.perf_counter() - start)))
    times: dict[str, list[float]] = {side: [] for side in calls}
    for _ in range(ROUNDS):
        for side, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[side]):
                call()
            times[side].append((time.perf_counter() - start) / repeats[side])
    return {side: statistics.median(one) for side, one in times.items()}


def peak_memory(call: Callable[[], Any]) -> int:
    """Bytes by which the process grows at most while a call runs."""
    with contextlib.suppress(OSError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    except OSError:
        return -1
    before = status("VmRSS")
    call()
    return max(status("VmHWM") - before, 0)


def status(field: str) -> int:
    """A line of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def bandwidth() -> dict[str, Any]:
    """What reading two large arrays and writing a third comes to, best of many."""
    a, b = torch.ones(8_000_000), torch.ones(8_000_000)
    out = torch.empty_like(a)
    seconds = []
    for _ in range(40):
        start = time.perf_counter()
        torch.add(a, b, out=out)
        seconds.append(time.perf_counter() - start)
    return {"bytes_per_second": 3 * 4 * a.numel() / statistics.median(seconds)}


def prepare() -> None:
    """What a process does before it measures."""
    warnings.simplefilter("ignore")
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads:
        torch.set_num_threads(int(threads))
