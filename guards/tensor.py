"""Tensors as guards see them: metadata, read through torch's own descriptors.

torch is not imported here; while it is not imported elsewhere there are no tensors to guard.
Subclasses' and modes' ``__torch_function__`` is kept from running.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dynacap.guards.raw import is_a


def torch_module() -> Any:
    """torch, if it is imported, else None."""
    return sys.modules.get("torch")


class TensorFacts(NamedTuple):
    """What can be told of a tensor without its elements."""

    dtype: object
    device: object
    layout: object
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None  # None: of a layout that has none
    requires_grad: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool


@dataclass(frozen=True)
class _Reader:
    """torch's accessors, looked up once."""

    torch: Any

    def facts(self, tensor: Any) -> TensorFacts:
        base = self.torch._C.TensorBase
        with self.torch._C.DisableTorchFunction():
            layout = base.layout.__get__(tensor)
            return TensorFacts(
                base.dtype.__get__(tensor),
                base.device.__get__(tensor),
                layout,
                tuple(base.size(tensor)),
                tuple(base.stride(tensor)) if layout is self.torch.strided else None,
                base.requires_grad.__get__(tensor),
                base.is_conj(tensor),
                base.is_neg(tensor),
                base.is_inference(tensor),
            )


def tensor_facts(value: object) -> TensorFacts | None:
    """The metadata of a tensor; None for anything else or where torch will not tell."""
    torch = torch_module()
    if torch is None or not is_a(value, torch.Tensor):
        return None
    try:
        return _Reader(torch).facts(value)
    except (RuntimeError, NotImplementedError):  # nested tensors, for one, have no single shape
        return None


class Extent(NamedTuple):
    """The bytes that a tensor's elements lie between."""

    device: object
    start: int  # of the element at index 0
    low: int
    high: int


def tensor_extent(value: object) -> Extent | None:
    """Where a strided tensor or an array lies in memory; None for what lies nowhere."""
    torch, numpy = torch_module(), sys.modules.get("numpy")
    tensor: Any = value
    if torch is not None and numpy is not None and type(value) is numpy.ndarray:
        device, start = torch.device("cpu"), tensor.__array_interface__["data"][0]
        return _reached(device, start, tensor.itemsize, tensor.shape, tensor.strides)
    facts = tensor_facts(value)
    if facts is None or facts.stride is None:
        return None
    base = torch._C.TensorBase
    with torch._C.DisableTorchFunction():
        start, size = base.data_ptr(tensor), base.element_size(tensor)
    strides = [step * size for step in facts.stride]
    return _reached(facts.device, start, size, facts.shape, strides)


def _reached(
    device: object, start: int, size: int, shape: Sequence[int], strides: Sequence[int]
) -> Extent:
    """The extent of elements of ``size`` bytes, with strides in bytes; empty without memory."""
    if 0 in shape or not start:
        return Extent(device, start, start, start)
    reach = [(n - 1) * step for n, step in zip(shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return Extent(device, start, start + low, start + high + size)


def overlap_pattern(values: Sequence[object]) -> tuple[tuple[int, int, int], ...] | None:
    """The pairs of tensors whose ranges meet and their distance; None if one has no range."""
    extents = [tensor_extent(value) for value in values]
    found = []
    for j, right in enumerate(extents):
        if right is None:
            return None
        for i, left in enumerate(extents[:j]):
            assert left is not None  # an earlier turn of the outer loop would have returned
            if left.device == right.device and left.low < right.high and right.low < left.high:
                found.append((i, j, right.start - left.start))
    return tuple(sorted(found))


def storages_differ(*values: Any) -> bool:
    """Whether no two of these tensors lie in one storage."""
    base = torch_module()._C.TensorBase
    return len({base.untyped_storage(value)._cdata for value in values}) == len(values)
