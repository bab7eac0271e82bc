"""What ``explain`` reports: graphs, operations, guards and breaks, each with the user's line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynacap.cache import Capture, Session
from dynacap.errors import GraphBreak
from dynacap.guards.guard_set import describe_guard


@dataclass(frozen=True)
class Explanation:
    """The report of one compiled callable; ``str()`` gives it as text."""

    captures: tuple[Capture, ...]

    @property
    def graphs(self) -> list[Any]:
        """The captured graphs (``fxlite.GraphModule``), in the order of capture."""
        return [c.graph for c in self.captures if c.graph is not None]

    @property
    def graph_count(self) -> int:
        """How many graphs were captured."""
        return len(self.graphs)

    @property
    def op_count(self) -> int:
        """How many torch operations they hold."""
        return sum(c.op_count for c in self.captures)

    @property
    def break_reasons(self) -> list[GraphBreak]:
        """Why the graph broke, once for each break."""
        return [c.reason for c in self.captures if c.reason is not None]

    @property
    def graph_break_count(self) -> int:
        """How many breaks there are."""
        return len(self.break_reasons)

    @property
    def guards(self) -> list[Any]:
        """All guards, capture by capture."""
        return [guard for capture in self.captures for guard in capture.guards]

    @property
    def skipped(self) -> list[str]:
        """Why places ran as plain Python."""
        return [f"{c.place}: {c.skipped}" for c in self.captures if c.skipped]

    def __str__(self) -> str:
        lines = [
            f"graphs: {self.graph_count}, operations: {self.op_count}, breaks:"
            f" {self.graph_break_count}, guards: {len(self.guards)}"
        ]
        for number, capture in enumerate(self.captures):
            lines += _capture_lines(number, capture)
        return "\n".join(lines)


def _capture_lines(number: int, capture: Capture) -> list[str]:
    lines = [f"\n[{number}] {capture.place}, captured in {capture.seconds * 1000:.1f} ms"]
    if capture.skipped:
        lines.append(f"  runs as plain Python: {capture.skipped}")
    if capture.graph is not None:
        lines.append(f"  graph of {capture.op_count} operations:")
        lines += ["    " + line for line in capture.graph.code.splitlines()]
    if capture.guards:
        lines.append(f"  guards ({len(capture.guards)}):")
        lines += [f"    {describe_guard(guard)}" for guard in capture.guards]
    if capture.code:
        lines.append("  generated function:")
        lines += ["    " + line for line in capture.code.splitlines()]
    if capture.reason is not None:
        lines += ["  " + line for line in str(capture.reason).splitlines()]
    return lines


def explain_session(session: Session) -> Explanation:
    """The report on all that a session captured so far."""
    return Explanation(tuple(session.captures))
