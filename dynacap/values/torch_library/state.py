"""Functions that set torch's state: nodes of the graph, whose effect is real during capture too.

``torch.no_grad`` and its kin are classes written in Python: they are inlined like a user's, down to
the C functions here.  When capture ends the state is put back; the graph sets it again at run time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.grad_mode import _enter_inference_mode, _exit_inference_mode

from dynacap.values.base import Const, NotConstant, Value
from dynacap.values.data_model.attribute_writes import set_attribute
from dynacap.values.data_model.attributes import find_attribute
from dynacap.values.natives import native
from dynacap.values.tensor.value import OpaqueValue
from dynacap.values.tracer import Tracer

Setter = Callable[..., Any]


def _sets(setter: Setter, current: Callable[..., Any], *, per_device: bool = False) -> None:
    """A setter whose arguments are constants; ``current`` reads what it sets."""

    @native(setter)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = _constants(t, setter, [*args, *kwargs.values()])
        key = given[:1] if per_device else []
        before = current(*key)
        return _apply(t, setter, given, lambda: setter(*key, before))


def _constants(t: Tracer, setter: Setter, values: list[Value]) -> list[Any]:
    try:
        return [value.constant() for value in values]
    except NotConstant:
        return t.graph_break("torch-global-state", f"{setter.__name__} with what is no constant")


def _apply(t: Tracer, setter: Setter, given: list[Any], undo: Callable[[], object]) -> Value:
    """Make the change now, note how to undo it, and put it into the graph."""
    try:
        result = setter(*given)
    except Exception as error:
        t.raise_real(error)
    family: Any = t.tensors
    family.when_capture_ends(undo)
    family.add_state_node(t, setter, tuple(given))
    return t.wrap(result, None)


_sets(torch._C._set_grad_enabled, torch.is_grad_enabled)
_sets(torch.set_autocast_enabled, torch.is_autocast_enabled, per_device=True)
_sets(torch.set_autocast_dtype, torch.get_autocast_dtype, per_device=True)
_sets(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled)
_sets(torch.set_anomaly_enabled, torch.is_anomaly_enabled)


@native(torch.autocast_increment_nesting)
def increment_nesting(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Autocast keeps its cache of casts while the count is above 0."""
    return _apply(t, torch.autocast_increment_nesting, [], _leave_autocast)


def _leave_autocast() -> None:
    if torch.autocast_decrement_nesting() == 0:
        torch.clear_autocast_cache()  # it may hold casts of fake tensors


@native(torch.autocast_decrement_nesting)
def decrement_nesting(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The counterpart."""
    return _apply(t, torch.autocast_decrement_nesting, [], torch.autocast_increment_nesting)


@native(torch.clear_autocast_cache)
def clear_cache(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Forget the casts."""
    return _apply(t, torch.clear_autocast_cache, [], lambda: None)


@native(torch.inference_mode.__enter__)
def enter_inference_mode(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """C++ keeps the mode in an object of its own, which the graph makes and hands on."""
    mode = find_attribute(t, args[0], "mode")
    assert mode is not None
    (enabled,) = _constants(t, _enter_inference_mode, [mode])
    context = _enter_inference_mode(enabled)
    family: Any = t.tensors
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
    family: Any = t.tensors
    _close(family, family.contexts.pop(id(held)))
    family.add_state_node(t, _exit_inference_mode, (held.node,))
    return Const(None)


def _close(family: Any, context: Any) -> None:
    if context in family.open_contexts:
        family.open_contexts.remove(context)
        context.__exit__(None, None, None)
