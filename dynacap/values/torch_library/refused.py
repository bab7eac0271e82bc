"""The functions of torch that break the graph, each for its reason."""

from __future__ import annotations

from typing import Any

from dynacap.values.base import Value
from dynacap.values.natives import native
from dynacap.values.tensor import breaks
from dynacap.values.tracer import Tracer


def _register(target: Any, refusal: breaks.Refusal) -> None:
    name = getattr(target, "__qualname__", None) or repr(target)
    module = getattr(target, "__module__", None) or "torch"

    @native(target)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if breaks.now(refusal) is None:
            return t.tensors.call(t, target, args, kwargs)
        return breaks.refuse(t, refusal, f"{module}.{name} is called")


for _target, _refusal in breaks.refusals():
    _register(_target, _refusal)
