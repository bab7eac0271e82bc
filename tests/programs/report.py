"""Run the programs one by one, each in a process of its own, and print what became of each.

    python tests/programs/report.py [--compiler NAME] [-k TEXT] [--json FILE] [FILE ...]

The compilers are dynacap, torch and eager. `torch` is `torch.compile(backend="eager")`: the
comparison that shows which programs it captures whole, and that the expectations written at the
programs are sound. A program that crashes or hangs takes only its own process down.
"""

import argparse
import importlib.util
import json
import os
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import dynacap
from dynacap.testing import compare
from dynacap.testing.check import Program

HERE = Path(__file__).parent
ENGINE: Any = dynacap  # its names are loaded when they are asked for
DEFAULT = [HERE, HERE.parent / "cases"]


@dataclass
class Verdict:
    """What became of one program."""

    file: str
    name: str
    status: str  # right | broken | wrong | error | crash | timeout
    detail: str = ""
    graphs: int = 0
    breaks: int = 0
    ops: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0


def load(path: Path) -> Iterator[Program]:
    """The programs of a test file, in order."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    for value in list(vars(module).values()):
        made = getattr(value, "program", None)
        if isinstance(made, Program):
            yield made


def torch_counters() -> Mapping[str, Any]:
    """torch.compile's own counts, under dynacap's names."""
    counters = torch._dynamo.utils.counters
    return {
        "graphs": counters["stats"]["unique_graphs"],
        "ops": counters["stats"]["calls_captured"],
        "breaks": sum(counters["graph_break"].values()),
        "reasons": {k.split("\n")[0][:100]: v for k, v in counters["graph_break"].items()},
    }


def compilers(name: str) -> tuple[Callable[[Any], Any], Callable[[], Mapping[str, Any]]]:
    """How to compile, and what counts it."""
    if name == "eager":
        return lambda function: function, dict
    if name == "torch":
        return lambda function: torch.compile(function, backend="eager"), torch_counters
    return lambda function: ENGINE.compile(function, backend="eager"), ENGINE.counters


def judge(made: Program, file: str, compiler: str) -> Verdict:
    """Run one program here and now."""
    compile, counters = compilers(compiler)
    start = time.perf_counter()
    try:
        outcome = compare(made.build, compile, counters=counters)
    except BaseException:
        text = traceback.format_exc()
        return Verdict(file, made.name, "error", text)
    got = outcome.counters
    graphs, breaks = got.get("graphs", 0), got.get("breaks", 0)
    status, detail = "right", ""
    for word, wanted, found in (("graphs", made.graphs, graphs), ("breaks", made.breaks, breaks)):
        if compiler != "eager" and wanted is not None and wanted != found:
            status, detail = "broken", f"{found} {word}, not {wanted}: {outcome.reasons}"
    if made.breaks == 0 and outcome.skipped > 0:
        status, detail = "broken", f"skipped {outcome.skipped}: {outcome.reasons}"
    if outcome.problems:
        status, detail = "wrong", str(outcome)
    seconds = time.perf_counter() - start
    ops = got.get("ops", 0)
    return Verdict(file, made.name, status, detail, graphs, breaks, ops, outcome.reasons, seconds)


def isolated(made: Program, file: str, compiler: str, limit: int) -> Verdict:
    """Run one program in a forked process."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        signal.alarm(limit)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # logs; what matters is in the verdict
        verdict = judge(made, file, compiler)
        with os.fdopen(write_end, "w") as pipe:
            json.dump(asdict(verdict), pipe)
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if text:
        return Verdict(**json.loads(text))
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    how = "timeout" if number == signal.SIGALRM else "crash"
    return Verdict(file, made.name, how, f"signal {number}, exit status {status}")


def show(verdicts: list[Verdict], compiler: str) -> None:
    """Print all that is not right, and the totals."""
    console = Console()
    table = Table(title=f"programs under {compiler}", show_lines=True)
    for heading in ("program", "verdict", "graphs", "breaks", "what"):
        table.add_column(heading, overflow="fold")
    for one in verdicts:
        if one.status != "right":
            tail = one.detail if one.status != "error" else "\n".join(one.detail.splitlines()[-6:])
            name = f"{one.file}::{one.name}"
            table.add_row(name, one.status, str(one.graphs), str(one.breaks), tail[:900])
    console.print(table, markup=False)
    totals = Counter(one.status for one in verdicts)
    console.print(f"{len(verdicts)} programs: " + ", ".join(f"{n} {k}" for k, n in totals.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=DEFAULT)
    parser.add_argument("--compiler", choices=("dynacap", "torch", "eager"), default="dynacap")
    parser.add_argument("-k", default="", help="only programs whose name holds this text")
    parser.add_argument("--limit", type=int, default=60, help="seconds for one program")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    paths = [p for f in options.files for p in (sorted(f.glob("test_*.py")) if f.is_dir() else [f])]
    # Once here, so that the forked processes find everything loaded.
    compilers(options.compiler)[0](torch.sin)(torch.ones(1))
    compilers(options.compiler)[0](lambda x: x + 1)(torch.ones(1))
    wanted = [(made, p.name) for p in paths for made in load(p) if options.k in made.name]
    verdicts = []
    for made, file in wanted:
        verdicts.append(isolated(made, file, options.compiler, options.limit))
        if options.json:
            options.json.write_text(json.dumps([asdict(one) for one in verdicts], indent=1))
        print("." if verdicts[-1].status == "right" else verdicts[-1].status[0], end="", flush=True)
    print()
    show(verdicts, options.compiler)


if __name__ == "__main__":
    main()
