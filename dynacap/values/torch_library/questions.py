"""Questions whose answer is the same for the whole of a capture, or is guarded with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.overrides

from dynacap.guards.relations import Predicate
from dynacap.values.base import Const, Value
from dynacap.values.data_model.calls import fold
from dynacap.values.natives import find_native, native
from dynacap.values.tensor.value import TensorValue

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer


def answers(value: Any, *targets: Any) -> None:
    """Have calls of these functions give a constant."""

    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return Const(value)

    for target in targets:
        if find_native(target) is None:
            native(target)(handler)


answers(
    True,
    torch.compiler.is_compiling,
    torch.compiler.is_dynamo_compiling,
    torch._utils.is_compiling,
)
answers(
    False,
    torch.compiler.is_exporting,
    torch._jit_internal.is_scripting,
    torch.jit._trace.is_tracing,
    torch.overrides.is_tensor_method_or_property,
    torch._C._is_tracing,
    torch._C._get_tracing_state,
)
answers(None, torch._C._get_tracing_state)

# Only plain tensors get this far, so that no argument overrides anything.
answers(
    False,
    torch.overrides.has_torch_function,
    torch.overrides.has_torch_function_unary,
    torch.overrides.has_torch_function_variadic,
    torch._C._are_functorch_transforms_active,
    torch._C._has_torch_function,
    torch._C._has_torch_function_unary,
    torch._C._has_torch_function_variadic,
)


@native(torch.is_tensor)
def is_tensor(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.is_tensor(x)``."""
    return Const(type(args[0]) is TensorValue or issubclass(args[0].cls, torch.Tensor))


@native(torch.is_storage)
def is_storage(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.is_storage(x)``."""
    return Const(args[0].cls in torch._storage_classes)


# Of these the guard on torch's state knows nothing: one that is asked is guarded by itself.
_SETTINGS = (
    torch.is_anomaly_enabled,
    torch.is_anomaly_check_nan_enabled,
    torch.get_num_threads,
    torch._C._get_cudnn_enabled,
    torch._C._get_cudnn_benchmark,
    torch._C._get_cudnn_deterministic,
    torch._C._get_mkldnn_enabled,
    torch._C._get_flash_sdp_enabled,
    torch._C._get_math_sdp_enabled,
    torch._C._get_mem_efficient_sdp_enabled,
    torch._C._get_cudnn_sdp_enabled,
    torch._C._get_float32_matmul_precision,
    torch.get_float32_matmul_precision,
    torch.cuda.is_initialized,
)

# The guard on torch's state, and what the traced program itself set, decide these.
_ASKED: tuple[Callable[..., Any], ...] = (
    *_SETTINGS,
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.get_default_dtype,
    torch.get_default_device,
    torch.is_autocast_enabled,
    torch.get_autocast_dtype,
    torch.is_autocast_cache_enabled,
    torch.is_autocast_cpu_enabled,
    torch.get_autocast_cpu_dtype,
    torch.get_autocast_gpu_dtype,
    torch.are_deterministic_algorithms_enabled,
    torch.is_deterministic_algorithms_warn_only_enabled,
    torch.get_deterministic_debug_mode,
    torch._C._is_torch_function_mode_enabled,
    torch._C._len_torch_function_stack,
    torch._C._len_torch_dispatch_stack,
    torch._C._is_torch_function_all_disabled,
    torch._C._is_torch_function_enabled,
    torch._C._is_autocast_available,
    torch.amp.is_autocast_available,
    torch._C._get_privateuse1_backend_name,
    torch._C._get_default_device,
    torch._C._get_deterministic_algorithms,
    torch.cuda.is_available,
    torch.cuda.device_count,
    torch.cuda.is_bf16_supported,
    torch.cuda.current_device,
    torch.cuda.get_device_capability,
    torch.backends.mps.is_available,
    torch.backends.mps.is_built,
    torch.backends.cuda.is_built,
    torch.backends.mkldnn.is_available,
    torch.backends.cudnn.is_available,
    torch.distributed.is_available,
    torch.xpu.is_available,
    torch._C._functorch.peek_interpreter_stack,
    torch._C._log_api_usage_once,
    torch._C._jit_get_profiling_executor
    if hasattr(torch._C, "_jit_get_profiling_executor")
    else torch.is_grad_enabled,
)


@functools.cache
def _still(function: Callable[[], Any], answer: Any) -> Predicate:
    name = function.__name__
    return Predicate((), lambda: function() == answer, f"{name}() is {answer!r} as at capture")


def _asked(function: Callable[..., Any]) -> None:
    @native(function)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        answer = fold(t, function, args, kwargs)
        if answer is None:
            name = function.__name__
            t.graph_break("unsupported-call", f"{name} is asked of what is no constant")
        if function in _SETTINGS:
            machine: Any = t
            machine.guards.add(_still(function, answer.constant()))
        return answer


for _function in dict.fromkeys(_ASKED):
    if find_native(_function) is None:
        _asked(_function)
