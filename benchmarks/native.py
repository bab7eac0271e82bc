"""The native backend beside eager and inductor: time, time to the first result, memory.

    python benchmarks/native.py [--group ab] [-k TEXT] [--backend native] [--warm-only]
        [--minutes N]

Groups: (a) chains of pointwise operations, (b) what models are made of, (c) models, forward, (d)
models, training, (e) an optimizer's step, (f) batch 1, where overhead rules. Each case runs in
processes of its own: one for each compiler with empty caches, and one, with the caches that those
left, in which all sides take turns. `x bw` is the time over what the memory's bandwidth, measured
in the same run, allows. One table, and `results/native.json`, where a run of some cases replaces
those only, one by one as they end; `load` says how busy the machine was besides.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import RESULTS, save
from native_cases import CASES
from rich.console import Console
from rich.progress import track
from rich.table import Table

WORKER = Path(__file__).parent / "native_worker.py"
Found = dict[str, Any]


def measured(*arguments: str, caches: str = "", limit: int = 900) -> Found:
    """What the worker found; what went wrong under "error"."""
    environment = dict(os.environ)
    if caches:
        environment |= {
            "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor",
            "TRITON_CACHE_DIR": f"{caches}/triton",
            "DYNACAP_CACHE_DIR": f"{caches}/dynacap",
        }
    command = [sys.executable, str(WORKER), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=limit, check=False
        )
        found: Found = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": done.stderr.strip()[-600:] or f"ended with {done.returncode}"}
    except subprocess.TimeoutExpired:
        return {"error": f"took over {limit} s"}
    return found


def measure(name: str, options: argparse.Namespace) -> Found:
    """One case: cold on each side, then warm with the caches that this left."""
    with tempfile.TemporaryDirectory() as caches:
        os.mkdir(f"{caches}/dynacap", 0o700)
        found: Found = {"cold": {}}
        for side in () if options.warm_only else ("inductor", options.backend):
            found["cold"][side] = measured("first", side, name, caches=caches)
            found.setdefault("cached", {})[side] = measured("first", side, name, caches=caches)
        return found | measured("warm", options.backend, name, caches=caches)


def cells(one: Found, backend: str, bandwidth: float) -> list[str]:
    """One line of the table."""
    if "error" in one:
        return [one["error"].splitlines()[-1][:80]]
    eager, inductor, ours = (one["seconds"][side] for side in ("eager", "inductor", backend))
    bound = f"{ours / (one['moves'] / bandwidth):.2f}" if one["moves"] > 1e7 else ""
    cold = [
        first_seconds(one, kind, side)
        for kind in ("cold", "cached")
        for side in ("inductor", backend)
    ]
    peaks = "/".join(f"{max(peak, 0) / 1e6:.1f}" for peak in one["peak"].values())
    wrong = one["wrong"][backend]
    return [
        *(f"{seconds * 1e6:,.0f}" for seconds in (eager, inductor, ours)),
        f"{eager / ours:.2f}",
        f"{inductor / ours:.2f}",
        bound,
        *cold,
        peaks,
        "NO" if wrong else "yes",
    ]


def first_seconds(one: Found, kind: str, side: str) -> str:
    """Seconds to the first result, if they were measured."""
    seconds = one.get(kind, {}).get(side, {}).get("seconds")
    return "" if seconds is None else f"{seconds:.2f}"


def show(found: dict[str, Found], backend: str, bandwidth: float) -> None:
    """The table, and the geometric means of each group."""
    table = Table(title=f"{backend} beside eager and inductor; {bandwidth / 1e9:.1f} GB/s")
    table.add_column("case", no_wrap=True)
    for heading in (
        "eager µs", "inductor µs", f"{backend} µs", "eager /", "inductor /", "x bw", "cold ind s",
        "cold s", "cached ind s", "cached s", "peak MB e/i/n", "right",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for name, one in found.items():
        table.add_row(name, *cells(one, backend, bandwidth))
    console = Console(width=200)
    console.print(table)
    for group in sorted({name[0] for name in found}):
        ones = [one for name, one in found.items() if name[0] == group and "error" not in one]
        for other in ("eager", "inductor"):
            gains = [one["seconds"][other] / one["seconds"][backend] for one in ones]
            if gains:
                mean, least = statistics.geometric_mean(gains), min(gains)
                console.print(f"({group}) {mean:.2f} times {other}'s speed, at least {least:.2f}")


def earlier() -> dict[str, Found]:
    """What the results file holds."""
    path = RESULTS / "native.json"
    found: dict[str, Found] = json.loads(path.read_text())["results"] if path.exists() else {}
    return found


def chosen(options: argparse.Namespace) -> Iterator[str]:
    """The cases that were asked for, group by group in that order, until the time is over."""
    end = time.monotonic() + 60 * options.minutes
    for group in options.group:
        for name, case in CASES.items():
            if case.group == group and options.k in case.name and time.monotonic() < end:
                yield name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", default="abcdef", help="one or more of the letters")
    parser.add_argument("-k", default="", help="only cases whose name holds this text")
    parser.add_argument("--backend", default="native")
    parser.add_argument("--warm-only", action="store_true", help="no cold starts")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no case begins later")
    options = parser.parse_args()
    bandwidth = measured("bandwidth")["bytes_per_second"]
    found: dict[str, Found] = {}
    for name in track(chosen(options), "measuring", total=None):
        load = os.getloadavg()[0]
        found[name] = measure(name, options) | {"bandwidth": bandwidth, "load": load}
        if options.backend == "native":
            save("native", earlier() | found)
    show(found, options.backend, bandwidth)


if __name__ == "__main__":
    main()
