"""Indices are checked before a graph changes anything, instead of where they are used.

A graph that raises before its first change can be run again from its start; one that finds an index
out of range after that cannot.  What the index is computed from is computed once more at the
check, if nothing that it reads was written to in between.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

from dynacap.fxlite.effects import is_impure, mutates
from dynacap.fxlite.node import Node
from dynacap.fxlite.risks import may_raise, overlaps, plain_name, storage_of, written_by

Bounds = tuple[Node, Node, int, int]
"""An index, what it is for, the dimension there, and -1 if it may count from the end, else 0."""
_ALONG_DIM = frozenset("gather index_add index_copy index_select scatter scatter_add".split())
_INTEGERS = ("torch.int64", "torch.int32")
_BY_KEY = frozenset({"getitem", "setitem", "__getitem__", "__setitem__"})


class EarlyChecks:
    """The checks before one change.

    ``holds`` is called in the graph with a tensor of one bool, and raises if it is false; ``run``
    runs an operation on fakes.
    """

    def __init__(self, change: Node, holds: Callable[..., Any], run: Callable[..., Any]) -> None:
        self.change = change
        self._holds = holds
        self._run = run
        self._before = set(_up_to(change))
        self._copies: dict[Node, Node] = {}
        self._checked: set[Bounds] = set()
        self._scanned = change  # up to here, what was written is known:
        self._places: dict[Node, int] = {}
        self._first_writes: dict[int | None, int] = {}  # to a storage, since the change

    def cover(self, node: Node) -> bool:
        """Check a node's indices early; False if that cannot be done."""
        asked = list(_bounds(node))
        wanted = [bounds for bounds in asked if bounds is not None]
        if not asked or len(wanted) < len(asked) or (mutates(node) and overlaps(node)):
            return False
        self._scan(node)
        parts: dict[Node, None] = {}
        if not all(self._collect(index, node, parts) for index, *_ in wanted):
            return False
        if not all(_is_fixed(of, dim) or self._is_there(of) for _, of, dim, _ in wanted):
            return False
        with node.graph.inserting_before(self.change):
            made = [self._copy(part) for part in parts]
            made += [each for bounds in wanted for each in self._check(bounds)]
        for each in made:
            each.meta["source_loc"] = node.meta.get("source_loc")
        node.meta["checked"] = True
        return True

    def _is_there(self, node: Node) -> bool:
        return node.op == "placeholder" or node in self._before

    def _scan(self, last: Node) -> None:
        at = self._scanned
        while at is not last:
            place = self._places[at] = len(self._places)
            for each in written_by(at) if mutates(at) else ():
                self._first_writes.setdefault(storage_of(each), place)
            at = at.next
        self._scanned = last

    def _collect(self, node: Node, reader: Node, parts: dict[Node, None]) -> bool:
        """Add what has to be computed once more for a value as one node reads it; False if it
        might be another one before the change.
        """
        end = len(self._places)
        if self._first_writes.get(storage_of(node), end) < self._places.get(reader, end):
            return False
        if self._is_there(node) or node in self._copies:
            return True
        if not node.op.startswith("call_") or is_impure(node) or may_raise(node):
            return False
        if not all(self._collect(each, node, parts) for each in node.all_input_nodes):
            return False
        parts[node] = None
        return True

    def _copy(self, node: Node) -> Node:
        copied = node.graph.node_copy(node, lambda each: self._copies.get(each, each))
        self._copies[node] = copied
        return copied

    def _check(self, bounds: Bounds) -> list[Node]:
        """``holds(((index >= low) & (index < size)).all())``."""
        if bounds in self._checked:
            return []
        self._checked.add(bounds)
        index, of, dim, sign = bounds
        index = self._copies.get(index, index)
        made: list[Node] = []

        def call(op: str, target: Any, *args: Any) -> Node:
            made.append(self._call(op, target, *args))
            return made[-1]

        size = of.meta["example_value"].shape[dim]
        if not _is_fixed(of, dim):
            size = call("call_method", "size", of, dim)
        low: Any = 0
        if sign and isinstance(size, Node):
            low = call("call_function", operator.neg, size)
        elif sign:
            low = -size
        above = call("call_method", "ge", index, low)
        below = call("call_method", "lt", index, size)
        both = call("call_function", operator.and_, above, below)
        every = call("call_method", "all", both)
        call("call_function", self._holds, every, "an index is out of range")
        return made

    def _call(self, op: str, target: Any, *args: Any) -> Node:
        node = self.change.graph.create_node(op, target, args)
        fakes = [arg.meta["example_value"] if isinstance(arg, Node) else arg for arg in args]
        if op == "call_method":
            target, fakes = getattr(fakes[0], target), fakes[1:]
        node.meta["example_value"] = self._run(target, fakes, {})
        return node


def _up_to(last: Node) -> Iterator[Node]:
    for node in last.graph.nodes:
        if node is last:
            return
        yield node


def _bounds(node: Node) -> Iterator[Bounds | None]:
    """What the indices of a call must lie between; None where that cannot be told."""
    name, args = plain_name(node.target), node.args
    if node.kwargs or len(args) < 2:
        return
    if name in _BY_KEY:
        yield from _bounds_by_key(args[0], args[1])
    elif name == "embedding" and not mutates(node):
        yield _bound(args[0], args[1], 0, 0)
    elif name in _ALONG_DIM and len(args) > 2 and isinstance(args[1], int):
        yield _bound(args[2], args[0], args[1], 0)


def _bounds_by_key(of: Any, key: Any) -> Iterator[Bounds | None]:
    for dim, part in enumerate(key if isinstance(key, tuple) else (key,)):
        if isinstance(part, Node):
            yield _bound(part, of, dim, -1)
        elif not isinstance(part, int | slice) or isinstance(part, bool):
            yield None  # a dimension more or less


def _bound(index: Any, of: Any, dim: int, sign: int) -> Bounds | None:
    """``sign`` is -1 where an index may count from the end."""
    fake, value = _fake(index), _fake(of)
    if str(getattr(fake, "dtype", None)) not in _INTEGERS or fake.device.type != "cpu":
        return None
    if not isinstance(of, Node) or not -value.ndim <= dim < value.ndim:
        return None
    return index, of, dim, sign


def _is_fixed(of: Node, dim: int) -> bool:
    return type(of.meta["example_value"].shape[dim]) is int


def _fake(value: Any) -> Any:
    return value.meta.get("example_value") if isinstance(value, Node) else None
