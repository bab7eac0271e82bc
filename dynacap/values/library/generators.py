"""The methods of generators."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from dynacap.values.base import Known, UserRaise, Value
from dynacap.values.data_model.items import stop_value
from dynacap.values.function import GeneratorValue
from dynacap.values.library.handlers import NONE, handles, is_none
from dynacap.values.library.iteration import next_
from dynacap.values.object import ExceptionValue
from dynacap.values.tracer import Tracer

_Generator, _Coroutine = types.GeneratorType, types.CoroutineType
_THREE_WARN = "deprecated" in str(_Generator.throw.__doc__)  # throw(type, value, traceback)


handles(_Generator.__iter__)(lambda t, self, /: self)
handles(_Generator.__next__)(lambda t, self, /: next_(t, self))
handles(_Generator.send, _Coroutine.send)(
    lambda t, self, value, /: t.resume_generator(_expect(t, self), value, None)
)
handles(_Generator.close, _Coroutine.close)(lambda t, self, /: close_generator(t, _expect(t, self)))


def _expect(t: Tracer, gen: Value) -> GeneratorValue:
    if not isinstance(gen, GeneratorValue):
        t.graph_break("outside-generator", "a generator that was made outside goes on")
    return gen


@handles(_Generator.throw, _Coroutine.throw)
def _throw(
    t: Tracer, self: Value, kind: Value, value: Value | None = None, traceback: Value = NONE, /
) -> Value:
    gen = _expect(t, self)
    if value is not None and _THREE_WARN:
        t.graph_break("warning", "throw() is called with more than an exception")
    try:
        thrown = as_exception(t, kind, value or NONE)
    except UserRaise as raised:
        if not isinstance(kind, Known):
            raise
        thrown = raised.exc  # making the exception failed, which is thrown instead
    return t.resume_generator(gen, None, thrown)


def as_exception(t: Tracer, kind: Value, value: Value = NONE) -> Value:
    """The exception that ``throw`` or ``raise`` raises: an instance, or one made of a class."""
    if isinstance(kind, Known) and isinstance(kind.value, type):
        if issubclass(kind.value, BaseException):
            if isinstance(value, ExceptionValue) and issubclass(value.cls, kind.value):
                return value
            made = t.call(kind, [] if is_none(value) else [value])
            if not isinstance(made, ExceptionValue):
                t.graph_break("bad-arguments", f"{kind.value.__name__}() gives no exception")
            return made
    if isinstance(kind, ExceptionValue):
        return kind
    return t.raise_error(
        TypeError,
        "exceptions must be classes or instances deriving from BaseException, not"
        f" {kind.cls.__name__}",
    )


def _ends() -> Iterator[None]:
    with contextlib.suppress(GeneratorExit):
        yield
    return _ends  # type: ignore[return-value]


_sample: Any = _ends()
next(_sample)
_CLOSE_GIVES = _sample.close() is not None  # what the generator returned, since 3.13


def close_generator(t: Tracer, gen: GeneratorValue) -> Value:
    """``gen.close()``."""
    if gen.state == "new" and gen.real is not None:
        t.touch(gen)
    for held in filter(None, gen.frame.locals if gen.state == "new" else ()):
        t.let_go(held)
    if gen.state in ("new", "done"):
        gen.state = "done"
        return NONE
    try:
        t.resume_generator(gen, None, ExceptionValue(GeneratorExit, []))
    except UserRaise as raised:
        if not issubclass(raised.exc.cls, (GeneratorExit, StopIteration)):
            raise
        returned = _CLOSE_GIVES and issubclass(raised.exc.cls, StopIteration)
        return stop_value(raised.exc) if returned else NONE
    return t.raise_error(RuntimeError, f"{gen.cls.__name__} ignored GeneratorExit")
