"""Calls of C functions that CPython refuses before it does anything: it is asked what it says."""

from __future__ import annotations

import re
import types
from typing import Any, NoReturn

from dynacap.guards.raw import IMMUTABLE_TYPE
from dynacap.values.base import Known, Value
from dynacap.values.data_model.refusals import like
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)
_SAMPLES: dict[Any, Any] = {range: range(0), slice: slice(0), types.FunctionType: like}
_ABOUT_COUNTS = re.compile(
    r"\btakes\b|needs at least|not enough|expected .*\bargument|keyword|missing required"
)


def bad_arguments(t: Tracer, target: Any, args: list[Value], kwargs: dict[str, Value]) -> NoReturn:
    """Raise what CPython says of so many operands, or of these names; other calls break."""
    given: list[Any] = [()] * len(args)
    asked = target
    if args and isinstance(target, types.ClassMethodDescriptorType):
        asked = target.__get__(None, args[0].known())
        del given[0]
    elif args and makes_instances(target):
        given[0] = target.__self__
    if isinstance(asked, (*_METHODS, types.BuiltinFunctionType, type)):
        try:
            if args and isinstance(target, _METHODS):
                kind: Any = target.__objclass__
                given[0] = _SAMPLES[kind] if kind in _SAMPLES else kind.__new__(kind)
            asked(*given, **dict.fromkeys(kwargs))
        except TypeError as error:
            if _ABOUT_COUNTS.search(str(error)):
                t.raise_real(error)
    t.graph_break("bad-arguments", getattr(target, "__qualname__", repr(target)))


def refuse_receiver(t: Tracer, target: Any, args: list[Value]) -> NoReturn:
    """Raise what CPython says of a method that is called without an object of its type."""
    t.raise_real(error_of(target, *map(like, args)))


def makes_instances(target: Any) -> bool:
    """Whether a function is the ``__new__`` of a type written in C."""
    return (
        isinstance(target, types.BuiltinFunctionType)
        and target.__name__ == "__new__"
        and isinstance(target.__self__, type)
    )


def check_class(t: Tracer, new: Any, cls: Value) -> None:
    """What ``__new__`` of a built-in type is given must be a class that it can make."""
    real = cls.value if isinstance(cls, Known) else None
    if isinstance(real, type) and issubclass(real, new.__self__):
        base: Any = next(base for base in real.__mro__ if base.__flags__ & IMMUTABLE_TYPE)
        # What makes no instances seems to have the one of object.
        if base.__new__ is new and (base is object or new is not object.__new__):
            return
    try:
        new(like(cls) if real is None else real)
    except TypeError as error:
        t.raise_real(error)
