"""The part of torch's state that graphs may change, as one value that can be put back."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_AUTOCAST_DEVICES = ("cpu", "cuda")
_functorch: Any = torch._C._functorch
_saved_tensors_hooks: Any = torch._C._autograd._top_saved_tensors_default_hooks


class State(NamedTuple):
    """What :func:`restore_state` puts back."""

    recording: bool
    cached_casts: bool
    nesting: int
    casts: tuple[tuple[bool, torch.dtype], ...]
    transforms: int


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
    )


def restore_state(state: State) -> None:
    """Have that state again, whatever a graph left."""
    leave_transforms(state.transforms)
    torch._C._set_grad_enabled(state.recording)
    torch.set_autocast_cache_enabled(state.cached_casts)
    while _autocast_nesting() < state.nesting:
        torch.autocast_increment_nesting()
    while _autocast_nesting() > state.nesting:
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
    for device, (enabled, dtype) in zip(_AUTOCAST_DEVICES, state.casts, strict=True):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)


def _autocast_nesting() -> int:
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def transform_depth() -> int:
    """How many transforms of torch.func are active."""
    level: int = _functorch.maybe_current_level() or 0
    return level


def leave_transforms(depth: int) -> None:
    """Leave the transforms above that depth, which something raised out of."""
    while transform_depth() > depth:
        _functorch.pop_dynamic_layer_stack()


def hooks_of_saved_tensors() -> bool:
    """Whether hooks are told of the tensors that autograd saves: one of them may raise, as a
    checkpoint's does to stop what it runs again, and has seen the call that it came out of.
    """
    return _saved_tensors_hooks(True) is not None
