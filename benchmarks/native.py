"""The native backend beside eager and inductor: time, time to the first result, memory.

    python benchmarks/native.py [--group ab] [-k TEXT] [--backend native] [--warm-only]
        [--minutes N] [--resume HOURS] [--show]

Groups: (a) chains of pointwise operations, (b) what models are made of, (c) models, forward, (d)
models, training, (e) an optimizer's step, (f) batch 1, where overhead rules. Each case is measured
in forked processes, from one that has imported torch and has computed nothing: each compiler with
empty caches, the backend with those that this left, and with entries that it was asked to keep
(`config.keep_captures`), and all sides by turns, inductor with what it left. The first call is
timed after a small function was compiled, so that no imports are counted; `x bw` is the time over
what the memory's bandwidth, measured in the same run, allows.

Threads that wait for work spin for a while, as OpenMP has it by default.  On a machine that others
use they had better sleep, which costs those most who wake threads for little:
OMP_WAIT_POLICY=PASSIVE measures that, into a file of its own.

Tables, and `results/native.json` (`native_passive.json`), where a case replaces its older self as
soon as it ends; `load` says how busy the machine was before.  `--resume 3` keeps what is younger
than three hours, so that a run which was cut off goes on where it stopped; `--show` measures
nothing, and prints the tables.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import native_worker as worker
from isolate import isolated
from machine import RESULTS, save
from native_cases import CASES
from native_tables import FIRSTS, show

from dynacap.config import config

Found = dict[str, Any]
KEPT = "native_passive" if os.environ.get("OMP_WAIT_POLICY", "").upper() == "PASSIVE" else "native"
LIMIT = 300  # seconds for one measurement


def measured(measure: Callable[[], Found], caches: str = "", *, keep: bool = False) -> Found:
    """What a measurement in a process of its own finds; what went wrong under "error"."""

    def work() -> Found:
        os.setsid()  # what inductor starts is not a terminal's
        if caches:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = f"{caches}/inductor"
            os.environ["TRITON_CACHE_DIR"] = f"{caches}/triton"
            config.cache_dir = f"{caches}/dynacap"
            config.keep_captures = keep
        worker.prepare()
        try:
            return measure()
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:600]}

    found, status = isolated(work, LIMIT)
    return found or {"error": f"ended with {status} (14: took over {LIMIT} s)"}


def measure(name: str, backend: str, *, warm_only: bool) -> Found:
    """One case: cold on each side, then with the caches that this left."""
    first = partial(partial, worker.first)
    with tempfile.TemporaryDirectory() as caches:
        os.mkdir(f"{caches}/dynacap", 0o700)
        found: Found = {kind: {} for kind in FIRSTS}
        if not warm_only:
            found["cold"]["inductor"] = measured(first("inductor", name), caches)
            found["cold"][backend] = measured(first(backend, name), caches)
            found["cached"][backend] = measured(first(backend, name), caches)
            measured(first(backend, name), caches, keep=True)
            found["kept"][backend] = measured(first(backend, name), caches, keep=True)
        found |= measured(partial(worker.warm, backend, name), caches)
        if warm_only:
            was = earlier().get(name, {})
            found |= {kind: was.get(kind, {}) for kind in FIRSTS}
        elif "first" in found:
            for kind in ("cached", "kept"):
                found[kind]["inductor"] = {"seconds": found["first"]["inductor"]}
        return found


def earlier() -> dict[str, Found]:
    """What the results file holds."""
    path = RESULTS / f"{KEPT}.json"
    found: dict[str, Found] = json.loads(path.read_text())["results"] if path.exists() else {}
    return {name: found[name] for name in CASES if name in found}


def young(one: Found, hours: float) -> bool:
    """Whether a result is whole, and not older."""
    whole = "error" not in one and one.get("kept")
    return bool(whole) and time.time() - one.get("at", 0) < 3600 * hours


def chosen(options: argparse.Namespace) -> Iterator[str]:
    """The cases that were asked for, group by group in that order, until the time is over."""
    end = time.monotonic() + 60 * options.minutes
    there = earlier()
    for group in options.group:
        for name, case in CASES.items():
            if case.group != group or options.k not in case.name:
                continue
            if young(there.get(name, {}), options.resume):
                continue
            if time.monotonic() > end:
                return
            yield name


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", default="abcdef", help="one or more of the letters")
    parser.add_argument("-k", default="", help="only cases whose name holds this text")
    parser.add_argument("--backend", default="native")
    parser.add_argument(
        "--warm-only", action="store_true", help="no cold starts: they stay as they were"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="no case begins later")
    parser.add_argument("--resume", type=float, default=0, help="keep what is so many hours old")
    parser.add_argument("--show", action="store_true", help="only print what was found")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.show:
        show(earlier(), options.backend)
        return
    bandwidth = measured(worker.bandwidth)["bytes_per_second"]
    results: dict[str, Found] = {}
    for name in chosen(options):
        load, start = os.getloadavg()[0], time.time()
        one = measure(name, options.backend, warm_only=options.warm_only)
        results[name] = one | {"bandwidth": bandwidth, "load": load, "at": time.time()}
        print(f"{name}: {time.time() - start:.1f} s, load {load:.1f}", flush=True)
        if options.backend == "native":
            save(KEPT, earlier() | results)
    show(earlier() if options.resume else results, options.backend)


if __name__ == "__main__":
    main()
