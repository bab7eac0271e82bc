"""What of torch no graph can hold, as data: functions, methods, and calls that fail on fakes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from dynacap.config import config

# Methods that read elements, and of which types the numbers stay in the graph if they may.
ELEMENTS: dict[str, tuple[type, ...]] = {
    "item": (int, float),
    "tolist": (int, float),
    "__int__": (int,),
    "__index__": (int,),
    "__float__": (float,),
}
# Methods whose results or effects no graph could hold, and the reasons to break for them.
_METHODS = {
    name: reason
    for reason, names in (
        ("data-dependent-value", "item tolist __int__ __float__ __complex__ __index__ __long__"),
        ("data-dependent-value", "__bool__ __nonzero__ is_nonzero equal allclose __contains__"),
        ("data-dependent-shape", "nonzero masked_select argwhere unique unique_consecutive"),
        ("autograd-call", "backward retain_grad _backward reinforce"),
        ("tensor-hook", "register_hook register_post_accumulate_grad_hook"),
        ("tensor-storage", "data_ptr storage untyped_storage _typed_storage storage_type set_"),
        ("tensor-storage", "share_memory_ is_shared is_set_to _storage_offset storage_offset"),
        ("tensor-storage", "pin_memory is_pinned record_stream resize_ resize resize_as __hash__"),
        ("tensor-storage", "resize_as_ resize_as_sparse_ _is_view _use_count const_data_ptr"),
        ("tensor-storage", "mutable_data_ptr"),
        ("torch-io", "__reduce_ex__ __reduce__ __setstate__ __deepcopy__ __dir__ module_load"),
        ("torch-io", "__delitem__"),
        ("tensor-print", "__repr__ __format__ __str__"),
        ("numpy-interop", "__array__ __array_wrap__ __dlpack__ __dlpack_device__ map_ map2_"),
        ("tensor-subclass", "as_subclass _make_subclass _make_wrapper_subclass to_sparse to_dense"),
        ("tensor-subclass", "to_sparse_coo to_sparse_csr to_mkldnn coalesce values indices"),
        ("tensor-subclass", "_values"),
    )
    for name in names.split()
}
# reason -> the module and the names of its functions
_FUNCTIONS: tuple[tuple[str, Any, str], ...] = (
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


def functions() -> Iterator[tuple[Any, str]]:
    """The functions that break the graph, as far as this torch has them, each with its reason."""
    for reason, owner, names in _FUNCTIONS:
        for target in (getattr(owner, name, None) for name in names.split()):
            if target is not None:
                yield target, reason


def of_method(name: str) -> str | None:
    """The reason for which a method of tensors breaks the graph, or None."""
    reason = _METHODS.get(name)
    return None if name in ELEMENTS and config.capture_scalar_outputs else now(reason)


def now(reason: str | None) -> str | None:
    """The reason, unless the options say that what it is about stays in the graph."""
    shape = reason == "data-dependent-shape"
    return None if shape and config.capture_dynamic_output_shape_ops else reason


# What kernels that ask for numbers or memory say of fake tensors.
_ONLY_FAKES = "its data is not allocated yet", "tensor with symbolic sizes", "Cannot access storage"
_ERRORS: dict[Any, tuple[str, str]] = {
    DataDependentOutputException: (
        "data-dependent-value",
        "{} needs the elements of a tensor ({})",
    ),
    DynamicOutputShapeException: (
        "data-dependent-shape",
        "the shape of the result of {} depends on the data ({})",
    ),
    UnsupportedOperatorException: ("no-fake-kernel", "{} has no fake implementation ({})"),
}


def of_failure(
    target: Any, error: Exception, otherwise: str = "fake-tensor-error"
) -> tuple[str, str, str]:
    """Reason, detail and hint where an operation failed on fakes: eager Python runs it, and raises
    what there is to raise.
    """
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    for kind, (reason, detail) in _ERRORS.items():
        if isinstance(error, kind):
            return reason, detail.format(name, error.func), ""
    if type(error).__name__ == "GuardOnDataDependentSymNode":  # of a module that loads late
        hint = "say what is known of the number by torch._check, such as n >= 2"
        detail = f"what {name} does depends on a number that a tensor gave"
        return "data-dependent-shape", detail, hint
    if any(words in str(error) for words in _ONLY_FAKES):
        hint = "nothing: it runs in eager mode, between two graphs"
        return "no-fake-kernel", f"{name} asks for the memory of its arguments", hint
    text = f"{type(error).__name__}: {error}".strip().partition("\n")[0]  # then torch's own frames
    return otherwise, f"{name} failed on tensors of these shapes and types: {text}", ""
