"""Tensor guards in the form that the C checker takes, and the probe that answers many at once.

The checker can ask about each tensor through DLPack.  Faster, and exact about the conjugate and
negative bits too, is ``TensorGuards``, a class of torch's own: one call for a whole group.  It is
no public interface, so everything here goes on without it; and it may say no where the guards
hold (to one tensor in two places, or in another dispatch state), so only its yes is final.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dynacap.guards.process_state import Question
from dynacap.guards.tensor import torch_module
from dynacap.guards.tensor_kind import Tensor

ANY = -1

Asked = tuple[object, tuple[object, ...], object]  # function, arguments, answer

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


class PlacedTensor(NamedTuple):
    """A tensor guard and the register that holds the value."""

    guard: Tensor
    register: int


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


def split_questions(
    questions: Sequence[Question], batch: Sequence[PlacedTensor]
) -> tuple[tuple[Asked, ...], tuple[Asked, ...]]:
    """Those to ask on each check, and those that a probe of the batch answers by passing."""
    devices = {"any", "cpu"} | {tensor.guard.device.type for tensor in batch}
    always = tuple(q[:3] for q in questions if q.seen_in not in devices)
    return always, tuple(q[:3] for q in questions if q.seen_in in devices)


def lower_batch(batch: Sequence[PlacedTensor], questions: tuple[Asked, ...]) -> tuple[object, ...]:
    """A group of the C checker: its tensors, and what its probe answers besides."""
    sentinel = None
    if questions and not any(tensor.guard.device.type == "cpu" for tensor in batch):
        sentinel = _sentinel()
    make_probe = None
    if sentinel is not None or batch:
        make_probe = _ProbeMaker(tuple(tensor.guard for tensor in batch))
    return (
        tuple(_spec(tensor.guard) for tensor in batch),
        tuple(tensor.register for tensor in batch),
        make_probe,
        sentinel,
        questions,
    )


def _spec(guard: Tensor) -> tuple[object, ...]:
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
        guard.is_conj if guard.dtype.is_complex else ANY,
        guard.is_neg,
        ANY if guard.is_inference is None else guard.is_inference,
    )


def _codes(guard: Tensor) -> tuple[int, ...]:
    """DLPack's words for the device and the dtype."""
    number = guard.device.index
    dtype = _DTYPES.get(str(guard.dtype).removeprefix("torch."), _ASK_DTYPE)
    return (_DEVICES[guard.device.type], 0 if number is None else number, *dtype)


class _ProbeMaker:
    """Makes a group's probe out of the tensors that have just passed its guards."""

    def __init__(self, guards: tuple[Tensor, ...]) -> None:
        self._guards = guards

    def __call__(self, tensors: tuple[Any, ...]) -> object:
        """A builtin method that takes such tensors as a tuple and gives a bool; None if none is."""
        torch = torch_module()
        maker = _tensor_guards(torch)
        if maker is None or torch._C._len_torch_dispatch_stack():
            return None
        sizes = [list(guard.shape) for guard in self._guards]
        strides = [list(guard.stride or ()) for guard in self._guards]
        for extra in tensors[len(self._guards) :]:
            sizes.append(list(extra.shape))
            strides.append(list(extra.stride()))
        probe = maker(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        passes = probe.check(*tensors)
        return probe.check if passes else None


def _tensor_guards(torch: Any) -> Any:
    try:
        return torch._C._dynamo.guards.TensorGuards
    except AttributeError:
        return None


_the_sentinel: Any = None


def _sentinel() -> Any:
    """An ordinary tensor, for its dispatch keys; None where none can be made just now."""
    global _the_sentinel
    torch = torch_module()
    if _the_sentinel is None:
        if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
            return None
        made = torch.empty(0, device="cpu")
        _the_sentinel = made if type(made) is torch.Tensor else None
    return _the_sentinel
