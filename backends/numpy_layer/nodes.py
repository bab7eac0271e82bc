"""Callables on tensors that stand in a graph: one operation, with what NumPy does around it.

``casts`` are the types in which the operation computes, for its first operands; ``finish`` says
what is done with each result: nothing, a copy with these strides and this type, or a new view.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch._numpy

from dynacap.backends.numpy_layer.operations import OPERATIONS

layer: Any = torch._numpy
Casts = tuple[torch.dtype, ...]


class Finish(NamedTuple):
    """How a result is made NumPy's: in memory of its own, or, without strides, as a view."""

    dtype: torch.dtype
    strides: tuple[int, ...] | None


@functools.lru_cache(maxsize=4096)
def node(
    name: str, casts: Casts = (), finish: tuple[Finish | None, ...] = ()
) -> Callable[..., Any]:
    """The callable for an operation; the same one for the same arguments."""
    function = OPERATIONS[name]

    def operation(*args: Any, **kwargs: Any) -> Any:
        found = function(
            *map(_dressed, map(_cast, args, casts)),
            *map(_dressed, args[len(casts) :]),
            **{key: _dressed(value) for key, value in kwargs.items()},
        )
        return finished(_stripped(found), finish)

    operation.__name__ = operation.__qualname__ = name
    operation.__module__ = "torch._numpy"
    return operation


def finished(found: Any, finish: tuple[Finish | None, ...]) -> Any:
    """Results, each as it is to be."""
    if not any(finish):
        return found
    if isinstance(found, torch.Tensor):
        return _finish(found, finish[0])
    parts = map(_finish, found, finish)
    return type(found)(parts) if not hasattr(found, "_make") else found._make(parts)


def _finish(tensor: torch.Tensor, how: Finish | None) -> torch.Tensor:
    if how is None:
        return tensor
    if how.strides is None:
        return tensor.detach()
    made = torch.empty_strided(tensor.shape, how.strides, dtype=how.dtype, device=tensor.device)
    return made.copy_(tensor)


def _cast(operand: Any, dtype: torch.dtype) -> Any:
    """An operand in the type that is computed in; numbers are brought to it by torch."""
    if isinstance(operand, torch.Tensor):
        return operand.to(dtype)
    if isinstance(operand, (list, tuple)):
        return _stacked(operand, dtype)
    if dtype is torch.float16:  # which torch would compute with more digits of
        return torch.scalar_tensor(operand, dtype=dtype)
    return float(operand) if dtype.is_floating_point else operand


def _stacked(items: Any, dtype: torch.dtype) -> torch.Tensor:
    """A list, at any depth, of arrays, scalars and numbers as one tensor."""
    if isinstance(items, (list, tuple)) and any(isinstance(i, _NESTED) for i in items):
        return torch.stack([_stacked(item, dtype) for item in items])
    return torch.as_tensor(items, dtype=dtype)


_NESTED = (torch.Tensor, list, tuple)


def _dressed(value: Any) -> Any:
    """Tensors as arrays of the layer, at any depth."""
    if isinstance(value, torch.Tensor):
        return layer.ndarray(value)
    if type(value) in (list, tuple):
        return type(value)(map(_dressed, value))
    return value


def _stripped(value: Any) -> Any:
    """Arrays of the layer as tensors again."""
    if isinstance(value, layer.ndarray):
        return value.tensor
    if isinstance(value, (list, tuple)):
        return type(value)(map(_stripped, value))
    return value
