"""Where a first call spends its time: samples of its CPU time, by the part that it was in.

    python benchmarks/cold.py [MODEL …] [--rounds N]

Each round is the first call of a fresh process, after one call of the plain model: of models of the
zoo, or of a transformer of 16 layers (``transformer``).  A sample counts for the innermost part of
dynacap on its stack, so that what torch does for a part counts for that part.
"""

from __future__ import annotations

import argparse
import collections
import copy
import functools
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from isolate import isolated
from overhead import Block
from recompiles import first_call
from rich.console import Console
from rich.table import Table
from zoo import ZOO

import dynacap

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 0.001  # of CPU time between two samples
# The first of these that the path of a file begins with is the part that it belongs to.
PARTS = {
    "backends/fakes": "results of operations (torch's fake tensors)",
    "guards": "guards: taken down, lowered, first checked",
    "dynacap/opcodes": "bytecode read",
    "dynacap/codegen": "entries written",
    "dynacap/convert": "entries written",
    "dynacap/resume": "breaks",
    "dynacap/values/tensor": "tensors as values",
    "dynacap/values": "other values: attributes, calls, containers",
    "dynacap/executor": "steps, frames, the user's objects",
    "fxlite": "the graph",
    "backends": "the backend",
    "dynacap": "all else of dynacap",
}


def part_of(frame: FrameType | None) -> str:
    """The part that the innermost frame of ours belongs to."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(ROOT):
            name = str(path.relative_to(ROOT))
            for start, part in PARTS.items():
                if name.startswith(start):
                    return part
        frame = frame.f_back
    return "the program itself"


def transformer() -> tuple[Any, Any]:
    model = torch.nn.Sequential(*(Block() for _ in range(16))).eval()
    return model, ((torch.randn(2, 8, 32),), {})


def sampled(name: str) -> dict[str, Any]:
    """Seconds of a first call, whole and by part."""
    torch.set_num_threads(1)
    model, (args, kwargs) = transformer() if name == "transformer" else first_call(ZOO[name])
    found: collections.Counter[str] = collections.Counter()
    with torch.no_grad():
        model(*copy.deepcopy(args), **copy.deepcopy(kwargs))
        compiled = dynacap.compile(model, backend="eager")
        signal.signal(signal.SIGPROF, lambda _, frame: found.update([part_of(frame)]))
        signal.setitimer(signal.ITIMER_PROF, SECONDS, SECONDS)
        begun = time.process_time()
        compiled(*args, **kwargs)
        took = time.process_time() - begun
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"took": took, "parts": dict(found)}


def show(name: str, rounds: list[dict[str, Any]]) -> None:
    """Print where the time of these rounds went."""
    total: collections.Counter[str] = collections.Counter()
    for one in rounds:
        total.update(one["parts"])
    took = sum(one["took"] for one in rounds) / len(rounds)
    table = Table(title=f"{name}: {took:.3f} s of CPU time, {total.total()} samples")
    table.add_column("part")
    table.add_column("share", justify="right")
    for part, count in total.most_common():
        table.add_row(part, f"{count / total.total():.0%}")
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for name in options.models or ["transformer", "gpt2"]:
        rounds = [isolated(functools.partial(sampled, name), 300)[0] for _ in range(options.rounds)]
        show(name, [one for one in rounds if one is not None])


if __name__ == "__main__":
    main()
