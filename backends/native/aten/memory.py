"""Which node holds a tensor's elements now, while operations change memory that several share.

Each storage has a base, the first tensor seen in it, and a version that grows with each change.  A
change of part of it is a new base with that part replaced; whatever else lies in the storage is
read out of the base again when it is next used.  What happens to an input's storage is written
back at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from dynacap.backends.native.aten.in_place import NotFunctional

aten = torch.ops.aten
MakeNode = Callable[[Any, tuple[Any, ...], dict[str, Any], Any], torch.fx.Node]


@dataclass(eq=False)
class _Storage:
    base: torch.Tensor
    node: torch.fx.Node  # holds the base's elements now
    outside: torch.fx.Node | None  # the input that it belongs to
    version: int = 0


@dataclass(eq=False)
class _Tensor:
    value: torch.Tensor  # kept, so that its id names no other
    storage: _Storage
    node: torch.fx.Node
    version: int


@dataclass(eq=False)
class Memory:
    """All tensors of a recording."""

    make_node: MakeNode
    _tensors: dict[int, _Tensor] = field(default_factory=dict)
    _storages: dict[int, _Storage] = field(default_factory=dict)

    def add_input(self, value: torch.Tensor, node: torch.fx.Node) -> None:
        """An input, which no other shares storage with."""
        self.add(value, node)
        self._tensors[id(value)].storage.outside = node

    def add(self, value: torch.Tensor, node: torch.fx.Node) -> None:
        """A tensor that an operator has given."""
        if id(value) in self._tensors:  # an operator that returns its argument
            return
        key = value.untyped_storage()._cdata
        storage = self._storages.get(key)
        if storage is None:
            storage = self._storages[key] = _Storage(value, node, None)
        self._tensors[id(value)] = _Tensor(value, storage, node, storage.version)

    def node(self, value: torch.Tensor) -> torch.fx.Node:
        """The node that holds a tensor's elements now."""
        tensor = self._tensors.get(id(value))
        if tensor is None:
            raise NotFunctional("the graph uses a tensor that is neither an input nor made in it")
        storage = tensor.storage
        if tensor.version < storage.version:
            tensor.node = self._seen(storage, storage.node, value)
            tensor.version = storage.version
        return tensor.node

    def change(self, value: torch.Tensor, node: torch.fx.Node) -> None:
        """From now on ``node`` holds what ``value`` holds."""
        self.node(value)
        tensor = self._tensors[id(value)]
        storage, new = tensor.storage, node.meta["val"]
        _check_same_elements(storage.base, value)
        if _layout(new) != _layout(value) or new.dtype != value.dtype:
            copied = aten.copy.default(value, new)
            node = self.make_node(aten.copy.default, (tensor.node, node), {}, copied)
        if _layout(value) == _layout(storage.base):
            storage.node = node
        else:
            _check_dense(storage.base)
            args = (storage.node, node, *_layout(value))
            storage.node = self.make_node(aten.as_strided_scatter.default, args, {}, storage.base)
        storage.version += 1
        tensor.node, tensor.version = node, storage.version

    def check_alone(self, value: torch.Tensor) -> None:
        """Whether a tensor is the graph's own, and no other sees its memory; else NotFunctional."""
        self.node(value)
        storage = self._tensors[id(value)].storage
        others = [each for each in self._tensors.values() if each.storage is storage]
        if storage.outside is not None or len(others) > 1:
            raise NotFunctional("a tensor is turned whose memory others see")

    def turn(self, value: torch.Tensor, node: torch.fx.Node) -> None:
        """A tensor that is alone has been laid out otherwise; ``node`` is that view."""
        storage = _Storage(value, node, None)
        self._storages[value.untyped_storage()._cdata] = storage
        self._tensors[id(value)] = _Tensor(value, storage, node, 0)

    @property
    def changes_inputs(self) -> bool:
        """Whether an input's storage was changed."""
        return any(each.outside is not None and each.version for each in self._storages.values())

    def write_back(self) -> None:
        """Copy what was changed in inputs to where it belongs."""
        for storage in self._storages.values():
            if storage.outside is not None and storage.version:
                args = (storage.outside, storage.node)
                self.make_node(aten.copy_.default, args, {}, storage.base)

    def returned(self, value: torch.Tensor) -> torch.fx.Node:
        """The node to return for a tensor: outputs that share memory are views of one base."""
        tensor = self._tensors[id(value)]
        storage = tensor.storage
        if not storage.version:
            return tensor.node
        base = storage.outside or storage.node
        if value is not storage.base and _layout(value) == _layout(storage.base):
            return self.make_node(aten.alias.default, (base,), {}, value)  # another tensor
        return self._seen(storage, base, value)

    def _seen(self, storage: _Storage, base: torch.fx.Node, value: torch.Tensor) -> torch.fx.Node:
        _check_same_elements(storage.base, value)
        if _layout(value) == _layout(storage.base):
            return base
        _check_dense(storage.base)
        return self.make_node(aten.as_strided.default, (base, *_layout(value)), {}, value)


def _layout(value: torch.Tensor) -> tuple[list[Any], list[Any], Any]:
    return list(value.shape), list(value.stride()), value.storage_offset()


def _check_same_elements(base: torch.Tensor, value: torch.Tensor) -> None:
    kinds = [(each.dtype, each.is_conj(), each.is_neg()) for each in (base, value)]
    if kinds[0] != kinds[1]:
        raise NotFunctional("memory is changed that is seen as elements of two kinds")


def _check_dense(base: torch.Tensor) -> None:
    """A copy of ``base`` must have the layout of its storage: parts of it are named by that."""
    if base.storage_offset() or not torch._prims_common.is_non_overlapping_and_dense_or_false(base):
        raise NotFunctional("part of a tensor with gaps is changed")
