"""Arrays as tensors and back, over the same memory; and stand-ins for arrays."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]
Twin = Any  # an array or a scalar of NumPy's


def root(array: Twin) -> Any:
    """The array that owns an array's memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def twin_of(real: Array) -> Twin:
    """A twin: an array that differs from a real one only in its elements, which mean nothing.

    Each call is made on twins too, so that NumPy says what type, dtype, shape, strides and flags a
    result has, and whose memory it shares.
    """
    reach = sum((n - 1) * step for n, step in zip(real.shape, real.strides, strict=True) if n)
    if real.flags.c_contiguous or real.flags.f_contiguous:
        order = "C" if real.flags.c_contiguous else "F"
        made: Any = np.zeros(real.shape, real.dtype, order)  # type: ignore[call-overload]
        made += real.dtype.kind in "fc"  # sums of ones can be divided by
    if real.base is not None or made.strides != real.strides:
        memory = np.zeros(reach + real.itemsize, np.uint8)
        made = np.ndarray(real.shape, real.dtype, memory, 0, real.strides)
    made.flags.writeable = real.flags.writeable
    return made


class _Memory:
    """Shows memory that someone else owns as an array of some layout."""

    def __init__(self, owner: Array, address: int, like: dict[str, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = {**like, "data": (address, False)}


def address_of(array: Twin) -> int:
    """Where an array's first element lies."""
    found: int = array.__array_interface__["data"][0]
    return found


def as_tensor(array: Array) -> torch.Tensor:
    """The tensor over an array's memory; torch would warn of memory that is read only."""
    if not array.flags.writeable:
        shown = array.__array_interface__
        array = np.asarray(_Memory(array, shown["data"][0], shown))
    return torch.from_numpy(array)


def shown_as(twin: Twin, owner: Twin) -> tuple[Any, tuple[Any, ...]]:
    """How an array or scalar is made of the array that owns its memory, or of its own tensor: a
    function, and what it takes besides."""
    if not isinstance(twin, np.ndarray):
        return as_scalar, ()
    if owner is twin:
        return as_array, (twin.flags.writeable,)
    offset = address_of(twin) - address_of(owner) if twin.size else 0
    return view_of, (offset, twin.shape, twin.strides, twin.dtype.str, twin.flags.writeable)


def view_of(
    array: Array,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: str,
    writeable: bool,
) -> Array:
    """A view of an array, whose base is what NumPy would have made its base."""
    owner = root(array)
    address = address_of(array) + offset
    if owner.flags.forc:
        made: Array = np.ndarray(shape, dtype, owner, address - address_of(owner), strides)
    else:
        like = {"shape": shape, "strides": strides, "typestr": dtype, "version": 3}
        made = np.asarray(_Memory(owner, address, like))
    made.flags.writeable = writeable
    return made


def as_array(tensor: torch.Tensor, writeable: bool) -> Array:
    """The array over a tensor's memory."""
    array = tensor.numpy()
    if not writeable:
        array.flags.writeable = False
    return array


def as_scalar(tensor: torch.Tensor) -> Any:
    """The NumPy scalar that a tensor without dimensions holds."""
    return tensor.numpy()[()]


_NUMERIC = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
    " complex128"
)
TORCH_DTYPES: dict[Any, torch.dtype] = {
    np.dtype(name): getattr(torch, name) for name in _NUMERIC.split()
}
SCALARS: tuple[type[Any], ...] = tuple(dtype.type for dtype in TORCH_DTYPES)


def unfit(array: Array) -> str | None:
    """Why no tensor can lie over the memory of an array, or None."""
    if array.dtype not in TORCH_DTYPES or not array.dtype.isnative:
        return f"holds {array.dtype}"
    if any(step < 0 or step % array.itemsize for step in array.strides):
        return "has strides that no tensor can have"
    return None if array.flags.aligned else "is not aligned"


def facts(array: Array) -> tuple[Any, ...]:
    """What a guard expects of an array."""
    return array.dtype, array.shape, array.strides, array.flags.writeable


def twin_of_tensor(tensor: torch.Tensor) -> Twin | None:
    """The twin of what ``tensor.numpy()`` gives; None where torch refuses to give it."""
    odd = tensor.requires_grad or tensor.is_conj() or tensor.is_neg()
    if odd or tensor.device.type != "cpu" or tensor.dtype not in TORCH_DTYPES.values():
        return None
    layout = [*map(int, tensor.shape)], [*map(int, tensor.stride())]
    return twin_of(torch.empty_strided(*layout, dtype=tensor.dtype).numpy())


def no_tensor(maker: Any, tensor: torch.Tensor, twin: Twin, options: Collection[str]) -> str | None:
    """What about an array keeps ``maker`` from making just what it makes of it eagerly, or None."""
    if maker not in (torch.from_numpy, torch.as_tensor, torch.tensor):
        return "an array"
    if not set(options) <= ({"dtype", "device"} if maker is not torch.from_numpy else set()):
        return "an array, with " + ", ".join(options)
    if not isinstance(twin, np.ndarray):
        return "a scalar" if maker is torch.from_numpy else None
    if maker is not torch.tensor and (not twin.flags.writeable or tensor.storage_offset()):
        return "read-only memory, or of the middle of some"
    return None
