"""Errors that a graph would raise after it has changed something that outlives it.

A graph that raises is run again as plain Python, which raises where the program does; but not if
it changed something before, unless that was kept as it was (:mod:`dynacap.fxlite.replay` says
when).  So indices are checked early; before anything else that may raise then the graph ends, if
someone would notice: a handler, or who holds an object that the program has changed by that time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from dynacap.fxlite.node import Node
from dynacap.fxlite.passes.early_checks import EarlyChecks
from dynacap.fxlite.risks import changes_outside, may_raise, raises_midway, storage_of, written_by
from dynacap.values.base import is_outside
from dynacap.values.tracer import Tracer


class LateErrors:
    """What one graph may raise, and what it changes."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run  # an operation on fakes
        self.noticed = False  # an error of some node, if it comes, is noticed
        self.inside_try = False  # where the region begins, and what fails is raised
        self._memory: dict[int, dict[Node, Any]] = {}  # storages -> inputs, as they looked
        self._unchecked: deque[Node] = deque()  # nodes not yet asked whether they change something
        self._change: Node | None = None  # the first that does
        self._lasts = False  # what some have changed besides elements, nothing takes back
        self._early: EarlyChecks | None = None

    def add_input(self, node: Node) -> None:
        """The memory of an input outlives the graph."""
        storage = storage_of(node)
        if storage is not None:
            self._memory.setdefault(storage, {})[node] = _look(node)

    def add(self, t: Tracer, node: Node) -> None:
        """A node that was put at the end of the graph; breaks before it if it may raise too late.

        Once an error would be noticed, all that follow count: which of them raised, if one does,
        the graph does not tell.
        """
        self._unchecked.append(node)
        node.meta["handled"] = handled = self.inside_try or t.inside_try()
        if not may_raise(node) and not (handled and self._first_change(node) and self._lasts):
            return
        self.noticed = self.noticed or handled or any(map(is_outside, t.touched))
        midway = raises_midway(node, self._memory)
        if not self.noticed and not midway:
            return
        change = self._first_change(node) or (node if midway else None)
        if change is None or self._checked_early(change, node) or not self.noticed:
            return
        t.graph_break("late-error", f"{node.target} after {change.target}")

    def _first_change(self, before: Node) -> Node | None:
        while self._unchecked[0] is not before:
            earlier = self._unchecked.popleft()
            if not earlier.meta.get("sets_state") and changes_outside(earlier, self._memory):
                self._change = self._change or earlier
                inputs = [self._memory.get(storage_of(n) or 0, {}) for n in written_by(earlier)]
                looks = [(_look(node), look) for each in inputs for node, look in each.items()]
                self._lasts = self._lasts or any(now != before for now, before in looks)
        return self._change

    def _checked_early(self, change: Node, node: Node) -> bool:
        if self._early is None:
            self._early = EarlyChecks(change, torch._assert_async, self._run)
        return self._early.cover(node)


def _look(node: Node) -> Any:
    """What of a tensor in-place operations may change besides its elements."""
    value = node.meta["example_value"]
    return value.shape, value.stride(), value.grad_fn
