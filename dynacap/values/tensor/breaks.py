"""What cannot go into a graph: the operations, why, and what the user can do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

from dynacap.config import config
from dynacap.values.tracer import Tracer


class Refusal(NamedTuple):
    """A break's reason and hint."""

    reason: str
    hint: str


TO_PYTHON = Refusal(
    "data-dependent-value",
    "keep the value in a tensor (torch.where, torch.clamp, masks), or read it outside the compiled"
    " function",
)
BRANCH = Refusal(
    "data-dependent-branch",
    "use torch.where or torch.cond, or read the value outside the compiled function",
)
SHAPE = Refusal(
    "data-dependent-shape",
    "use an operation whose result has the same shape for all data (torch.where, masked_fill,"
    " topk), or do this outside the compiled function",
)
AUTOGRAD = Refusal(
    "autograd-call", "call it outside the compiled function; compile the forward pass"
)
HOOK = Refusal("tensor-hook", "register the hook outside the compiled function")
STORAGE = Refusal("tensor-storage", "work on the tensor's elements, not on its memory")
RANDOM_STATE = Refusal("random-state", "seed outside the compiled function")
IO = Refusal("torch-io", "do it outside the compiled function")
SUBCLASS = Refusal("tensor-subclass", "pass a plain torch.Tensor")
PRINTING = Refusal("tensor-print", "print outside the compiled function, or print the shape only")
NUMPY = Refusal("numpy-interop", "")
FLAG = Refusal("tensor-field-write", "set it outside the compiled function")
GLOBAL_STATE = Refusal("torch-global-state", "set it outside the compiled function")
TRANSFORM = Refusal("function-transform", "apply it outside the compiled function")

UNKNOWN_SIZE = Refusal(
    "data-dependent-shape", "say what is known of the number by torch._check, such as n >= 2"
)

# Methods that read elements, and of which types the numbers stay in the graph if they may.
ELEMENTS: dict[str, tuple[type, ...]] = {
    "item": (int, float),
    "tolist": (int, float),
    "__int__": (int,),
    "__index__": (int,),
    "__float__": (float,),
}

# Methods and functions by name: the graph could not hold their results or effects.
_METHODS: dict[str, Refusal] = {}
_FUNCTIONS: dict[int, tuple[Any, Refusal]] = {}


def _refuse_methods(refusal: Refusal, names: str) -> None:
    _METHODS.update(dict.fromkeys(names.split(), refusal))


_refuse_methods(TO_PYTHON, "item tolist __int__ __float__ __complex__ __index__ __long__")
_refuse_methods(TO_PYTHON, "__bool__ __nonzero__ is_nonzero equal allclose __contains__")
_refuse_methods(SHAPE, "nonzero masked_select argwhere unique unique_consecutive")
_refuse_methods(AUTOGRAD, "backward retain_grad _backward reinforce")
_refuse_methods(HOOK, "register_hook register_post_accumulate_grad_hook")
_refuse_methods(
    STORAGE,
    "data_ptr storage untyped_storage _typed_storage storage_type share_memory_ set_ is_shared"
    " is_set_to _storage_offset storage_offset pin_memory is_pinned record_stream resize_ resize"
    " resize_as resize_as_ resize_as_sparse_ _is_view _use_count const_data_ptr"
    " mutable_data_ptr __hash__",
)
_refuse_methods(
    IO, "__reduce_ex__ __reduce__ __setstate__ __deepcopy__ __dir__ module_load __delitem__"
)
_refuse_methods(PRINTING, "__repr__ __format__ __str__")
_refuse_methods(NUMPY, "__array__ __array_wrap__ __dlpack__ __dlpack_device__ map_ map2_")
_refuse_methods(SUBCLASS, "as_subclass _make_subclass _make_wrapper_subclass to_sparse to_dense")
_refuse_methods(SUBCLASS, "to_sparse_coo to_sparse_csr to_mkldnn coalesce values indices _values")


def _refuse(refusal: Refusal, owner: Any, names: str) -> None:
    for name in names.split():
        found = getattr(owner, name, None)
        if found is not None:
            _FUNCTIONS[id(found)] = (found, refusal)


_refuse(TO_PYTHON, torch, "equal allclose is_nonzero")
_refuse(
    SHAPE, torch, "nonzero masked_select argwhere unique unique_consecutive bincount combinations"
)
_refuse(IO, torch, "save load from_file")
_refuse(NUMPY, torch, "from_dlpack frombuffer asarray to_dlpack")
_refuse(AUTOGRAD, torch.autograd, "backward")
_refuse(RANDOM_STATE, torch, "manual_seed seed initial_seed get_rng_state set_rng_state")
_refuse(
    RANDOM_STATE,
    torch.cuda,
    "manual_seed manual_seed_all seed seed_all get_rng_state set_rng_state initial_seed",
)
_refuse(
    GLOBAL_STATE,
    torch,
    "set_default_dtype set_default_device set_default_tensor_type use_deterministic_algorithms"
    " set_deterministic_debug_mode set_float32_matmul_precision set_num_threads"
    " set_num_interop_threads set_flush_denormal set_warn_always set_printoptions",
)
_refuse(TRANSFORM, torch, "cond while_loop")
_refuse(TRANSFORM, torch.func, "functionalize linearize")


def refusals() -> Iterable[tuple[Any, Refusal]]:
    """The functions that break, for registration."""
    return _FUNCTIONS.values()


def method_refusal(name: str) -> Refusal | None:
    """Why a method of tensors breaks the graph, or None."""
    refusal = _METHODS.get(name)
    return None if name in ELEMENTS and config.capture_scalar_outputs else now(refusal)


def now(refusal: Refusal | None) -> Refusal | None:
    """The refusal, unless the options say that what it is about stays in the graph."""
    return None if refusal is SHAPE and config.capture_dynamic_output_shape_ops else refusal


def refuse(t: Tracer, refusal: Refusal, detail: str) -> NoReturn:
    """Break for that reason."""
    t.graph_break(refusal.reason, detail, refusal.hint)


def break_on_error(
    t: Tracer, target: Any, error: Exception, otherwise: str = "fake-tensor-error"
) -> NoReturn:
    """An operation failed on fakes: eager Python runs it, and raises what there is to raise."""
    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    for kind, explain in _ERRORS.items():
        if isinstance(error, kind):
            refusal, detail = explain(name, error)
            refuse(t, refusal, detail)
    if type(error).__name__ == "GuardOnDataDependentSymNode":  # of a module that loads late
        refuse(t, UNKNOWN_SIZE, f"what {name} does depends on a number that a tensor gave")
    if any(words in str(error) for words in _ONLY_FAKES):
        hint = "nothing: it runs in eager mode, between two graphs"
        t.graph_break("no-fake-kernel", f"{name} asks for the memory of its arguments", hint)
    text = f"{type(error).__name__}: {error}".strip().partition("\n")[0]  # then torch's own frames
    t.graph_break(otherwise, f"{name} failed on tensors of these shapes and types: {text}")


# What kernels that ask for numbers or memory say of fake tensors.
_ONLY_FAKES = "its data is not allocated yet", "tensor with symbolic sizes", "Cannot access storage"


def _data_dependent(name: str, error: Any) -> tuple[Refusal, str]:
    return TO_PYTHON, f"{name} needs the elements of a tensor ({error.func})"


def _dynamic_shape(name: str, error: Any) -> tuple[Refusal, str]:
    return SHAPE, f"the shape of the result of {name} depends on the data ({error.func})"


def _no_kernel(name: str, error: Any) -> tuple[Refusal, str]:
    hint = "register a fake implementation with torch.library.register_fake"
    return Refusal("no-fake-kernel", hint), f"{name} has no fake implementation ({error.func})"


_ERRORS: dict[type[Exception], Callable[[str, Any], tuple[Refusal, str]]] = {
    DataDependentOutputException: _data_dependent,
    DynamicOutputShapeException: _dynamic_shape,
    UnsupportedOperatorException: _no_kernel,
}
