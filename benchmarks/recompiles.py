"""How often models are captured anew as sizes vary, beside torch.compile(backend="eager").

    python benchmarks/recompiles.py [-k TEXT] [--only dynacap|torch] [--missing]

Each model of the zoo is called with batch sizes 1, 2, 3, 5, 8, 16, and with lengths of its second
dimension 4, 6, 7, 9, 12, 16 (sequences, or the height of images: times 4), as far as eager PyTorch
takes them; results must be eager's. Shown is how many captures came after the first: the graphs
that were captured, over those of the first call. ``paths`` is how many ways through the program's
lines eager Python takes over these sizes: a loop over a size, or an ``if`` on one, makes each its
own program. Each runs in a process of its own, and what was found is kept in
``results/recompiles.json``: ``--missing`` runs only what is not there yet, or ran out of time.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import sys
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any

import torch
from compilers import COMPILERS
from isolate import isolated
from machine import load, save
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch import Tensor
from zoo import ZOO, Entry

from dynacap.testing import Branch, Snapshot, Tolerance, differences

VARIED = {"batch": (0, (1, 2, 3, 5, 8, 16)), "length": (1, (4, 6, 7, 9, 12, 16))}
Call = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass
class Count:
    """One model under one compiler: graphs of the first call, and all captured after it."""

    name: str
    what: str
    compiler: str = ""
    sizes: list[int] = field(default_factory=list)
    first: int = 0
    later: int = 0
    paths: int = 0
    right: bool = True
    error: str = ""

    @property
    def anew(self) -> float:
        """Captures after the first, in whole programs."""
        return self.later / max(self.first, 1)


class _Enough(Exception):
    """The first call was seen."""


def first_call(entry: Entry) -> tuple[Any, Call]:
    """The model and the arguments of its first call."""
    built = entry.build()
    seen: list[Call] = []

    def look(*args: Any, **kwargs: Any) -> Any:
        seen.append((args, kwargs))
        raise _Enough

    try:
        built.drive(look)
    except (_Enough, AttributeError):
        pass
    return built.model, seen[0]


def resized(call: Call, dim: int, size: int) -> Call:
    """The same with another size of that dimension of each tensor that has it."""

    def change(value: Any) -> Any:
        if not isinstance(value, Tensor) or value.dim() <= dim:
            return copy.deepcopy(value)
        if dim == 1 and value.dim() == 4:  # images: the height
            return _repeated(value, 2, 4 * size)
        return _repeated(value, dim, size)

    made: Call = torch.utils._pytree.tree_map(change, call)
    return made


def _repeated(value: Tensor, dim: int, size: int) -> Tensor:
    return value.index_select(dim, torch.arange(size) % value.shape[dim])


def fits(model: Any, call: Call) -> bool:
    """Whether eager PyTorch takes these arguments, and gives the same for them twice."""
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        try:
            found.append(described(model(*copy.deepcopy(call[0]), **copy.deepcopy(call[1]))))
        except Exception:
            return False
    return not list(differences(found[0], found[1]))


def described(result: Any) -> Branch:
    return Branch("run", {"result": Snapshot().describe(result, "result")})


def path(model: Any, call: Call) -> int:
    """Tells apart the ways that a call takes through the lines of the program."""
    lines: list[tuple[str, int]] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return trace

    args, kwargs = copy.deepcopy(call)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        model(*args, **kwargs)
    finally:
        sys.settrace(before)
    return hash(tuple(lines))


def run(entry: Entry, what: str, compiler: str) -> Count:
    """Count the captures of one model."""
    dim, sizes = VARIED[what]
    chosen = COMPILERS[compiler]
    count = Count(entry.name, what, compiler)
    model, call = first_call(entry)
    with torch.set_grad_enabled(entry.grad_in_eval):
        calls = {size: resized(call, dim, size) for size in sizes}
        calls = {size: made for size, made in calls.items() if fits(model, made)}
        count.paths = len({path(model, made) for made in calls.values()})
        target = chosen.compile(copy.deepcopy(model))
        for number, (size, (args, kwargs)) in enumerate(calls.items()):
            torch.manual_seed(3)
            wanted = described(model(*copy.deepcopy(args), **copy.deepcopy(kwargs)))
            before = chosen.counters().get("graphs", 0)
            torch.manual_seed(3)
            found = described(target(*args, **kwargs))
            gained = chosen.counters().get("graphs", 0) - before
            count.first, count.later = (
                (gained, 0) if number == 0 else (count.first, count.later + gained)
            )
            count.right &= not list(differences(wanted, found, tolerance=Tolerance(2.0)))
            count.sizes.append(size)
    return count


def here(entry: Entry, what: str, compiler: str) -> Count:
    """The same; what it raises is noted."""
    try:
        return run(entry, what, compiler)
    except BaseException as error:
        return Count(entry.name, what, compiler, error=f"{type(error).__name__}: {error}"[:200])


def apart(entry: Entry, what: str, compiler: str, limit: int) -> Count:
    """The same in a process of its own."""
    found, status = isolated(lambda: asdict(here(entry, what, compiler)), limit)
    if found is not None:
        return Count(**found)
    return Count(entry.name, what, compiler, error=f"the process ended with status {status}")


class Kept:
    """All counts that were made, of this run and of those before."""

    def __init__(self) -> None:
        before = load("recompiles") or {"results": []}
        self.counts = {self.key(one): one for one in (Count(**d) for d in before["results"])}

    @staticmethod
    def key(one: Count) -> tuple[str, str, str]:
        return one.name, one.what, one.compiler

    def add(self, one: Count) -> None:
        print(one, file=sys.stderr, flush=True)
        self.counts[self.key(one)] = one
        order = {key: at for at, key in enumerate(itertools.product(ZOO, VARIED, COMPILERS))}
        found = sorted(self.counts.values(), key=lambda one: order.get(self.key(one), -1))
        save("recompiles", [asdict(one) for one in found])

    def groups(self, shown: list[str], text: str) -> list[list[Count]]:
        """The counts of each model and dimension, where all that are shown have been made."""
        keys = [[(*k, c) for c in shown] for k in itertools.product(ZOO, VARIED) if text in k[0]]
        return [[self.counts[k] for k in ks] for ks in keys if all(k in self.counts for k in ks)]


def show(found: list[list[Count]], shown: list[str]) -> None:
    """Print the table and the totals."""
    table = Table(title="captures after the first, as sizes vary")
    for heading in ("model", "varies", "sizes", "paths", *shown, "right", "error"):
        table.add_column(heading)
    for group in found:
        if len(group[0].sizes) > 1 or group[0].error:
            sizes = " ".join(map(str, group[0].sizes))
            right = " ".join("yes" if one.right else "NO" for one in group)
            errors = "; ".join(one.error for one in group if one.error)
            anew = [f"{one.anew:.1f}" for one in group]
            paths = str(group[0].paths or "")
            table.add_row(group[0].name, group[0].what, sizes, paths, *anew, right, errors)
    console = Console(width=160)
    console.print(table)
    usable = [
        group for group in found if all(len(one.sizes) > 1 and not one.error for one in group)
    ]
    for at, name in enumerate(shown):
        most = max((group[at].anew for group in usable), default=0)
        total = sum(group[at].anew for group in usable)
        console.print(f"{name}: {total:.0f} for {len(usable)} sequences, at most {most:.1f}")
    if len(shown) == 2:
        more = [f"{g[0].name} {g[0].what}" for g in usable if g[0].anew > g[1].anew]
        console.print(f"more than torch.compile: {', '.join(more) or 'none'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only models whose name holds this text")
    parser.add_argument("--only", choices=("dynacap", "torch"))
    parser.add_argument(
        "--missing", action="store_true", help="only what was not run before, or did not end"
    )
    parser.add_argument("--limit", type=int, default=180, help="seconds for one model")
    options = parser.parse_args()
    torch.set_num_threads(1)
    shown = [options.only] if options.only else ["dynacap", "torch"]
    wanted = [entry for entry in ZOO.values() if options.k in entry.name]
    kept = Kept()
    for key in track(list(itertools.product([e.name for e in wanted], VARIED, shown)), "running"):
        before = kept.counts.get(key) if options.missing else None
        if before is None or "status" in before.error:
            name, what, compiler = key
            kept.add(apart(ZOO[name], what, compiler, options.limit))
    show(kept.groups(shown, options.k), shown)


if __name__ == "__main__":
    main()
