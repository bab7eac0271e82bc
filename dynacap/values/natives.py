"""The table of C functions (and some Python ones) whose behaviour capture knows by heart.

``@native(len)`` registers a handler ``(t, args, kwargs) -> Value`` for the very object ``len``.
Pure callables have no side effects and may run for real on constants; a polyfill is a Python
function that means the same as a callable and is inlined instead.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dynacap.values.base import Value
from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.values.function import FunctionValue

Native = Callable[["Tracer", list[Value], dict[str, Value]], Value]
Setter = Callable[["Tracer", Value, Value], None]
CodeNative = Callable[["Tracer", "FunctionValue", list[Value], dict[str, Value]], Value]

Registered = TypeVar("Registered")


def registers(table: dict[Any, Any]) -> Callable[..., Callable[[Registered], Registered]]:
    """What registers something for keys of a table; each may be registered once."""

    def register(*keys: Any) -> Callable[[Registered], Registered]:
        def enter(what: Registered) -> Registered:
            for key in keys:
                if key in table:
                    raise ValueError(f"something is registered for {key!r} already")
                table[key] = what
            return what

        return enter

    return register


class Table(Generic[Registered]):
    """What is registered for objects, by their identity."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[Any, Registered]] = {}

    def register(self, *targets: Any) -> Callable[[Registered], Registered]:
        """Register something for these very objects; each may be registered once."""

        def register(what: Registered) -> Registered:
            for target in targets:
                if id(target) in self._held:
                    raise ValueError(f"something is registered for {target!r} already")
                self._held[id(target)] = (target, what)
            return what

        return register

    def find(self, target: Any) -> Registered | None:
        """What is registered for an object, or None."""
        found = self._held.get(id(target))
        return found[1] if found is not None else None


_NATIVES = Table[Native]()
_BY_CODE = Table[CodeNative]()  # for all functions that share a code object: library wrappers
_SETTERS = Table[Setter]()  # how a C-level field is set, by its descriptor
_POLYFILLS = Table[Callable[..., Any]]()
_PURE: dict[int, Any] = {}

native, find_native = _NATIVES.register, _NATIVES.find
native_code, find_native_code = _BY_CODE.register, _BY_CODE.find
setter, find_setter = _SETTERS.register, _SETTERS.find
polyfill, find_polyfill = _POLYFILLS.register, _POLYFILLS.find
_WHOLE = Table[bool]()


def whole(*codes: types.CodeType) -> None:
    """Declare code that is inlined to its end or not at all: no region ends inside."""
    _WHOLE.register(*codes)(True)


def is_whole(code: types.CodeType) -> bool:
    """Whether a break inside that code leaves the call of it to Python."""
    return _WHOLE.find(code) is not None


def pure(targets: Iterable[Any]) -> None:
    """Declare callables that may run for real when all operands are constants."""
    for target in targets:
        _PURE[id(target)] = target


def is_pure(target: Any) -> bool:
    """Whether a callable may run for real on constants."""
    return id(target) in _PURE
