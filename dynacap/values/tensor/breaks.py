"""What cannot go into a graph: the operations, why, and what the user can do about it."""

from __future__ import annotations

from typing import Any, NoReturn

from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from dynacap.config import config
from dynacap.values.tracer import Tracer

# Methods that read elements, and of which types the numbers stay in the graph if they may.
ELEMENTS: dict[str, tuple[type, ...]] = {
    "item": (int, float),
    "tolist": (int, float),
    "__int__": (int,),
    "__index__": (int,),
    "__float__": (float,),
}

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
"""Methods whose results or effects no graph could hold, and the reasons to break for them."""


def method_refusal(name: str) -> str | None:
    """The reason for which a method of tensors breaks the graph, or None."""
    reason = _METHODS.get(name)
    return None if name in ELEMENTS and config.capture_scalar_outputs else now(reason)


def now(reason: str | None) -> str | None:
    """The reason, unless the options say that what it is about stays in the graph."""
    shape = reason == "data-dependent-shape"
    return None if shape and config.capture_dynamic_output_shape_ops else reason


def break_on_error(
    t: Tracer, target: Any, error: Exception, otherwise: str = "fake-tensor-error"
) -> NoReturn:
    """An operation failed on fakes: eager Python runs it, and raises what there is to raise."""
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    for kind, (reason, detail) in _ERRORS.items():
        if isinstance(error, kind):
            t.graph_break(reason, detail.format(name, error.func))
    if type(error).__name__ == "GuardOnDataDependentSymNode":  # of a module that loads late
        hint = "say what is known of the number by torch._check, such as n >= 2"
        detail = f"what {name} does depends on a number that a tensor gave"
        t.graph_break("data-dependent-shape", detail, hint)
    if any(words in str(error) for words in _ONLY_FAKES):
        hint = "nothing: it runs in eager mode, between two graphs"
        t.graph_break("no-fake-kernel", f"{name} asks for the memory of its arguments", hint)
    text = f"{type(error).__name__}: {error}".strip().partition("\n")[0]  # then torch's own frames
    t.graph_break(otherwise, f"{name} failed on tensors of these shapes and types: {text}")


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
