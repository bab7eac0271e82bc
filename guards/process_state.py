"""The guard on what is set for the whole process or thread and changes results."""

import sys
from dataclasses import dataclass, field, fields
from typing import Any

from dynacap.guards.kinds import Guard, Origin, register
from dynacap.guards.ref import Ref
from dynacap.guards.source import Source
from dynacap.guards.tensor import torch_module

AUTOCAST_DEVICES = ("cpu", "cuda")


@register
@dataclass(frozen=True)
class ProcessState(Guard):
    """torch's modes and defaults, all that hold in the calling thread.

    ``autocast`` has ``(device, dtype)`` for each device where it is on; ``function_modes`` and
    ``dispatch_modes`` are the modes that are active, outermost first.  ``set_default_device`` and
    ``with device:`` are such a mode, given here as the device; ``default_device`` is what the
    default tensor type says.
    """

    kind = "state"
    grad_mode: bool
    inference_mode: bool
    autocast: tuple[tuple[str, object], ...]
    autocast_cache: bool
    default_dtype: object
    default_device: str
    deterministic: bool
    deterministic_warn_only: bool
    torch_function: str
    function_modes: tuple[object, ...]
    dispatch_modes: tuple[Ref, ...]
    origin: Origin | None = field(default=None, compare=False)

    @classmethod
    def current(cls, origin: Origin | None = None) -> "ProcessState":
        """The state as it is now."""
        torch = torch_module()
        if torch is None:
            raise RuntimeError("torch is not imported, so it has no state to guard")
        return cls(**dict(zip(_NAMES, _read(torch), strict=True)), origin=origin)  # type: ignore[arg-type]

    @property
    def sources(self) -> tuple[Source, ...]:
        return ()

    def holds(self, *values: object) -> bool:
        torch = torch_module()
        return torch is not None and _read(torch) == self._facts()

    def _facts(self) -> tuple[object, ...]:
        return tuple(getattr(self, f.name) for f in fields(self) if f.name != "origin")

    def subject(self) -> str:
        return "torch's state"

    def expectation(self) -> str:
        return "is as at capture: " + _told(self._facts())

    def finding(self, *values: object) -> str:
        torch = torch_module()
        return "no torch" if torch is None else _told(_read(torch), unlike=self._facts())


_NAMES = [f.name for f in fields(ProcessState) if f.name != "origin"]
_USUAL = {
    "grad_mode": True,
    "autocast_cache": True,
    "torch_function": "enabled",
    "default_device": "cpu",
}


def _told(facts: tuple[object, ...], unlike: tuple[object, ...] | None = None) -> str:
    """The facts that differ from ``unlike``, or else those worth a word."""
    told = []
    for position, (name, fact) in enumerate(zip(_NAMES, facts, strict=True)):
        usual = fact in (False, None, ()) or _USUAL.get(name) == fact
        if (unlike is None and (not usual or name == "grad_mode")) or (
            unlike is not None and unlike[position] != fact
        ):
            told.append(f"{name}={fact}")
    return ", ".join(told)


def _read(torch: Any) -> tuple[object, ...]:
    c = torch._C
    return (
        c.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        _autocast(torch),
        torch.is_autocast_cache_enabled(),
        torch.get_default_dtype(),
        c._get_default_device(),
        c._get_deterministic_algorithms(),
        c._get_deterministic_algorithms_warn_only(),
        _torch_function(c),
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


def _autocast(torch: Any) -> tuple[tuple[str, object], ...]:
    return tuple(
        (device, torch.get_autocast_dtype(device))
        for device in AUTOCAST_DEVICES
        if torch.is_autocast_enabled(device)
    )


def _torch_function(c: Any) -> str:
    if c._is_torch_function_all_disabled():
        return "disabled"
    return "enabled" if c._is_torch_function_enabled() else "disabled for subclasses"
