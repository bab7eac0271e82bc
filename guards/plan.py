"""The guards and slots of an entry as one tree: each source once, after its base.

Both checkers are made from a plan: the Python one walks its nodes as they stand, the C one is
given them in an order of its own.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dynacap.guards.kinds import Guard
from dynacap.guards.source import Source

ROOT = -1


@dataclass(slots=True)
class Node:
    """A source, where its base is (ROOT for none), and the guards on its value alone."""

    source: Source
    base: int
    guards: list[Guard] = field(default_factory=list)


@dataclass(slots=True)
class Relation:
    """A guard on the values of several nodes, or of none."""

    guard: Guard
    nodes: tuple[int, ...]


class Plan:
    """Nodes in an order in which each follows its base, relations, and the nodes of the slots."""

    def __init__(self, guards: Iterable[Guard], slots: Sequence[Source]) -> None:
        self.nodes: list[Node] = []
        self.relations: list[Relation] = []
        self.state: list[Guard] = []
        self._position: dict[Source, int] = {}
        for guard in guards:
            self._place(guard)
        self.slots = tuple(self._node_of(source) for source in slots)

    def _place(self, guard: Guard) -> None:
        sources = guard.sources
        if not sources:
            self.state.append(guard)
        elif len(sources) == 1:
            self.nodes[self._node_of(sources[0])].guards.append(guard)
        else:
            self.relations.append(Relation(guard, tuple(map(self._node_of, sources))))

    def _node_of(self, source: Source) -> int:
        path = []
        at: Source | None = source
        while at is not None and at not in self._position:
            path.append(at)
            at = at.base
        base = ROOT if at is None else self._position[at]
        for step in reversed(path):
            self.nodes.append(Node(step, base))
            base = self._position[step] = len(self.nodes) - 1
        return base

    def position(self, source: Source) -> int:
        """Where a source that the plan has stands in ``nodes``."""
        return self._position[source]
