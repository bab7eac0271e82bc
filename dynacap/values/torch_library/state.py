"""Functions that set torch's state: nodes of the graph, whose effect is real during capture too.

``torch.no_grad`` and its kin are classes written in Python: they are inlined like a user's, down to
the C functions here.  When capture ends the state is put back; the graph sets it again at run time.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.autograd.grad_mode import _enter_inference_mode, _exit_inference_mode

from dynacap.backends.torch_state import forbid_hooks, leave_autocast, why_no_hooks
from dynacap.values.base import Const, NotConstant, Value
from dynacap.values.data_model.attribute_writes import set_attribute
from dynacap.values.data_model.attributes import find_attribute
from dynacap.values.natives import native
from dynacap.values.tensor.value import OpaqueValue
from dynacap.values.tracer import Tracer

Setter = Callable[..., Any]
Undo = Callable[..., Callable[[], object]]
_hooks: Any = torch._C._autograd


def changes(*setters: Setter, undo: Undo, current: Any = None) -> None:
    """Functions of constants; ``undo``, asked with the same before, gives what takes it back;
    ``current`` reads what they set.
    """

    for setter in setters:
        native(setter)(functools.partial(change, setter, undo, current))


def change(
    setter: Setter, undo: Undo, current: Any, t: Tracer, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Make such a call now, and have the graph make it."""
    given = _constants(t, setter, args)
    named = dict(zip(kwargs, _constants(t, setter, kwargs.values()), strict=True))
    undone = undo(*given, **named)
    try:
        result = setter(*given, **named)
    except Exception as error:
        t.raise_real(error)
    family = t.tensors
    family.when_capture_ends(undone)
    family.set_here.add(current)
    family.add_state_node(t, setter, tuple(given), named)
    return t.wrap(result, None)


def _constants(t: Tracer, setter: Setter, values: Iterable[Value]) -> list[Any]:
    try:
        return [value.constant() for value in values]
    except NotConstant:
        return t.graph_break("torch-global-state", f"{setter.__name__} with what is no constant")


def sets(setter: Setter, current: Callable[..., Any], *, per_device: bool = False) -> None:
    """A setter of what ``current`` reads."""

    def undo(*given: Any, **named: Any) -> Callable[[], object]:
        key = (*given, named.get("device_type"))[:1] if per_device else ()
        return functools.partial(setter, *key, current(*key))

    changes(setter, undo=undo, current=current)


sets(torch._C._set_grad_enabled, torch.is_grad_enabled)
sets(torch.set_autocast_enabled, torch.is_autocast_enabled, per_device=True)
sets(torch.set_autocast_dtype, torch.get_autocast_dtype, per_device=True)
sets(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled)
sets(torch.set_anomaly_enabled, torch.is_anomaly_enabled)


# Autocast keeps its cache of casts, those of fake tensors too, while the count is above 0.
changes(torch.autocast_increment_nesting, undo=lambda: leave_autocast)
changes(torch.autocast_decrement_nesting, undo=lambda: torch.autocast_increment_nesting)
changes(torch.clear_autocast_cache, undo=lambda: lambda: None)
changes(
    _hooks._saved_tensors_hooks_disable,
    _hooks._saved_tensors_hooks_enable,
    undo=lambda *_: functools.partial(forbid_hooks, why_no_hooks()),
    current=why_no_hooks,
)


@native(torch.inference_mode.__enter__)
def enter_inference_mode(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """C++ keeps the mode in an object of its own, which the graph makes and hands on."""
    mode = find_attribute(t, args[0], "mode")
    assert mode is not None
    (enabled,) = _constants(t, _enter_inference_mode, [mode])
    context = _enter_inference_mode(enabled)
    family = t.tensors
    family.open_contexts.append(context)
    family.when_capture_ends(lambda: _close(family, context))
    node = family.add_state_node(t, _enter_inference_mode, (enabled,))
    held = OpaqueValue(node, type(context))
    family.contexts[id(held)] = context
    set_attribute(t, args[0], "_inference_mode_context", held)
    return Const(None)


@native(torch.inference_mode.__exit__)
def exit_inference_mode(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Leave the mode; one that was entered outside is left outside."""
    held = find_attribute(t, args[0], "_inference_mode_context")
    if not isinstance(held, OpaqueValue):
        return t.graph_break("inference-mode", "inference mode was entered before this point")
    family = t.tensors
    _close(family, family.contexts.pop(id(held)))
    family.add_state_node(t, _exit_inference_mode, (held.node,))
    return Const(None)


def _close(family: Any, context: Any) -> None:
    if context in family.open_contexts:
        family.open_contexts.remove(context)
        context.__exit__(None, None, None)
