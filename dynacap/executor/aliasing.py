"""Guards against objects that begin to be one: what was changed must not be met on another path.

Capture keeps one value for each outside object.  Where one of them is changed, the others of its
type would have to change too if they were the same object on a later call; so they must not be.
Nor may objects that stood for different keys of a dict or set.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from dynacap.executor.machine import Machine
from dynacap.fxlite.effects import mutates
from dynacap.guards.relations import NotAliased, Overlap
from dynacap.guards.source import FunctionGlobals, Source
from dynacap.guards.tensor import overlap_pattern
from dynacap.values.base import Value
from dynacap.values.container import DictValue, Stored
from dynacap.values.function import GeneratorValue
from dynacap.values.iterator_outside import OutsideIterator
from dynacap.values.object import CellValue
from dynacap.values.tensor.value import TensorValue

_MUTABLE = (Stored, CellValue, OutsideIterator, GeneratorValue)


def guard_aliasing(m: Machine, functional_backend: bool) -> None:
    """Demand that what was changed stays distinct from what was only read, and keys from keys.

    ``functional_backend``: the backend turns changes of inputs into copies, so the ways in which
    their memory overlaps are part of what it compiles.
    """
    changed = {_kind(value) for value in m.touched if value.source is not None}
    groups: dict[Any, list[Source]] = defaultdict(list)
    for value in m.mirrors.values():
        if value.source is not None and isinstance(value, _MUTABLE):
            kind = _kind(value)
            if kind in changed:
                groups[kind].append(value.source)
    if m.keys_differ:
        for value in m.identity_keys:
            if value.source is not None:
                groups["key", value.cls].append(value.source)
    for sources in groups.values():
        if len(sources) > 1:
            m.guards.add(NotAliased(tuple(sources), origin=None))
    if functional_backend:
        _guard_overlap(m)


def _kind(value: Value) -> Any:
    """Objects of different kinds cannot be one; an instance's dict goes with its owner's class."""
    if isinstance(value, DictValue) and value.owner is not None:
        return "attributes", value.owner.cls
    return value.cls, type(value.source) is FunctionGlobals


def _guard_overlap(m: Machine) -> None:
    if not any(mutates(node) for node in m.tensors.graph.nodes):
        return
    inputs: list[Any] = [value for value in m.tensors.inputs if _is_outside_tensor(value)]
    if len(inputs) < 2:
        return
    pattern = overlap_pattern([value.real for value in inputs])
    if pattern is None:
        m.graph_break("tensor-layout", "inputs without memory are changed in place")
    sources = tuple(value.source for value in inputs if value.source is not None)
    m.guards.add(Overlap(sources, pattern, origin=None))


def _is_outside_tensor(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.source is not None
