"""The table of C functions (and some Python ones) whose behaviour capture knows by heart.

``@native(len)`` registers a handler ``(t, args, kwargs) -> Value`` for the very object ``len``.
``PURE`` are callables without side effects that may run for real on constants; ``POLYFILLS`` maps
a callable to a Python function that means the same and is inlined instead.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from dynacap.values.base import Value

if TYPE_CHECKING:
    from dynacap.values.function import FunctionValue
    from dynacap.values.tracer import Tracer

Native = Callable[["Tracer", list[Value], dict[str, Value]], Value]
Setter = Callable[["Tracer", Value, Value], None]
CodeNative = Callable[["Tracer", "FunctionValue", list[Value], dict[str, Value]], Value]

_NATIVES: dict[int, tuple[Any, Native]] = {}
_BY_CODE: dict[int, tuple[types.CodeType, CodeNative]] = {}
_SETTERS: dict[int, tuple[Any, Setter]] = {}
_PURE: dict[int, Any] = {}
_POLYFILLS: dict[int, tuple[Any, Callable[..., Any]]] = {}


def native(*targets: Any) -> Callable[[Native], Native]:
    """Register a handler for these very objects; each may be registered once."""

    def register(handler: Native) -> Native:
        for target in targets:
            if id(target) in _NATIVES:
                raise ValueError(f"a handler for {target!r} is registered already")
            _NATIVES[id(target)] = (target, handler)
        return handler

    return register


def find_native(target: Any) -> Native | None:
    """The handler of a callable, or None."""
    found = _NATIVES.get(id(target))
    return found[1] if found is not None else None


def native_code(code: types.CodeType) -> Callable[[CodeNative], CodeNative]:
    """Register a handler for all functions that share a code object: ``(t, function, args,
    kwargs)``; for wrappers that a decorator of the library makes.
    """

    def register(handler: CodeNative) -> CodeNative:
        _BY_CODE[id(code)] = (code, handler)
        return handler

    return register


def find_native_code(code: types.CodeType) -> CodeNative | None:
    """The handler of the functions that share a code object, or None."""
    found = _BY_CODE.get(id(code))
    return found[1] if found is not None else None


def setter(target: Any) -> Callable[[Setter], Setter]:
    """Register how a C-level field, given as its descriptor, is set: ``(t, obj, value)``."""

    def register(handler: Setter) -> Setter:
        _SETTERS[id(target)] = (target, handler)
        return handler

    return register


def find_setter(target: Any) -> Setter | None:
    """How a C-level field is set, or None."""
    found = _SETTERS.get(id(target))
    return found[1] if found is not None else None


def pure(targets: Iterable[Any]) -> None:
    """Declare callables that may run for real when all operands are constants."""
    for target in targets:
        _PURE[id(target)] = target


def is_pure(target: Any) -> bool:
    """Whether a callable may run for real on constants."""
    return id(target) in _PURE


def polyfill(target: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a Python function to be inlined in place of ``target``."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if id(target) in _POLYFILLS:
            raise ValueError(f"a polyfill for {target!r} is registered already")
        _POLYFILLS[id(target)] = (target, function)
        return function

    return register


def find_polyfill(target: Any) -> Callable[..., Any] | None:
    """The Python function that stands in for a callable, or None."""
    found = _POLYFILLS.get(id(target))
    return found[1] if found is not None else None
