"""Guards against objects that begin to be one: what was changed must not be met on another path.

Capture keeps one value for each outside object.  Where one of them is changed, the others of its
type would have to change too if they were the same object on a later call; so they must not be.
Nor may objects that stood for different keys of a dict or set.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import torch

from dynacap.executor.machine import Machine
from dynacap.fxlite.effects import mutates
from dynacap.fxlite.risks import storage_of, written_by
from dynacap.guards.kinds import Guard
from dynacap.guards.relations import NotAliased, Overlap, OwnStorage
from dynacap.guards.source import FunctionGlobals, Source
from dynacap.guards.tensor import overlap_pattern
from dynacap.values.base import Value
from dynacap.values.container import DictValue, Stored
from dynacap.values.function import GeneratorValue
from dynacap.values.iterator_outside import OutsideIterator
from dynacap.values.object import CellValue
from dynacap.values.tensor.overrides import overrides
from dynacap.values.tensor.value import TensorValue

_RESHAPING = frozenset("t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_ as_strided_".split())
_MUTABLE = (Stored, CellValue, OutsideIterator, GeneratorValue)


def guard_aliasing(m: Machine, functional_backend: bool) -> None:
    """Demand that what was changed stays distinct from what was only read, and keys from keys.

    ``functional_backend``: the backend turns changes of inputs into copies, so the ways in which
    their memory overlaps are part of what it compiles; where it does, the graph stays eager.
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
    with torch._C.DisableTorchFunctionSubclass():
        _guard_memory(m, functional_backend)


def _kind(value: Value) -> Any:
    """Objects of different kinds cannot be one; an instance's dict goes with its owner's class."""
    if isinstance(value, DictValue) and value.owner is not None:
        return "attributes", value.owner.cls
    return value.cls, type(value.source) is FunctionGlobals


def _guard_memory(m: Machine, functional_backend: bool) -> None:
    """Guard that inputs share memory only as they do now, where that makes a difference.

    To the eager backend it does in an operation on several of them: torch refuses to change memory
    that another argument is part of.  Also, gradients come to all views of what is changed.
    """
    inputs: list[Any] = [v for v in m.tensors.inputs if isinstance(v, TensorValue) and v.source]
    nodes = [node for node in m.tensors.graph.nodes if mutates(node)]
    storages = {storage_of(node) for changing in nodes for node in written_by(changing)}
    changed = [value for value in inputs if storage_of(value.node) in storages]
    reshaped = any(node.target in _RESHAPING for node in nodes)
    m.tensors.stays_eager = any(
        reshaped or v.fake.grad_fn is not None or torch._debug_has_internal_overlap(v.real) == 1
        for v in changed
    )
    if any(
        v.fake.requires_grad and overrides(v) for v in changed
    ):  # the graph has a view of it, which may be one itself
        m.graph_break("tensor-subclass", "what requires gradients is changed in place")
    if any(v.fake.requires_grad and not v.real.requires_grad for v in changed):
        _add(m, inputs, OwnStorage(_sources(inputs)))
    places = Counter(storage_of(value.node) for value in inputs)
    met = [Counter(filter(places.get, map(storage_of, n.all_input_nodes))) for n in nodes]
    met = [each for each in met if each.total() > 1]
    if not functional_backend:
        inputs = [v for v in inputs if any(storage_of(v.node) in each for each in met)]
    if not changed or len(inputs) < 2:
        return
    pattern = overlap_pattern([value.real for value in inputs])
    if pattern is None:
        m.graph_break("tensor-layout", "inputs without memory are changed in place")
    pairs = [Counter(storage_of(inputs[at].node) for at in pair[:2]) for pair in pattern]
    allowed = pattern if not any(p <= each for p in pairs for each in met) else ()
    m.tensors.stays_eager |= bool(pattern)
    _add(m, inputs, Overlap(_sources(inputs), allowed, origin=None))


def _add(m: Machine, inputs: list[Any], guard: Guard) -> None:
    """Add a guard on inputs; break where it does not hold even now."""
    if not guard.holds(*(value.real for value in inputs)):
        m.graph_break("overlap", f"not so: {guard.subject()} {guard.expectation()}")
    m.guards.add(guard)


def _sources(values: list[Any]) -> tuple[Source, ...]:
    return tuple(value.source for value in values)
