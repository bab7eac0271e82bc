"""What torch's NumPy layer computes, by name, and what is done in its place where it differs.

An operation is named like NumPy's function; ``linalg_``, ``fft_`` and ``ndarray_`` say where that
is found.  A name that ends in an underscore writes to its first operand and gives nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch._numpy
import torch._numpy.fft
import torch._numpy.linalg

Function = Callable[..., Any]
layer: Any = torch._numpy


def _set_item(target: Any, key: Any, value: Any) -> None:
    target[key] = value


def _own(function: Function) -> Function:
    """A function on tensors of one type in place of the layer's, with NumPy's ``out``."""

    def instead(*args: Any, out: Any = None) -> Any:
        tensors = [arg.tensor for arg in args if isinstance(arg, layer.ndarray)]
        found = function(*_tensors(args, tensors[0].dtype))
        if out is None:
            return layer.ndarray(found)
        out.tensor.copy_(found)
        return out

    return instead


def _tensors(args: tuple[Any, ...], dtype: torch.dtype) -> list[torch.Tensor]:
    """Operands as tensors; numbers have been brought to the type of the others."""
    return [
        arg.tensor if isinstance(arg, layer.ndarray) else torch.as_tensor(arg, dtype=dtype)
        for arg in args
    ]


def _apart(function: Function) -> Function:
    """torch multiplies the second operand by one first, which spoils complex infinities and NaN."""

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if not x.is_complex():
            found: torch.Tensor = function(x, y)
            return found
        return torch.complex(function(x.real, y.real), function(x.imag, y.imag))

    return _own(compute)


def _negative(x: torch.Tensor) -> torch.Tensor:
    """torch takes complex numbers from zero, which has another sign where a part is zero."""
    return torch.complex(-x.real, -x.imag) if x.is_complex() else -x


def _sign(x: torch.Tensor) -> torch.Tensor:
    """NaN has the sign NaN."""
    return torch.where(x.isnan(), x, x.sign())


def _remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A remainder of zero has the sign of the divisor."""
    found = torch.remainder(x, y)
    if not found.is_floating_point():
        return found
    return torch.where(found == 0, torch.copysign(found, y), found)


def _pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    """With a number all around; the layer asks for the number's value."""
    if mode != "constant" or isinstance(constant_values, (tuple, list, layer.ndarray)):
        raise NotImplementedError(f"np.pad in the mode {mode}")
    widths = np.broadcast_to(pad_width, (array.ndim, 2)).tolist()
    flat = [width for pair in reversed(widths) for width in pair]
    return layer.ndarray(torch.nn.functional.pad(array.tensor, flat, value=constant_values))


def _namespaces() -> dict[str, Function]:
    found: dict[str, Function] = {}
    for prefix, module in (("", layer), ("linalg_", layer.linalg), ("fft_", layer.fft)):
        for name, value in vars(module).items():
            if callable(value) and not isinstance(value, type) and name[0] != "_":
                found[prefix + name] = value
    return found


def _written(function: Function) -> Function:
    """A function that writes to its first operand gives nothing, as NumPy has it."""

    def write(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return write


_WRITING = ("put", "copyto", "fill_diagonal", "put_along_axis")
OPERATIONS: dict[str, Function] = {
    **_namespaces(),
    "add": _apart(torch.add),
    "subtract": _apart(torch.subtract),
    "negative": _own(_negative),
    "sign": _own(_sign),
    "remainder": _own(_remainder),
    "square": _own(lambda x: x * x),
    "getitem": operator.getitem,
    "setitem_": _set_item,
    "pad": _pad,
    **{f"{name}_": _written(getattr(layer, name)) for name in _WRITING},
    **{f"ndarray_{name}_": getattr(layer.ndarray, name) for name in ("sort", "fill", "put")},
    **{
        f"ndarray_{name}": getattr(layer.ndarray, name)
        for name in dir(layer.ndarray)
        if name[0] != "_" and callable(getattr(layer.ndarray, name))
    },
    "ndarray_T": lambda a: a.T,
    "ndarray_real": lambda a: a.real,
    "ndarray_imag": lambda a: a.imag,
}
