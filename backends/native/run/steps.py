"""One operator of a program as a Python callable on its tensors: what C cannot call."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import torch

from dynacap.backends.native.loops.program import (
    Buffer,
    Call,
    Number,
    is_symbolic,
    numbers_of,
)

Step = Callable[..., tuple[Any, ...]]


def make_step(call: Call) -> Step:
    """``step(*tensors, *numbers)`` calls the operator with these for its buffers and for what
    varies: sizes, and floats by their bits."""
    buffers, varying = list(call.buffers()), numbers_of(call)
    positions = iter(range(len(buffers)))
    numbers = iter(range(len(buffers), len(buffers) + len(varying)))
    constants: dict[str, Any] = {"target": call.target, "as_float": _as_float}

    def text(value: Any) -> str:
        if isinstance(value, Buffer):
            return f"given[{next(positions)}]"
        if is_symbolic(value):
            return f"given[{next(numbers)}]"
        if isinstance(value, Number):
            return f"as_float(given[{next(numbers)}])"
        if isinstance(value, list | tuple):
            items = "".join(f"{text(item)}, " for item in value)
            return f"[{items}]" if isinstance(value, list) else f"({items})"
        name = f"constant_{len(constants)}"
        constants[name] = value
        return name

    parts = [text(arg) for arg in call.args]
    parts += [f"{name}={text(arg)}" for name, arg in call.kwargs.items()]
    function = eval(f"lambda *given: target({', '.join(parts)})", constants)
    return lambda *given: _as_tuple(function(*given))


def _as_float(bits: int) -> float:
    number: float = struct.unpack("d", struct.pack("q", bits))[0]
    return number


def _as_tuple(result: Any) -> tuple[Any, ...]:
    if isinstance(result, torch.Tensor):
        return (result,)
    return tuple(result) if isinstance(result, tuple | list) else ()
