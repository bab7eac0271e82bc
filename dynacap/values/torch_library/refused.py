"""The functions of torch that break the graph, each for its reason."""

from __future__ import annotations

from typing import Any

import torch

from dynacap.values.base import Value
from dynacap.values.natives import native
from dynacap.values.tensor import breaks
from dynacap.values.tracer import Tracer

_REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("data-dependent-value", torch, "equal allclose is_nonzero"),
    ("data-dependent-shape", torch, "nonzero masked_select argwhere unique unique_consecutive"),
    ("data-dependent-shape", torch, "bincount combinations"),
    ("torch-io", torch, "save load from_file"),
    ("numpy-interop", torch, "from_dlpack frombuffer asarray to_dlpack"),
    ("autograd-call", torch.autograd, "backward"),
    ("random-state", torch, "manual_seed seed initial_seed get_rng_state set_rng_state"),
    ("random-state", torch.cuda, "manual_seed manual_seed_all seed seed_all initial_seed"),
    ("random-state", torch.cuda, "get_rng_state set_rng_state"),
    ("torch-global-state", torch, "set_default_dtype set_default_device set_default_tensor_type"),
    ("torch-global-state", torch, "use_deterministic_algorithms set_deterministic_debug_mode"),
    ("torch-global-state", torch, "set_float32_matmul_precision set_num_threads set_warn_always"),
    ("torch-global-state", torch, "set_num_interop_threads set_flush_denormal set_printoptions"),
    ("function-transform", torch, "cond while_loop"),
    ("function-transform", torch.func, "functionalize linearize"),
)


def _register(target: Any, reason: str) -> None:
    name = getattr(target, "__qualname__", None) or repr(target)
    module = getattr(target, "__module__", None) or "torch"

    @native(target)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if breaks.now(reason) is None:
            return t.tensors.call(t, target, args, kwargs)
        return t.graph_break(reason, f"{module}.{name} is called")


for _reason, _owner, _names in _REFUSED:
    for _target in (getattr(_owner, name, None) for name in _names.split()):
        if _target is not None:
            _register(_target, _reason)
