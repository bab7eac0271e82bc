"""What an operation gave the last time it met operands like these.

Running an operation on fake tensors takes 80 to 500 microseconds, and a model does the same few
dozen operations over and over.  What a result looks like follows from the operation, the metadata
of its tensors, its constants and torch's state; so it is kept, process-wide, under all of these.
Making a fake from what is kept takes 15 microseconds.

Not kept: results of what writes in place, what makes tensors from nothing, and what gives an
operand back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

MOST = 20_000  # entries; a program that makes more has shapes that change all the time

_empty_strided = torch.empty_strided
_mirror_gradient: Any = torch._mirror_autograd_meta_to  # type: ignore[attr-defined]


class Look(NamedTuple):
    """The metadata of one tensor; ``view`` if it shares the storage of an operand."""

    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool
    view: bool


class Kept(NamedTuple):
    """What an operation gave: a tensor, or a container of the type ``container`` of tensors."""

    looks: tuple[Look, ...]
    container: type | None

    @property
    def views(self) -> bool:
        """Whether any of it shares the storage of an operand."""
        return any(look.view for look in self.looks)


_kept: dict[Hashable, Kept | None] = {}


def forget() -> None:
    """Drop everything that is kept."""
    _kept.clear()


def find(key: Hashable) -> Kept | None:
    """What is kept under a key."""
    try:
        return _kept.get(key)
    except TypeError:  # a constant that cannot be hashed
        return None


def keep(key: Hashable, result: Any, operands: list[torch.Tensor], shared: list[bool]) -> None:
    """Note what an operation gave, if it is of a kind that can be made again; ``shared`` is
    :func:`shares` of the two.
    """
    tensors = parts(result)
    if not tensors or not all(_can_be_made(tensor, operands) for tensor in tensors):
        return
    looks = tuple(_look(t, view=view) for t, view in zip(tensors, shared, strict=True))
    note(key, Kept(looks, None if tensors[0] is result else type(result)))


def note(key: Hashable, kept: Kept) -> None:
    """Keep what an operation gave, unless a constant in its key cannot be hashed."""
    if len(_kept) >= MOST:
        _kept.clear()
    with contextlib.suppress(TypeError):
        _kept[key] = kept


def make(kept: Kept, mode: FakeTensorMode, operands: list[torch.Tensor]) -> Any:
    """The result anew, from what is kept.

    A view that is made so shares no storage with its base, which matters only once something is
    written in place.
    """
    source = None
    if any(look.requires_grad for look in kept.looks):
        source = next(fake for fake in operands if fake.requires_grad)
    fakes = [_tensor(look, mode, source) for look in kept.looks]
    return fakes[0] if kept.container is None else kept.container(fakes)


def _tensor(look: Look, mode: FakeTensorMode, source: torch.Tensor | None) -> torch.Tensor:
    shape, stride, dtype, device, requires_grad, _ = look
    made = FakeTensor(mode, _empty_strided(shape, stride, dtype=dtype, device="meta"), device)
    if requires_grad:
        _mirror_gradient(source, made)
    return made


def parts(result: Any) -> Any:
    """The tensors of a result: itself, or what a list or tuple holds."""
    return result if isinstance(result, list | tuple) else (result,)


def shares(result: Any, operands: list[torch.Tensor]) -> list[bool]:
    """For each tensor of a result whether it is a view of an operand."""
    storages = {_storage(fake) for fake in operands if type(fake) is FakeTensor}
    return [type(t) is FakeTensor and _storage(t) in storages for t in parts(result)]


def state() -> Hashable:
    """What of torch's state decides about results."""
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch._C._functorch.maybe_current_level(),
        torch.get_default_dtype(),
        torch._C._len_torch_function_stack() and torch.get_default_device(),
        tuple((torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")),
    )


def look_at(fake: torch.Tensor) -> Look | None:
    """The metadata of an operand; None for the rare kinds that no memory is kept of."""
    if type(fake) is not FakeTensor or _is_special(fake):
        return None
    return _look(fake)


def _look(fake: torch.Tensor, *, view: bool = False) -> Look:
    return Look(fake.shape, fake.stride(), fake.dtype, fake.device, fake.requires_grad, view)


def _storage(fake: torch.Tensor) -> int:
    cdata: int = fake.untyped_storage()._cdata
    return cdata


def _can_be_made(tensor: Any, operands: list[torch.Tensor]) -> bool:
    if type(tensor) is not FakeTensor or any(tensor is operand for operand in operands):
        return False
    if tensor._has_symbolic_sizes_strides:
        return False  # of symbols of this capture
    if tensor.requires_grad and (tensor.is_leaf or not any(o.requires_grad for o in operands)):
        return False
    return not _is_special(tensor)


def _is_special(fake: FakeTensor) -> bool:
    return fake.is_conj() or fake.is_neg() or fake.is_inference() or fake.constant is not None
