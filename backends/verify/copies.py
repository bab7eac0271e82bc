"""Copies of a graph's inputs that its code cannot tell from them.

Strides, memory that inputs share, and what each is to autograd are kept; hooks and history are not,
so that nothing which is done to a copy reaches the user's tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

_PLAIN = (torch.Tensor, torch.nn.Parameter)


@dataclass
class Copies:
    """The copies, and the tensors behind them whose gradients can be asked for."""

    values: list[Any] = field(default_factory=list)
    leaves: list[torch.Tensor] = field(default_factory=list)


def copied(values: Sequence[Any]) -> Copies:
    """Copies of all values together; what is no tensor and no generator stands as it is."""
    made = Copies([_other(value) for value in values])
    groups: dict[int, list[int]] = {}
    for index, value in enumerate(values):
        if is_plain(value):
            groups.setdefault(storage_of(value), []).append(index)
        elif isinstance(value, torch.Tensor):
            made.values[index] = _alone(value, made.leaves)
    for members in groups.values():
        tensors = {id(values[index]): values[index] for index in members}
        copies = dict(zip(tensors, _together(list(tensors.values()), made.leaves), strict=True))
        for index in members:
            made.values[index] = copies[id(values[index])]
    return made


def is_plain(value: object) -> bool:
    """Whether a value is a tensor with memory of its own kind: strided, and no subclass."""
    return (
        type(value) in _PLAIN
        and isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and not value.is_quantized
        and value.device.type != "meta"
    )


def storage_of(tensor: torch.Tensor) -> int:
    """A number that only tensors in the same storage have in common."""
    return int(tensor.untyped_storage()._cdata)


def share_memory(values: Sequence[Any]) -> bool:
    """Whether two of the values lie in one storage."""
    storages = [storage_of(value) for value in values if is_plain(value)]
    return len(set(storages)) < len(storages)


def _other(value: Any) -> Any:
    return value.clone_state() if isinstance(value, torch.Generator) else value


def _alone(value: torch.Tensor, leaves: list[torch.Tensor]) -> torch.Tensor:
    made = value.detach().clone()
    if value.requires_grad:
        leaves.append(made.requires_grad_())
    return made


def _together(tensors: list[torch.Tensor], leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of tensors that lie in one storage."""
    storage = tensors[0].untyped_storage().clone()
    computed = any(one.requires_grad and not one.is_leaf for one in tensors)
    if computed and len({one.dtype for one in tensors}) == 1:
        return _views_of_a_result(tensors, storage, leaves)
    made = []
    for tensor in tensors:
        view = _seen_as(tensor, _over(storage, tensor))
        if tensor.requires_grad:
            leaves.append(view.requires_grad_())
        made.append(view)
    return made


def _views_of_a_result(
    tensors: list[torch.Tensor], storage: torch.UntypedStorage, leaves: list[torch.Tensor]
) -> list[torch.Tensor]:
    """Copies that are no leaves, as results of earlier operations are none."""
    if len(tensors) == 1 and _fills(tensors[0], storage):
        leaves.append(_seen_as(tensors[0], _over(storage, tensors[0])).requires_grad_())
        with torch.enable_grad():
            return [leaves[-1].clone()]
    flat = torch.empty(0, dtype=tensors[0].dtype, device=tensors[0].device).set_(storage)
    leaves.append(flat.requires_grad_())
    with torch.enable_grad():
        base = flat.clone()
        made = []
        for tensor in tensors:
            source = base if tensor.requires_grad else base.detach()
            view = source.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
            made.append(_seen_as(tensor, view))
    return made


def _fills(tensor: torch.Tensor, storage: torch.UntypedStorage) -> bool:
    """Whether each place in the memory is one element, so that a clone has the same strides."""
    dense = torch._prims_common.is_non_overlapping_and_dense_or_false(tensor)
    return bool(dense) and tensor.numel() * tensor.element_size() == storage.nbytes()


def _over(storage: torch.UntypedStorage, tensor: torch.Tensor) -> torch.Tensor:
    empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return empty.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())


def _seen_as(tensor: torch.Tensor, view: torch.Tensor) -> torch.Tensor:
    """Memory holds the numbers before conjugation and negation, which are bits of the tensor."""
    if tensor.is_conj():
        view = view.conj()
    return torch._neg_view(view) if tensor.is_neg() else view
