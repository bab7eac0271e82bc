"""The guard on what is set for the whole process or thread and changes results."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from dynacap.guards.kinds import Guard, Origin, register
from dynacap.guards.ref import Ref
from dynacap.guards.source import Source
from dynacap.guards.tensor import torch_module


class Question(NamedTuple):
    """One call into torch and the answer that is expected.

    ``in_dispatch_state``: whether a change of the answer changes the dispatch keys that an
    operation on a tensor of the CPU sees.
    """

    function: Any
    arguments: tuple[object, ...]
    expected: object
    in_dispatch_state: bool = False


@register
@dataclass(frozen=True)
class ProcessState(Guard):
    """torch's modes and defaults, all that hold in the calling thread.

    ``autocast`` has ``(device, dtype, whether casts are cached)`` for each device where it is on,
    of those that this build of torch can compute on.  ``function_modes`` and ``dispatch_modes`` are
    the modes that are active, outermost first: ``set_default_device`` and ``with device:`` are such
    a mode, given here as the device.  ``default_device`` is what the default tensor type says,
    ``functorch`` the depth of transforms such as vmap around the call, ``forward_level`` that of
    forward-mode gradients (-1: none are taken).
    """

    kind = "state"
    grad_mode: bool
    inference_mode: bool
    autocast: tuple[tuple[str, object, bool], ...]
    default_dtype: object
    default_device: str
    deterministic: bool
    deterministic_warn_only: bool
    torch_function: str
    functorch: int | None
    forward_level: int
    function_modes: tuple[object, ...]
    dispatch_modes: tuple[Ref, ...]
    origin: Origin | None = field(default=None, compare=False)

    @classmethod
    def current(cls, origin: Origin | None = None) -> "ProcessState":
        """The state as it is now."""
        torch = torch_module()
        if torch is None:
            raise RuntimeError("torch is not imported, so it has no state to guard")
        facts: dict[str, Any] = dict(zip(_NAMES, _read(torch), strict=True))
        return cls(**facts, origin=origin)

    @property
    def sources(self) -> tuple[Source, ...]:
        return ()

    @property
    def refs(self) -> tuple[Ref, ...]:
        modes = (*self.function_modes, *self.dispatch_modes)
        return tuple(mode for mode in modes if isinstance(mode, Ref))

    def holds(self, *values: object) -> bool:
        torch = torch_module()
        return torch is not None and _read(torch) == self._facts()

    def _facts(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in _NAMES)

    def subject(self) -> str:
        return "torch's state"

    def expectation(self) -> str:
        return "is as at capture: " + _told(self._facts())

    def finding(self, *values: object) -> str:
        torch = torch_module()
        return "no torch" if torch is None else _told(_read(torch), unlike=self._facts())

    def questions(self) -> "tuple[Question, ...] | None":
        """Calls that together ask what ``holds`` does; None where plain answers do not suffice."""
        torch = torch_module()
        if torch is None or self.function_modes or self.dispatch_modes or self.functorch:
            return None
        return tuple(self._questions(torch))

    def _questions(self, torch: Any) -> Iterator[Question]:
        c = torch._C
        yield Question(c.is_grad_enabled, (), self.grad_mode)
        yield Question(torch.get_default_dtype, (), self.default_dtype)
        yield Question(c._get_deterministic_algorithms, (), self.deterministic)
        yield Question(c._get_deterministic_algorithms_warn_only, (), self.deterministic_warn_only)
        yield Question(_forward_mode(torch).get, (_LEVEL,), self.forward_level)
        yield Question(c._len_torch_function_stack, (), 0)
        yield from self._torch_function_questions(c)
        yield Question(torch.is_inference_mode_enabled, (), self.inference_mode, True)
        yield Question(c._len_torch_dispatch_stack, (), 0, True)
        yield Question(c._functorch.maybe_current_level, (), self.functorch, True)
        if _has_cuda(torch):  # no other default tensor type can be set elsewhere
            yield Question(c._get_default_device, (), self.default_device)
        enabled = {device: (dtype, cached) for device, dtype, cached in self.autocast}
        for device in _autocast_devices(torch):
            on_cpu = device == "cpu"
            yield Question(torch.is_autocast_enabled, (device,), device in enabled, on_cpu)
            if device in enabled:
                dtype, cached = enabled[device]
                yield Question(torch.get_autocast_dtype, (device,), dtype)
                yield Question(torch.is_autocast_cache_enabled, (), cached)

    def _torch_function_questions(self, c: Any) -> Iterator[Question]:
        yield Question(c._is_torch_function_enabled, (), self.torch_function == "enabled")
        if self.torch_function != "enabled":
            disabled = self.torch_function == "disabled"
            yield Question(c._is_torch_function_all_disabled, (), disabled)


_NAMES = [f.name for f in fields(ProcessState) if f.name != "origin"]
_USUAL = {"torch_function": "enabled", "default_device": "cpu", "forward_level": -1}
_LEVEL = "_current_level"  # torch keeps it nowhere else that can be read


def _told(facts: tuple[object, ...], unlike: tuple[object, ...] | None = None) -> str:
    """The facts that differ from ``unlike``, or else those worth a word."""
    told = []
    for position, (name, fact) in enumerate(zip(_NAMES, facts, strict=True)):
        worth = name == "grad_mode" or not (fact in (False, None, ()) or _USUAL.get(name) == fact)
        if worth if unlike is None else unlike[position] != fact:
            told.append(f"{name}={fact}")
    return ", ".join(told)


def _read(torch: Any) -> tuple[object, ...]:
    c = torch._C
    return (
        c.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        _autocast(torch),
        torch.get_default_dtype(),
        c._get_default_device(),
        c._get_deterministic_algorithms(),
        c._get_deterministic_algorithms_warn_only(),
        _torch_function(c),
        c._functorch.maybe_current_level(),
        _forward_mode(torch)[_LEVEL],
        tuple(_mode(c._get_function_stack_at(i)) for i in range(c._len_torch_function_stack())),
        tuple(Ref(c._get_dispatch_stack_at(i)) for i in range(c._len_torch_dispatch_stack())),
    )


def _mode(mode: Any) -> object:
    """What tells a mode from others: a default device is the same whoever set it."""
    devices = sys.modules.get("torch.utils._device")
    if devices is not None and type(mode) is devices.DeviceContext:
        device: object = mode.device
        return device
    return Ref(mode)


def _has_cuda(torch: Any) -> bool:
    built: bool = torch.backends.cuda.is_built()
    return built


def _forward_mode(torch: Any) -> dict[str, Any]:
    names: dict[str, Any] = vars(torch.autograd.forward_ad)
    return names


def _autocast_devices(torch: Any) -> tuple[str, ...]:
    return ("cpu", "cuda") if _has_cuda(torch) else ("cpu",)


def _autocast(torch: Any) -> tuple[tuple[str, object, bool], ...]:
    return tuple(
        (device, torch.get_autocast_dtype(device), torch.is_autocast_cache_enabled())
        for device in _autocast_devices(torch)
        if torch.is_autocast_enabled(device)
    )


def _torch_function(c: Any) -> str:
    if c._is_torch_function_all_disabled():
        return "disabled"
    return "enabled" if c._is_torch_function_enabled() else "disabled for subclasses"
