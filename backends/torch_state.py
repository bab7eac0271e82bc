"""The part of torch's state that graphs may change, as one value that can be put back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch._functorch.pyfunctorch import temporarily_clear_interpreter_stack
from torch.autograd import forward_ad
from torch.utils._device import DeviceContext

_AUTOCAST_DEVICES = ("cpu", "cuda")
_functorch: Any = torch._C._functorch
_hooks: Any = torch._C._autograd
_as_subclass: Callable[..., torch.Tensor] = torch.Tensor.as_subclass
why_no_hooks: Callable[[], str | None] = _hooks._saved_tensors_hooks_get_disabled_error_message


class State(NamedTuple):
    """What :func:`restore_state` puts back."""

    recording: bool
    cached_casts: bool
    nesting: int
    casts: tuple[tuple[bool, torch.dtype], ...]
    transforms: int
    no_hooks: str | None  # the error of who sets hooks of saved tensors


def current_state() -> State:
    """The state as it is now, in this thread."""
    casts = tuple(
        (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
        for device in _AUTOCAST_DEVICES
    )
    return State(
        torch.is_grad_enabled(),
        torch.is_autocast_cache_enabled(),
        _autocast_nesting(),
        casts,
        transform_depth(),
        why_no_hooks(),
    )


def refusal() -> str | None:
    """Why nothing can be captured just now, or None: modes of the user's that see every operation
    would see those of capture too.
    """
    if torch._C._len_torch_dispatch_stack():
        return "a torch dispatch mode is active"
    if _functorch.peek_interpreter_stack() is not None:
        return "a torch.func transform is active"
    if forward_ad._current_level >= 0:
        return "a forward-mode gradient is taken"
    for index in range(torch._C._len_torch_function_stack()):
        if type(torch._C._get_function_stack_at(index)) is not DeviceContext:
            return "a torch function mode is active"
    return None


def restore_state(state: State) -> None:
    """Have that state again, whatever a graph left."""
    leave_transforms(state.transforms)
    forbid_hooks(state.no_hooks)
    torch._C._set_grad_enabled(state.recording)
    torch.set_autocast_cache_enabled(state.cached_casts)
    while _autocast_nesting() < state.nesting:
        torch.autocast_increment_nesting()
    while _autocast_nesting() > state.nesting:
        leave_autocast()
    for device, (enabled, dtype) in zip(_AUTOCAST_DEVICES, state.casts, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


def leave_autocast() -> None:
    """Leave one block of autocast, which keeps its casts until the last."""
    if torch.autocast_decrement_nesting() == 0:
        torch.clear_autocast_cache()


def _autocast_nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def transform_depth() -> int:
    """How many transforms of torch.func are active."""
    level: int = _functorch.maybe_current_level() or 0
    return level


def is_tracked(tensor: torch.Tensor) -> bool:
    """Whether a tensor is of a transform's, active or over: batched, or recorded for a gradient."""
    return bool(_functorch.is_functorch_wrapped_tensor(tensor))


def leave_transforms(depth: int) -> None:
    """Leave the transforms above that depth, which something raised out of, and the level of
    forward mode that the first ``jvp`` among them enters.
    """
    forward = False
    while transform_depth() > depth:
        kind = _functorch.peek_interpreter_stack().key()
        forward = forward or kind == _functorch.TransformType.Jvp
        _functorch.pop_dynamic_layer_stack()
    if forward:
        with contextlib.suppress(RuntimeError):  # it raised before, or behind
            torch._C._exit_dual_level(level=0)


def outside_transforms() -> contextlib.AbstractContextManager[Any]:
    """Have no transform be active for a while."""
    return temporarily_clear_interpreter_stack() if transform_depth() else contextlib.nullcontext()


def as_outside() -> contextlib.AbstractContextManager[Any]:
    """Have tensors be made for a while as those from outside were: what a region enters, a
    transform or inference mode, makes nothing else of them.
    """
    if not torch.is_inference_mode_enabled():
        return outside_transforms()
    stack = contextlib.ExitStack()
    stack.enter_context(torch.inference_mode(False))
    stack.enter_context(outside_transforms())
    return stack


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor as graphs take it: of no subclass, with memory and history, in any mode."""
    with as_outside(), torch.enable_grad():
        return _as_subclass(tensor, torch.Tensor)


def hooks_of_saved_tensors() -> bool:
    """Whether hooks are told of the tensors that autograd saves: one of them may raise, as a
    checkpoint's does to stop what it runs again, and has seen the call that it came out of.
    """
    return _hooks._top_saved_tensors_default_hooks(True) is not None


def forbid_hooks(message: str | None) -> None:
    """Have hooks of saved tensors raise that; allow them by None."""
    if message is None:
        _hooks._saved_tensors_hooks_enable()
    else:
        _hooks._saved_tensors_hooks_disable(message)
