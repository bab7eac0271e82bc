"""Functions of torch that only tell how things stand, as data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Question = Callable[..., Any]


def _named(owner: Any, names: str) -> list[Question]:
    """The functions of that module, as far as this torch has them."""
    return [found for name in names.split() if (found := getattr(owner, name, None)) is not None]


# The same for the whole of a capture.
ANSWERS: tuple[tuple[Any, tuple[Question, ...]], ...] = (
    (True, (torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling)),
    (True, (torch._utils.is_compiling,)),
    (False, (torch.compiler.is_exporting, torch._jit_internal.is_scripting)),
    (False, (torch.jit._trace.is_tracing, torch._C._is_tracing)),
    (None, (torch._C._get_tracing_state,)),
    (False, (torch._C._are_functorch_transforms_active,)),
)
# Of these the guard on torch's state knows nothing: one that is asked is guarded by itself.
SETTINGS = [
    *_named(
        torch,
        "is_anomaly_enabled is_anomaly_check_nan_enabled get_num_threads"
        " get_float32_matmul_precision",
    ),
    *_named(
        torch._C,
        "_get_cudnn_enabled _get_cudnn_benchmark _get_cudnn_deterministic _get_mkldnn_enabled"
        " _get_flash_sdp_enabled _get_math_sdp_enabled _get_mem_efficient_sdp_enabled"
        " _get_cudnn_sdp_enabled _get_float32_matmul_precision",
    ),
    torch._C._autograd._saved_tensors_hooks_get_disabled_error_message,
    torch.cuda.is_initialized,
]
# The guard on torch's state, and what the traced program itself set, decide these.
_DECIDED: tuple[tuple[Any, str], ...] = (
    (
        torch,
        "is_grad_enabled is_inference_mode_enabled get_default_dtype get_default_device"
        " is_autocast_enabled get_autocast_dtype is_autocast_cache_enabled is_autocast_cpu_enabled"
        " get_autocast_cpu_dtype get_autocast_gpu_dtype are_deterministic_algorithms_enabled"
        " is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode",
    ),
    (
        torch._C,
        "_is_torch_function_mode_enabled _len_torch_function_stack _len_torch_dispatch_stack"
        " _is_torch_function_all_disabled _is_torch_function_enabled _is_autocast_available"
        " _get_privateuse1_backend_name _get_default_device _get_deterministic_algorithms"
        " _log_api_usage_once _is_fwd_grad_enabled _jit_get_profiling_executor",
    ),
    (torch._C._functorch, "peek_interpreter_stack get_inplace_requires_grad_allowed"),
    (torch.amp, "is_autocast_available"),
    (
        torch.cuda,
        "is_available device_count is_bf16_supported current_device get_device_capability",
    ),
    (torch.backends.mps, "is_available is_built"),
    (torch.backends.cuda, "is_built"),
    (torch.backends.mkldnn, "is_available"),
    (torch.backends.cudnn, "is_available"),
    (torch.distributed, "is_available"),
    (torch.xpu, "is_available"),
)
ASKED = [*SETTINGS, *(each for row in _DECIDED for each in _named(*row))]
