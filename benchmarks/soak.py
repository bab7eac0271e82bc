"""Memory over thousands of recompiles and resets: does dynacap free what it took?

    python benchmarks/soak.py [--rounds 2000] [--compiler dynacap|torch]

Each round compiles fresh functions and a fresh module, calls them with shapes that force
recompiles, drops them and resets. Resident memory and live objects are noted along the way; growth
is measured from the first quarter on, when caches of Python and torch are warm.
"""

from __future__ import annotations

import argparse
import gc
import os
import weakref
from pathlib import Path
from typing import Any

import torch
from compilers import COMPILERS, Compiler
from machine import save
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor, nn

PAGE = os.sysconf("SC_PAGE_SIZE")
SAMPLES = 20


def resident() -> float:
    """Resident memory of this process in MiB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def one_round(compiler: Compiler, number: int) -> weakref.ref[nn.Module]:
    """Compile, recompile, drop and reset; the module must be gone afterwards."""
    offset = number % 7

    def function(x: Tensor, by: int) -> Tensor:
        return (x * by + offset).sum(0)

    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    compiled, compiled_model = compiler.compile(function), compiler.compile(model)
    for size in range(1, 4):
        compiled(torch.ones(size, 4), size)
        compiled_model(torch.ones(size, 4))
    if number % 3 == 0:
        compiler.reset()
    return weakref.ref(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--compiler", choices=tuple(COMPILERS), default="dynacap")
    options = parser.parse_args()
    compiler = COMPILERS[options.compiler]
    samples: list[dict[str, Any]] = []
    kept = 0
    every = max(1, options.rounds // SAMPLES)
    for number in track(range(options.rounds), "soaking"):
        model = one_round(compiler, number)
        if number % every == 0:
            compiler.reset()
            gc.collect()
            kept += model() is not None
            live = len(gc.get_objects())
            samples.append({"round": number, "resident_mib": round(resident(), 2), "live": live})
    show(samples, kept, options.rounds)
    save(f"soak_{options.compiler}", {"samples": samples, "models_kept": kept})


def show(samples: list[dict[str, Any]], kept: int, rounds: int) -> None:
    """Print the samples and the growth."""
    table = Table(title=f"{rounds} rounds of compile, recompile, drop, reset")
    for heading in ("round", "resident MiB", "live objects"):
        table.add_column(heading, justify="right")
    for one in samples:
        table.add_row(str(one["round"]), f"{one['resident_mib']:.1f}", str(one["live"]))
    console = Console()
    console.print(table)
    settled = samples[len(samples) // 4 :]
    growth = settled[-1]["resident_mib"] - settled[0]["resident_mib"]
    objects = settled[-1]["live"] - settled[0]["live"]
    console.print(f"growth since a quarter: {growth:+.1f} MiB, {objects:+d} live objects")
    console.print(f"models still alive after they were dropped: {kept}")


if __name__ == "__main__":
    main()
