"""What becomes of each construct of the language under dynacap and under torch.compile.

    python benchmarks/constructs.py [--only WORD] [--write]

Each snippet of ``constructs.txt`` runs plain and compiled, on fresh copies; results, arguments,
printed text, exceptions, random state and gradients are compared.  ``--write`` puts the table into
``docs/constructs.md``.  A snippet defines ``f``; ``calls`` are the arguments (by default a tensor,
twice), and ``after(i, result)`` looks at what a call gave.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import linecache
import logging
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch._dynamo
from compilers import COMPILERS, ENGINE, Compiler
from machine import describe_machine
from torch import nn

from dynacap.testing.check import compare
from dynacap.testing.observe import Call, Scenario

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "constructs.md"
_tags = itertools.count()


@dataclass(frozen=True)
class Snippet:
    """A construct: where it belongs, what it is, and code that uses it."""

    group: str
    title: str
    code: str


def snippets() -> Iterator[Snippet]:
    """The snippets of the text file, in order."""
    text = (HERE / "constructs.txt").read_text()
    for group in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        name, _, rest = group.partition("\n")
        for part in re.split(r"^-- ", rest, flags=re.MULTILINE)[1:]:
            title, _, code = part.partition("\n")
            yield Snippet(name, title, code)


class Scenarios:
    """Makes a fresh scenario of a snippet each time it is called."""

    def __init__(self, snippet: Snippet, folder: Path) -> None:
        self.snippet = snippet
        self.folder = folder

    def __call__(self) -> Scenario:
        tag = f"snippet_{next(_tags)}"
        path = self.folder / f"{tag}.py"
        path.write_text(self.snippet.code)
        x = torch.arange(6.0).reshape(2, 3) / 2 + 1
        space: dict[str, Any] = {"torch": torch, "np": np, "nn": nn, "X": x, "A": x.numpy().copy()}
        space |= {"__name__": tag, "__file__": str(path), "TAG": tag}
        sys.modules[tag] = type(sys)(tag)
        sys.modules[tag].__dict__.update(space)
        space = sys.modules[tag].__dict__
        exec(compile(self.snippet.code, str(path), "exec"), space)
        linecache.checkcache(str(path))
        calls = [Call(tuple(map(_copy, args))) for args in space.get("calls", [(x,), (x,)])]
        return Scenario(space["f"], calls, after=space.get("after"))


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and not value.is_leaf:
        return value
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    return value.copy() if isinstance(value, np.ndarray) else value


class Backend:
    """Runs graphs as they are and counts the runs: more than one a call are pieces, counted as
    breaks or not."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, graph: Any, inputs: Any) -> Any:
        def forward(*args: Any) -> Any:
            self.runs += 1
            return graph.forward(*args)

        return forward


@dataclass(frozen=True)
class Verdict:
    """What became of a snippet under one compiler: one of the kinds below, and details."""

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return self.kind + (f": {self.detail}" if self.detail else "")


WHOLE, PIECES, PLAIN, WRONG, ERROR = "whole", "in pieces", "plain Python", "WRONG", "ERROR"


def judge(snippet: Snippet, compiler: Compiler, folder: Path) -> Verdict:
    """Run a snippet plain and compiled."""
    compiler.reset()
    torch._dynamo.utils.counters.clear()
    build = Scenarios(snippet, folder)
    noise, backend = io.StringIO(), Backend()
    made = ENGINE.compile if compiler.name == "dynacap" else torch.compile
    try:
        with contextlib.redirect_stderr(noise), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = compare(build, lambda f: made(f, backend=backend), counters=compiler.counters)
    except Exception as error:
        return Verdict(ERROR, f"{type(error).__name__}: {str(error).splitlines()[0][:90]}")
    if outcome.problems:
        return _failed(outcome.problems)
    skipped = outcome.skipped if compiler.name == "dynacap" else _skipped_by_torch()
    why = ", ".join(dict.fromkeys(reason.partition(":")[0] for reason in outcome.reasons))
    if outcome.counters.get("graphs", 0) == 0:
        return Verdict(PLAIN, why[:110])
    breaks = outcome.counters.get("breaks", 0)
    each = -(-backend.runs // len(build().calls))
    if not breaks and not skipped and each <= 1:
        return Verdict(WHOLE)
    parts = [_plural(breaks, "break")] if breaks else []
    parts += [f"{each} graphs a call"] if each > 1 else []
    parts += [f"{_plural(skipped, 'frame')} plain"] if skipped else []
    return Verdict(PIECES, ", ".join(parts) + (f" ({why[:110]})" if why else ""))


def _failed(problems: tuple[str, ...]) -> Verdict:
    raised = re.search(
        r"raised.*compiled (?:a )?(\w*(?:Error|Exception|Unsupported)\w*)", problems[0]
    )
    if raised is not None:
        return Verdict(ERROR, raised[1])
    return Verdict(WRONG, problems[0].replace("\n", " ")[:110])


def _skipped_by_torch() -> int:
    frames = torch._dynamo.utils.counters["frames"]
    return int(frames["total"] - frames["ok"])


def _plural(number: int, what: str) -> str:
    return f"{number} {what}" + ("s" if number != 1 else "")


class Row(NamedTuple):
    """A snippet and its two verdicts."""

    snippet: Snippet
    ours: Verdict
    theirs: Verdict


def run(only: str) -> list[Row]:
    """All snippets whose title or group has the word, under both compilers."""
    logging.disable(logging.CRITICAL)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for snippet in snippets():
            if only.lower() not in f"{snippet.group} {snippet.title}".lower():
                continue
            ours, theirs = (
                judge(snippet, COMPILERS[n], Path(folder)) for n in ("dynacap", "torch")
            )
            rows.append(Row(snippet, ours, theirs))
            print(f"{snippet.title[:45]:45} {ours!s:50.50} | {theirs!s:.60}")
    return rows


def summary(rows: list[Row]) -> list[str]:
    """How often each kind of verdict was given."""
    counts = [Counter(row.ours.kind for row in rows), Counter(row.theirs.kind for row in rows)]
    lines = ["| | dynacap | torch.compile |", "| --- | --- | --- |"]
    for kind in (WHOLE, PIECES, PLAIN, WRONG, ERROR):
        lines.append(f"| {kind} | {counts[0][kind]} | {counts[1][kind]} |")
    return lines


def page(rows: list[Row]) -> str:
    """The page for the docs."""
    about = describe_machine()
    lines = [
        "# Constructs",
        "",
        "Made by `python benchmarks/constructs.py --write`, which runs each snippet of",
        "`benchmarks/constructs.txt` plain and compiled, and compares results, arguments, printed",
        "text, exceptions, random state and gradients. "
        f"Python {about['python']}, torch {about['torch']};",
        "both compilers hand their graphs to a backend that runs them as they are.",
        "",
        f"*{WHOLE}*: one graph a call and no break. *{PIECES}*: several graphs with plain Python",
        f"between them, or frames that ran plain. *{PLAIN}*: right, with no graph at all.",
        f"*{WRONG}*: the compiled function was seen to do something else. *{ERROR}*: it raised",
        "where plain Python does not.",
        "",
        *summary(rows),
    ]
    for group, members in itertools.groupby(rows, key=lambda row: row.snippet.group):
        lines += [
            "",
            f"## {group}",
            "",
            "| construct | dynacap | torch.compile |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| {_cell(s.title)} | {_cell(ours)} | {_cell(theirs)} |" for s, ours, theirs in members
        ]
    return "\n".join(lines) + "\n"


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Run, show, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", default="", help="run the snippets with this word in their title")
    parser.add_argument("--write", action="store_true", help="write docs/constructs.md")
    asked = parser.parse_args()
    rows = run(asked.only)
    print("\n".join(summary(rows)))
    if asked.write:
        PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
