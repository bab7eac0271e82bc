"""The tables that `native.py` prints: every case, and the groups as the README shows them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

Found = dict[str, Any]
HEADINGS = (
    "eager µs", "inductor µs", "native µs", "eager /", "inductor /", "x bw", "cold ind s",
    "cold s", "cached ind s", "cached s", "kept s", "peak MB e/i/n", "right",
)  # fmt: skip
FIRSTS = (
    "cold",
    "cached",
    "kept",
)  # first calls: with empty caches, full ones, and entries in them
GROUPS = {
    "a": "chains of pointwise operations",
    "b": "softmax, norms, MLP, rotary embedding, attention, loss",
    "c": "models, forward",
    "d": "models, training",
    "e": "an optimizer's step",
    "f": "batch 1",
}


def show(found: dict[str, Found], backend: str) -> None:
    """Each case, then each group."""
    console = Console(width=200)
    table = Table(title=f"{backend} beside eager and inductor")
    table.add_column("case", no_wrap=True)
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for name, one in found.items():
        table.add_row(name, *cells(one, backend))
    console.print(table)
    for line in group_lines(found, backend):
        console.print(line, markup=False, soft_wrap=True)


def cells(one: Found, backend: str) -> list[str]:
    """One line of the table."""
    if "error" in one:
        return [one["error"].splitlines()[-1][:80]]
    eager, inductor, ours = (one["seconds"][side] for side in ("eager", "inductor", backend))
    bound = f"{ours / (one['moves'] / one['bandwidth']):.2f}" if one["moves"] > 1e7 else ""
    firsts = [
        first_seconds(one, kind, side)
        for kind in ("cold", "cached")
        for side in ("inductor", backend)
    ]
    firsts.append(first_seconds(one, "kept", backend))
    return [
        *(f"{seconds * 1e6:,.0f}" for seconds in (eager, inductor, ours)),
        f"{eager / ours:.2f}",
        f"{inductor / ours:.2f}",
        bound,
        *("" if seconds is None else f"{seconds:.2f}" for seconds in firsts),
        "/".join(f"{max(peak, 0) / 1e6:.1f}" for peak in one["peak"].values()),
        "NO" if one["wrong"][backend] else "yes",
    ]


def first_seconds(one: Found, kind: str, side: str) -> float | None:
    """Seconds to the first result, if they were measured."""
    seconds: float | None = one.get(kind, {}).get(side, {}).get("seconds")
    return seconds


def group_lines(found: dict[str, Found], backend: str) -> Iterator[str]:
    """The README's table: geometric means, and the least or the most of any case."""
    yield (
        "| group (cases) | eager's time / ours, mean (least) | inductor's / ours, mean (least) |"
        " first call, ours / inductor's, mean (most) | the same, warm caches | with entries kept |"
    )
    yield "| --- | --- | --- | --- | --- | --- |"
    for group, words in GROUPS.items():
        ones = [one for name, one in found.items() if name[0] == group and "error" not in one]
        if ones:
            gains = (
                spread([one["seconds"][side] / one["seconds"][backend] for one in ones], min)
                for side in ("eager", "inductor")
            )
            firsts = (spread(shares(ones, kind, backend), max) for kind in FIRSTS)
            yield f"| {words} ({len(ones)}) | {' | '.join((*gains, *firsts))} |"


def shares(ones: list[Found], kind: str, backend: str) -> list[float]:
    """Our time to the first result over inductor's, where both were measured."""
    pairs = [[first_seconds(one, kind, side) for side in (backend, "inductor")] for one in ones]
    return [ours / theirs for ours, theirs in pairs if ours and theirs]


def spread(values: list[float], worst: Any) -> str:
    """The geometric mean, and the worst."""
    return f"{statistics.geometric_mean(values):.2f} ({worst(values):.2f})" if values else ""
