"""A compiled ``nn.Module``: an instance of the user's class that shares all its state."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

import torch

from dynacap.hook import module_call

_SLOT = "_dynacap_state"
# The values are weak since a subclass keeps its base, the key, alive.
_classes: weakref.WeakKeyDictionary[type, weakref.ref[type]] = weakref.WeakKeyDictionary()
Again = Callable[[Any], Any]


class _State(NamedTuple):
    """What a compiled module has of its own."""

    module: torch.nn.Module
    call: Callable[..., Any]
    again: Again


def compile_module(
    module: torch.nn.Module, call: Callable[..., Any], again: Again
) -> torch.nn.Module:
    """An object like ``module`` whose calls are compiled.

    It shares the module's ``__dict__``: parameters, buffers, hooks, ``training`` and every other
    attribute are those of the module, whichever of the two sets them.  ``call`` is a compiled
    :func:`call_module`; ``again`` compiles another module with the same options, which copies and
    pickles use.
    """
    compiled_cls = _compiled_class(type(module))
    made: torch.nn.Module = object.__new__(compiled_cls)
    object.__setattr__(made, "__dict__", module.__dict__)
    object.__setattr__(made, _SLOT, _State(module, call, again))
    return made


def call_module(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """The call of a module: hooks, ``forward`` and all."""
    return self(*args, **kwargs)


def parameter_names(module: Any) -> tuple[str, ...]:
    """What ``forward`` calls its positional arguments, so that messages can."""
    forward = getattr(type(module), "forward", None)
    if not isinstance(forward, FunctionType) or "forward" in vars(module):
        return ()
    code = forward.__code__
    return code.co_varnames[1 : code.co_argcount]


call_module.names_of_args = parameter_names  # type: ignore[attr-defined]


def title_of(module: Any) -> str:
    """What a module is called in messages: its class, and where its ``forward`` stands."""
    forward = getattr(module, "forward", None)
    code = getattr(getattr(forward, "__func__", forward), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    return f"{type(module).__qualname__}{where}"


def original(module: Any) -> Any:
    """The module that a compiled one was made from; any other object is given back as it is."""
    state = getattr(module, _SLOT, None) if isinstance(module, torch.nn.Module) else None
    return module if state is None else state.module


def call_of(module: Any) -> Any:
    """The compiled :func:`call_module` of a compiled module."""
    return getattr(module, _SLOT).call


def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
    state = getattr(self, _SLOT)
    return state.call(state.module, *args, **kwargs)


def _session(self: Any) -> Any:
    return call_of(self)._dynacap_session


def _copy(self: Any) -> Any:
    state = getattr(self, _SLOT)
    return state.again(copy.copy(state.module))


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    state = getattr(self, _SLOT)
    return state.again(copy.deepcopy(state.module, memo))


def _reduce(self: Any, protocol: Any) -> Any:
    state = getattr(self, _SLOT)
    return state.again, (state.module,)


class _Quiet:
    """Keeps the user's ``__init_subclass__`` from running for our subclasses."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        pass


def _compiled_class(cls: type) -> type:
    """A subclass with nothing but a slot for our state, and a call that is compiled."""
    known = _classes.get(cls)
    found = known() if known is not None else None
    if found is None:
        body = {
            "__slots__": (_SLOT,),
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "__call__": module_call(_call, _SLOT),
            "__copy__": _copy,
            "__deepcopy__": _deepcopy,
            "__reduce_ex__": _reduce,
            "_dynacap_session": property(_session),
        }
        # Not by calling the metaclass, which might be the user's.
        found = type.__new__(type(cls), cls.__name__, (_Quiet, cls), body)
        _classes[cls] = weakref.ref(found)
    return found
