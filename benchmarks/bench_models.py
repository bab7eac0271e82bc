"""Every model of the zoo under dynacap and under torch.compile(backend="eager"): a table.

    python benchmarks/bench_models.py [-k TEXT] [--only dynacap|torch] [--baseline]

For each: are the results eager's, how many graphs, breaks and operations, the reasons for breaks,
and the CPU time of the first calls. Each runs in a process of its own. `--baseline` writes what
torch.compile makes of them to the file that the tests compare with.
"""

from __future__ import annotations

import argparse
import json
import traceback
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from compilers import COMPILERS
from isolate import isolated
from machine import describe_machine, save
from rich.console import Console
from rich.progress import track
from rich.table import Table
from zoo import ZOO, Entry
from zoo.run import Result, measure, modes

BASELINE = Path(__file__).parent.parent / "tests" / "models" / "torch_baseline.json"


def here(entry: Entry, mode: str, compiler: str) -> Result:
    """Measure in this process."""
    chosen = COMPILERS[compiler]
    try:
        return measure(entry, mode, chosen.compile, chosen.counters)
    except BaseException:
        return Result(entry.name, mode, False, [traceback.format_exc()[-1500:]])


def apart(entry: Entry, mode: str, compiler: str, limit: int) -> Result:
    """Measure in a process of its own."""
    found, status = isolated(lambda: asdict(here(entry, mode, compiler)), limit)
    if found is not None:
        return Result(**found)
    return Result(entry.name, mode, False, [f"the process ended with status {status}"])


def row(results: dict[str, Result], shown: Iterable[str]) -> list[str]:
    """One line of the table."""
    cells: list[str] = []
    for name in shown:
        one = results[name]
        right = "yes" if one.right else "NO"
        reasons = "; ".join(f"{k} x{n}" for k, n in one.reasons.items())
        cells += [right, f"{one.graphs} / {one.breaks}", str(one.ops), f"{one.cold_s:.2f}", reasons]
    return cells


def show(found: dict[str, dict[str, Result]], shown: list[str]) -> None:
    """Print the table and the totals."""
    table = Table(title="models: right, graphs / breaks, operations, cold CPU seconds, reasons")
    table.add_column("model", no_wrap=True)
    for name in shown:
        for heading in ("right", "g / b", "ops", "cold s", "reasons"):
            table.add_column(f"{name} {heading}", overflow="fold")
    for label, results in found.items():
        table.add_row(label, *row(results, shown))
    console = Console()
    console.print(table)
    for name in shown:
        ran = [results[name] for results in found.values()]
        whole = sum(one.graphs > 0 and not one.breaks and not one.skipped for one in ran)
        right = sum(one.right for one in ran)
        cold = sum(one.cold_s for one in ran)
        console.print(f"{name}: {right} of {len(ran)} right, {whole} whole, {cold:.1f} s cold")


def write_baseline(found: dict[str, dict[str, Result]]) -> None:
    """Keep torch.compile's counts where the tests find them."""
    kept: dict[str, Any] = {"made with": describe_machine(), "models": {}}
    for label, results in found.items():
        one = results["torch"]
        facts = ("right", "graphs", "breaks", "ops", "reasons", "eager_s", "cold_s")
        kept["models"][label] = {name: getattr(one, name) for name in facts}
    BASELINE.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only models whose name holds this text")
    parser.add_argument("--only", choices=("dynacap", "torch"))
    parser.add_argument("--baseline", action="store_true", help="write torch.compile's counts")
    parser.add_argument("--limit", type=int, default=180, help="seconds for one model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    shown = [options.only] if options.only else ["dynacap", "torch"]
    wanted = [(e, m) for e in ZOO.values() if options.k in e.name for m in modes(e)]
    found = {
        f"{entry.name} {mode}": {n: apart(entry, mode, n, options.limit) for n in shown}
        for entry, mode in track(wanted, "running models")
    }
    show(found, shown)
    if options.baseline and "torch" in shown:
        write_baseline(found)
    if not options.k and not options.only:
        ran = [asdict(one) | {"compiler": n} for r in found.values() for n, one in r.items()]
        save("models", ran)


if __name__ == "__main__":
    main()
