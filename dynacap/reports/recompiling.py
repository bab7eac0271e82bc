"""Why a callable was captured again: the guards that failed, how often, and what it cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from dynacap.cache import Recompile
from dynacap.reports.entries import session_of


@dataclass(frozen=True)
class RecompileReport:
    """The recompiles of one compiled callable, in their order."""

    recompiles: tuple[Recompile, ...]

    @property
    def seconds(self) -> float:
        """What they cost in all, in seconds."""
        return sum(each.seconds for each in self.recompiles)

    @property
    def counts(self) -> dict[str, int]:
        """How often something failed: what it is called in the program → times."""
        return dict(Counter(f.subject for each in self.recompiles for f in each.failures[:1]))

    def __len__(self) -> int:
        return len(self.recompiles)

    def __str__(self) -> str:
        if not self.recompiles:
            return "no recompiles"
        lines = [f"{len(self)} recompiles, {self.seconds:.3f} s"]
        lines += [f"  {subject}: {count} times" for subject, count in self.counts.items()]
        for number, each in enumerate(self.recompiles):
            lines.append(f"[{number}] {each.place}, {each.seconds * 1000:.1f} ms")
            lines += [f"  entry {i}: {failure}" for i, failure in enumerate(each.failures)]
        return "\n".join(lines)


def recompiles_of(compiled: Any) -> RecompileReport:
    """The recompiles of a compiled callable so far; the last 64 are kept."""
    return RecompileReport(tuple(session_of("recompiles", compiled).recompiles))
