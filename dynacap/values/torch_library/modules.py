"""nn.Module without its detours: attribute lookup, and calls of modules that have no hooks."""

from __future__ import annotations

import torch
import torch.nn.modules.module as module_file

from dynacap.guards.source import DictItem, InstanceDict, SysModule
from dynacap.values.base import NONE, Value, is_none
from dynacap.values.container import DictValue
from dynacap.values.data_model.attributes import get_attribute, instance_dict
from dynacap.values.natives import native
from dynacap.values.object import ObjectValue
from dynacap.values.tracer import Tracer

Module = torch.nn.Module
_REGISTRIES = ("_parameters", "_buffers", "_modules")
_WAYS = ("__call__", "_call_impl", "_compiled_call_impl")  # from a call to ``forward``
_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS = tuple(f"_global{name}" for name in _HOOKS)


@native(Module.__getattr__)
def module_getattr(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Parameters, buffers and submodules, in this order."""
    module, name = args
    attrs = instance_dict(t, module)
    key = name.constant()
    if attrs is not None:
        for registry in _REGISTRIES:
            held = attrs.get(t, registry)
            if isinstance(held, DictValue):
                found = held.get(t, key)
                if found is not None:
                    return found
    return t.raise_error(AttributeError, f"'{module.cls.__name__}' object has no attribute '{key}'")


def resolve_module_call(t: Tracer, module: Value) -> Value | None:
    """The bound ``forward`` that calling a module amounts to; None where there is more to it."""
    if not isinstance(module, ObjectValue) or not issubclass(module.cls, Module):
        return None
    cls = module.cls
    if any(t.lookup(cls, name) is not vars(Module)[name] for name in _WAYS):
        return None
    attrs = instance_dict(t, module)
    if attrs is None or not all(_is_empty(t, attrs.get(t, name)) for name in _HOOKS):
        return None
    if not all(is_none(attrs.get(t, name) or NONE) for name in _WAYS[1:]):
        return None
    if not all(_is_empty(t, _module_global(t, name)) for name in _GLOBAL_HOOKS):
        return None
    return get_attribute(t, module, "forward")


def _is_empty(t: Tracer, hooks: Value | None) -> bool:
    return isinstance(hooks, DictValue) and not hooks.keys(t)


_MODULE_GLOBALS = InstanceDict(SysModule(module_file.__name__))


def _module_global(t: Tracer, name: str) -> Value:
    return t.wrap(getattr(module_file, name), DictItem(_MODULE_GLOBALS, name))
