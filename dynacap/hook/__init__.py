"""The frame hook: runs our code in place of the Python frames below compiled code.

:func:`choose_hook` decides which implementation serves, and says why: ``pep523`` (C) replaces any
frame as it starts; ``settrace`` (plain Python) dispatches a function from its second call on.
"""

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from dynacap import log
from dynacap.config import config
from dynacap.hook.compiled_function import CompiledFunction as PythonCompiledFunction
from dynacap.hook.protocol import (
    NEVER,
    Callback,
    Capabilities,
    CompiledFunction,
    Finish,
    FrameCallable,
    Hook,
    Never,
)
from dynacap.hook.settrace import SettraceHook
from dynacap.hook.signature import bind_arguments

try:
    from dynacap.hook import _chook
    from dynacap.hook._chook import CompiledFunction as CCompiledFunction, ModuleCall
    from dynacap.hook.pep523 import Pep523Hook
except ImportError as error:
    _import_error: str | None = f"{type(error).__name__}: {error}"
else:
    _import_error = None

__all__ = [
    "NEVER",
    "Callback",
    "Capabilities",
    "CompiledFunction",
    "Finish",
    "FrameCallable",
    "Hook",
    "Never",
    "bind_arguments",
    "choose_hook",
    "field_of_function",
    "generator_access",
    "make_compiled_function",
    "original_code",
    "set_suspend_type",
]

KINDS = ("auto", "pep523", "settrace")
_chosen: dict[str, Hook] = {}


def choose_hook(kind: str | None = None) -> Hook:
    """The hook of that kind (by default ``config.hook``); the same object each time."""
    kind = config.hook if kind is None else kind
    if kind not in KINDS:
        raise ValueError(f"no frame hook {kind!r}; there are: {', '.join(KINDS)}")
    if kind not in _chosen:
        _chosen[kind] = _make_hook(kind)
    return _chosen[kind]


def _make_hook(kind: str) -> Hook:
    if kind == "settrace":
        return SettraceHook("asked for")
    if _import_error is None:
        return Pep523Hook("asked for" if kind == "pep523" else "the C extension is there")
    if kind == "pep523":
        raise ImportError(
            f"the frame hook pep523 was asked for, but its C extension cannot be imported "
            f"({_import_error}). Install dynacap where a C compiler is present "
            "(DYNACAP_EXTENSIONS=require shows what fails), or use DYNACAP_HOOK=auto."
        )
    log.warn_once("hook-fallback", f"no C frame hook, sys.settrace serves ({_import_error})")
    return SettraceHook(f"the C extension cannot be imported ({_import_error})")


def make_compiled_function(
    function: FunctionType, table: FrameCallable, finish: Finish | None = None
) -> CompiledFunction:
    """A :class:`CompiledFunction` of the chosen hook."""
    return choose_hook().compiled_function(function, table, finish)


def field_of_function(cls: type) -> str | None:
    """The field in which objects of this class hold the function that they compile, if they do."""
    if cls is PythonCompiledFunction:
        return "_function"
    in_c = _import_error is None and cls in (CCompiledFunction, ModuleCall)
    return "function" if in_c else None


def module_call(function: Callable[..., Any], slot: str) -> Any:
    """``function``, the ``__call__`` of compiled modules, without a frame of Python where C serves.

    It finds ``(module, call, ...)`` in the attribute ``slot`` of self and calls
    ``call(module, ...)``.
    """
    return function if _import_error is not None else ModuleCall(function, slot)


def generator_access() -> tuple[Any, Any] | None:
    """What reads and writes the frames of generators that do not run; None without C."""
    if _import_error is not None:
        return None
    return _chook.read_generator, _chook.write_generator


def original_code(function: FunctionType) -> CodeType:
    """The code that a function had before a hook touched it."""
    return SettraceHook.original_code(function)


def set_suspend_type(suspend_type: type | None) -> None:
    """The class of results that are unfinished, for the compiled functions of every hook."""
    SettraceHook.set_suspend_type(suspend_type)
    if _import_error is None:
        Pep523Hook.set_suspend_type(suspend_type)
