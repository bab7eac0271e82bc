"""One operator of a program as a Python callable on its tensors: what C cannot call, or what
failed there and is to raise what it raises from Python."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from dynacap.backends.native.loops.program import Buffer, Call

Step = Callable[..., tuple[Any, ...]]


def make_step(call: Call, sizes: Mapping[Any, int] | None = None) -> Step:
    """``step(*tensors)`` calls the operator with the tensors in the place of its buffers."""
    target, names = call.target, itertools.count()

    def text(value: Any) -> str:
        if isinstance(value, Buffer):
            return f"t[{next(names)}]"
        if isinstance(value, list | tuple):
            items = "".join(f"{text(item)}, " for item in value)
            return f"[{items}]" if isinstance(value, list) else f"({items})"
        name = f"c{len(constants)}"
        constants[name] = value
        return name

    constants: dict[str, Any] = {}
    parts = [text(arg) for arg in call.args]
    parts += [f"{name}={text(arg)}" for name, arg in call.kwargs.items()]
    function = eval(f"lambda *t: target({', '.join(parts)})", {"target": target, **constants})
    return lambda *tensors: _as_tuple(function(*tensors))


def _as_tuple(result: Any) -> tuple[Any, ...]:
    if isinstance(result, torch.Tensor):
        return (result,)
    return () if result is None else tuple(result)
