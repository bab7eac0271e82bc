"""The functions of torch that break the graph, each for its reason."""

from __future__ import annotations

from typing import Any

from dynacap.backends import torch_refusals
from dynacap.values.base import Value
from dynacap.values.natives import native
from dynacap.values.tracer import Tracer


def _register(target: Any, reason: str) -> None:
    name = getattr(target, "__qualname__", None) or repr(target)
    module = getattr(target, "__module__", None) or "torch"

    @native(target)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if torch_refusals.now(reason) is None:
            return t.tensors.call(t, target, args, kwargs)
        return t.graph_break(reason, f"{module}.{name} is called")


for _target, _reason in torch_refusals.functions():
    _register(_target, _reason)
