"""What the C checker is told of tensors and of torch's state."""

from collections.abc import Sequence

from dynacap.guards.process_state import Question
from dynacap.guards.tensor import torch_module
from dynacap.guards.tensor_kind import Tensor

ANY = -1

# DLPack's (code, bits, lanes); torch's narrow integers pass for int8 and uint8, so those are absent
# and told apart by the dtype itself.
_DTYPES = {
    "float16": (2, 16, 1),
    "float32": (2, 32, 1),
    "float64": (2, 64, 1),
    "bfloat16": (4, 16, 1),
    "int16": (0, 16, 1),
    "int32": (0, 32, 1),
    "int64": (0, 64, 1),
    "bool": (6, 8, 1),
    "complex64": (5, 64, 1),
    "complex128": (5, 128, 1),
}
_ASK_DTYPE = (ANY, ANY, ANY)
_DEVICES = {"cpu": 1, "cuda": 2}


def is_plain(guard: Tensor) -> bool:
    """Whether the guard is on a strided tensor of torch's own classes, on a CPU or CUDA device."""
    torch = torch_module()
    if torch is None or guard.stride is None:
        return False
    return (
        guard.expected.get() in (torch.Tensor, torch.nn.Parameter)
        and guard.layout is torch.strided
        and guard.device.type in _DEVICES
    )


def tensor_spec(guard: Tensor) -> tuple[object, ...]:
    """A plain tensor's guard, in the order of ``tensor_spec_init`` in ``tensor_check.c``."""
    ref = guard.expected
    return (
        ref.get() if ref.strong else ref.weak(),
        not ref.strong,
        guard.holds,
        guard.dtype,
        _codes(guard),
        guard.shape,
        guard.stride,
        guard.requires_grad,
        guard.is_conj,
        guard.is_neg,
        guard.dtype.is_complex,
        ANY if guard.is_inference is None else guard.is_inference,
    )


def _codes(guard: Tensor) -> tuple[int, ...]:
    """DLPack's words for the device and the dtype."""
    number = guard.device.index
    dtype = _DTYPES.get(str(guard.dtype).removeprefix("torch."), _ASK_DTYPE)
    return (_DEVICES[guard.device.type], 0 if number is None else number, *dtype)


def lower_state(questions: Sequence[Question], tests: tuple[object, ...]) -> tuple[object, ...]:
    """Questions to ask always, those that the probe stands for, its maker, and other tests."""
    always = tuple(q[:3] for q in questions if not q.in_dispatch_state)
    probed = tuple(q[:3] for q in questions if q.in_dispatch_state)
    return (always, probed, make_probe, tests)


def make_probe() -> "tuple[object, tuple[object, ...]] | None":
    """A builtin method and its arguments that tell whether the dispatch state stays as it is now.

    ``TensorGuards`` is a class of torch's own for guards on tensors; shown one ordinary tensor it
    compares the dispatch keys that an operation would see, and so notices what changes them:
    inference mode, autocast, dispatch modes, transforms such as vmap.  It is no public interface;
    without it, each is asked by itself.
    """
    torch = torch_module()
    try:
        maker = torch._C._dynamo.guards.TensorGuards
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
            return None  # the user's modes would see the sample
    except AttributeError:
        return None
    sample = torch.empty(0, device="cpu")
    if type(sample) is not torch.Tensor:
        return None
    probe = maker(sample, dynamic_dims_sizes=[[0]], dynamic_dims_strides=[[1]])
    return (probe.check, (sample,)) if probe.check(sample) else None
