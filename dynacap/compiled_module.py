"""A compiled ``nn.Module``: an instance of the user's class that shares all its state."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

import torch

_SLOT = "_dynacap_state"
_classes: weakref.WeakKeyDictionary[type, type] = weakref.WeakKeyDictionary()


class _State:
    """What a compiled module has of its own."""

    __slots__ = ("again", "call", "module")

    def __init__(
        self, module: torch.nn.Module, call: Callable[..., Any], again: Callable[[Any], Any]
    ) -> None:
        self.module = module
        self.call = call
        self.again = again


def compile_module(
    module: torch.nn.Module, compile_call: Callable[[Any], Any], again: Callable[[Any], Any]
) -> torch.nn.Module:
    """An object like ``module`` whose calls are compiled.

    It shares the module's ``__dict__``: parameters, buffers, hooks, ``training`` and every other
    attribute are those of the module, whichever of the two sets them.  ``again`` compiles another
    module with the same options; copies and pickles use it.
    """
    cls = type(module)
    compiled_cls = _compiled_class(cls)
    made: torch.nn.Module = object.__new__(compiled_cls)
    object.__setattr__(made, "__dict__", module.__dict__)
    object.__setattr__(made, _SLOT, _State(module, compile_call(call_module), again))
    return made


def call_module(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The call of a module: hooks, ``forward`` and all."""
    return self(*args, **kwargs)


def original(module: Any) -> Any:
    """The module that a compiled one was made from; any other object is given back as it is."""
    state = getattr(module, _SLOT, None)
    return module if state is None else state.module


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    state = getattr(self, _SLOT)
    return state.call(state.module, *args, **kwargs)


def _session(self: Any) -> Any:
    return getattr(self, _SLOT).call._dynacap_session


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    state = getattr(self, _SLOT)
    return state.again(copy.deepcopy(state.module, memo))


def _reduce(self: Any, protocol: Any) -> Any:
    state = getattr(self, _SLOT)
    return state.again, (state.module,)


def _compiled_class(cls: type) -> type:
    """A subclass with nothing but a slot for our state, and a call that is compiled."""
    made = _classes.get(cls)
    if made is None:
        body = {
            "__slots__": (_SLOT,),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__call__": _call,
            "__deepcopy__": _deepcopy,
            "__reduce_ex__": _reduce,
            "_dynacap_session": property(_session),
        }
        made = _classes[cls] = type(cls)(cls.__name__, (cls,), body)
    return made
