"""Every operator of torch's `op_db` that runs on the CPU in float32, compiled, against eager.

    python benchmarks/opinfo.py [-k TEXT] [--backend NAME] [--samples N] [--again failing|all]

Goes on where it was stopped: each verdict is kept in `build/opinfo` as soon as it is known. Several
may run at once with `--part 0/2` and `--part 1/2`. A crash or a hang is a verdict like others: the
operators run in a process beside this one. At the end a table, and `results/opinfo.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from machine import commit_here, save
from operators import operators
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
Verdicts = dict[str, dict[str, Any]]


def known(folder: Path) -> Verdicts:
    """What was found so far, by operator; the latest word counts."""
    found: Verdicts = {}
    for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime):
        found |= {one["name"]: one for one in map(json.loads, path.read_text().splitlines())}
    return found


def wanted(options: argparse.Namespace, before: Verdicts) -> list[str]:
    """The operators that are this run's to judge."""
    part, parts = map(int, options.part.split("/"))
    names = [name for name in operators() if options.k in name][part::parts]
    again = {"no": (), "failing": ("failing",)}.get(options.again)
    if again is None:
        return names
    return [name for name in names if name not in before or before[name]["kind"] in again]


def judged(names: list[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Verdicts as they come; a worker that dies has judged the operator that it was at."""
    command = [sys.executable, str(HERE / "opinfo_worker.py")]
    command += [options.backend, *map(str, (options.samples, options.seconds, options.together))]
    left = list(names)
    while left:
        worker = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write("\n".join(left))
        worker.stdin.close()
        at = left[0]
        for line in worker.stdout:
            told = json.loads(line)
            at = told.get("starts", at)
            if "name" in told:
                left.remove(told["name"])
                yield told
        status = worker.wait()
        if left:
            left.remove(at)
            yield {"name": at, "kind": "failing", "problems": [f"the process ended by {-status}"]}


def kind_of(problem: str) -> str:
    """A problem without what differs from sample to sample."""
    text = re.sub(r"^sample \d+: ", "", problem)
    return re.sub(r"\(.*|\d+(\.\d+)?(e[-+]?\d+)?|0x[0-9a-f]+|'[^']*'|\[[^]]*\]", "", text)[:90]


def show(found: Verdicts) -> None:
    """What fails, sorted by how, then the totals."""
    table = Table(title="operators that differ from eager")
    for heading in ("how", "operators", "the first"):
        table.add_column(heading, overflow="fold")
    groups: dict[str, list[dict[str, Any]]] = {}
    for one in found.values():
        if one["problems"]:
            groups.setdefault(kind_of(one["problems"][0]), []).append(one)
    for how, ones in sorted(groups.items(), key=lambda item: -len(item[1])):
        table.add_row(how, " ".join(one["name"] for one in ones), ones[0]["problems"][0][:400])
    console = Console()
    console.print(table)
    totals = Counter(one["kind"] for one in found.values())
    samples = sum(one.get("samples", 0) for one in found.values())
    parts = ", ".join(f"{count} {kind}" for kind, count in sorted(totals.items()))
    console.print(f"{len(found)} operators, {samples} samples: {parts}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only operators whose name holds this text")
    parser.add_argument("--backend", default="native")
    parser.add_argument("--samples", type=int, default=0, help="at most so many of each; 0: all")
    parser.add_argument("--seconds", type=int, default=600, help="for one graph")
    parser.add_argument("--together", type=int, default=16, help="samples in one graph")
    parser.add_argument("--part", default="0/1", help="one of several runs, as 0/2 and 1/2")
    parser.add_argument("--again", choices=("no", "failing", "all"), default="no")
    options = parser.parse_args()
    folder = HERE.parent / "build" / "opinfo" / options.backend
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["DYNACAP_CACHE_DIR"] = str(folder / "libraries")  # not among the user's own
    commit = commit_here()
    kept = folder / f"{options.part.replace('/', '_of_')}.jsonl"
    for verdict in judged(wanted(options, known(folder)), options):
        with kept.open("a") as file:
            file.write(json.dumps(verdict | {"commit": commit}) + "\n")
        print(verdict["name"], verdict["kind"], *verdict["problems"][:1], flush=True)
    found = known(folder)
    show(found)
    if options.backend == "native":
        save("opinfo", sorted(found.values(), key=lambda one: str(one["name"])))


if __name__ == "__main__":
    main()
