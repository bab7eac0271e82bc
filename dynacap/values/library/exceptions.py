"""Exceptions: their making, their arguments and fields, and their text."""

from __future__ import annotations

import builtins
import sys
import traceback
import types
from collections.abc import Callable
from typing import Any

from dynacap.guards.relations import Predicate
from dynacap.values.base import Const, Known, Value
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.data_model import find_attribute, get_attribute, set_attribute
from dynacap.values.data_model.calls import part_of
from dynacap.values.data_model.exceptions import init_exception, new_exception
from dynacap.values.iterator_builtins import elements
from dynacap.values.library.handlers import NONE, Operation, giving_self, handles, methods
from dynacap.values.library.text import to_repr, to_str
from dynacap.values.natives import setter
from dynacap.values.object import ExceptionValue, TracebackValue
from dynacap.values.tracer import Tracer

_FIELDS = BaseException.__dict__
_GROUP = BaseExceptionGroup.__dict__


def _expect(t: Tracer, exc: Value) -> ExceptionValue:
    if not isinstance(exc, ExceptionValue):
        t.graph_break("foreign-storage", f"{exc.describe()} as an exception")
    return exc


_BUILT_IN = [
    kind
    for kind in vars(builtins).values()
    if isinstance(kind, type) and issubclass(kind, BaseException)
]


def _own(name: str, but: tuple[type, ...] = ()) -> list[Any]:
    """The methods of that name that built-in exceptions declare, aliases of a class aside."""
    kinds = {id(kind): kind for kind in _BUILT_IN if not issubclass(kind, but)}
    return methods(name, *kinds.values())


@handles(*_own("__new__"))
def _new(t: Tracer, cls: Known, /, *args: Value, **kwargs: Value) -> Value:
    return new_exception(t, cls.value, list(args))


@handles(*_own("__init__"))
def _init(t: Tracer, self: Value, /, *args: Value, **kwargs: Value) -> None:
    init_exception(t, _expect(t, self), list(args), kwargs)


@handles(_FIELDS["args"])
def _args(t: Tracer, self: Value, /) -> Value:
    exc = _expect(t, self)
    exc.shown = exc.shown or TupleValue(exc.args)
    return exc.shown


@setter(_FIELDS["args"])
def _set_args(t: Tracer, self: Value, value: Value) -> None:
    exc = _expect(t, self)
    if exc.real is not None:
        t.graph_break("exception-write", "the arguments of an exception from outside are set")
    exc.args, exc.shown = elements(t, value), value if value.cls is tuple else None


def _field(raw: Any, inside: Callable[[Tracer, ExceptionValue], Value]) -> Operation:
    """Register how a field of an exception that was made inside is read."""

    @handles(raw)
    def read(t: Tracer, self: Value, /) -> Value:
        exc = _expect(t, self)
        return inside(t, exc) if exc.real is None else _outside_field(t, exc, raw.__name__)

    return read


def _context(t: Tracer, exc: ExceptionValue) -> Value:
    if exc.raised and exc.context is None:
        expect_nothing_handled(t)  # it would be the context
    return exc.context or NONE


def _exit_code(t: Tracer, exc: ExceptionValue) -> Value:
    if len(exc.args) == 1:
        return t.force(exc.args[0])
    return TupleValue([*exc.args]) if exc.args else NONE


_field(_FIELDS["__context__"], _context)
_field(_FIELDS["__cause__"], lambda t, exc: exc.cause or NONE)
_field(_FIELDS["__suppress_context__"], lambda t, exc: Const(exc.suppress_context))
_field(StopIteration.value, lambda t, exc: t.force(exc.args[0]) if exc.args else NONE)
_field(SystemExit.code, _exit_code)
_message: Any = _field(_GROUP["message"], lambda t, exc: exc.made_of[0])
_parts: Any = _field(_GROUP["exceptions"], lambda t, exc: exc.made_of[1])


def _outside_field(t: Tracer, exc: ExceptionValue, name: str) -> Value:
    """What an exception from outside holds there, under a guard."""
    return part_of(t, getattr(exc.real, name), exc, name)


def traceback_of(t: Tracer, self: Value, /) -> Value:
    """The traceback that an exception has now."""
    exc = _expect(t, self)
    if not exc.trail:
        return _before(t, exc)
    if exc.traceback is None or exc.traceback.trail != exc.trail:
        exc.traceback = TracebackValue(exc, list(exc.trail))
    return exc.traceback


handles(_FIELDS["__traceback__"])(traceback_of)


@setter(_FIELDS["__traceback__"])
def _set_traceback(t: Tracer, self: Value, tb: Value) -> None:
    exc = _expect(t, self)
    if isinstance(tb, TracebackValue) and (tb.exc is exc or tb.exc.real is exc.real is None):
        exc.trail, exc.traceback, exc.before = list(tb.trail), tb, tb.exc.before
        if not exc.raised:
            exc.raised, exc.raised_at = True, tb.exc.raised_at
    elif tb is _before(t, exc):
        exc.trail = []
    elif exc.real is None and tb.cls is types.TracebackType and not isinstance(tb, TracebackValue):
        exc.before, exc.trail = tb, []
    else:
        t.graph_break("exception-write", "the traceback of an exception is set")


def _before(t: Tracer, exc: ExceptionValue) -> Value:
    """The traceback that an exception had before it was raised inside."""
    if exc.real is None:
        return exc.before or NONE
    return _outside_field(t, exc, "__traceback__")


handles(BaseException.with_traceback)(giving_self(_set_traceback))


@handles(
    *(types.TracebackType.__dict__[n] for n in ("tb_next", "tb_frame", "tb_lineno", "tb_lasti"))
)
def _look_into_traceback(t: Tracer, self: Value, /) -> Value:
    before = self.exc.raised_at if isinstance(self, TracebackValue) else -1
    return t.graph_break("traceback", "a traceback is looked into", before=before)


@handles(traceback.clear_frames)
def _clear_frames(t: Tracer, tb: Value) -> None:
    """The frames through which an exception went inside are gone already."""
    if not isinstance(tb, TracebackValue) or tb.exc.real is not None:
        t.graph_break("traceback", "frames are cleared")


@handles(BaseException.add_note)
def _add_note(t: Tracer, self: Value, note: Value, /) -> None:
    if not issubclass(note.cls, str):
        t.raise_error(TypeError, f"note must be a str, not {note.cls.__name__!r}")
    notes = find_attribute(t, self, "__notes__")
    if notes is None:
        notes = ListValue([])
        set_attribute(t, self, "__notes__", notes)
    elif not issubclass(notes.cls, list):
        t.raise_error(TypeError, "Cannot add note: __notes__ is not a list")
    t.call(get_attribute(t, notes, "append"), [note])


@handles(_GROUP["__str__"])
def _group_str(t: Tracer, self: Value, /) -> Value:
    count = len(elements(t, _parts(t, self)))
    return Const(f"{to_str(t, _message(t, self))} ({count} sub-exception{'s' * (count > 1)})")


# whose text is not that of their arguments
_OTHER_TEXT = (KeyError, OSError, SyntaxError, UnicodeError, BaseExceptionGroup)


@handles(*_own("__str__", _OTHER_TEXT))
def _str(t: Tracer, self: Value, /) -> Value:
    args = _expect(t, self).args
    if not args:
        return Const("")
    return Const(to_str(t, t.force(args[0])) if len(args) == 1 else to_repr(t, TupleValue(args)))


@handles(KeyError.__str__)
def _key_error_str(t: Tracer, self: Value, /) -> Value:
    args = _expect(t, self).args
    return Const(to_repr(t, t.force(args[0]))) if len(args) == 1 else _str(t, self) or NONE


@handles(*methods("__repr__", BaseExceptionGroup))  # since 3.14
def _group_repr(t: Tracer, self: Value, /) -> Value:
    message, parts, args = _message(t, self), _parts(t, self), _expect(t, self).args
    given = t.force(args[1]).cls if len(args) == 2 else None
    if given is None or not issubclass(given, (list, tuple)):
        t.graph_break("foreign-storage", "the text of a group as that of what it was made of")
    if issubclass(given, list):
        parts = ListValue(elements(t, parts))
    return Const(f"{self.cls.__name__}({to_repr(t, message)}, {to_repr(t, parts)})")


@handles(*_own("__repr__", _OTHER_TEXT))
def _repr(t: Tracer, self: Value, /) -> Value:
    exc = _expect(t, self)
    if len(exc.args) == 1:
        return Const(f"{exc.cls.__name__}({to_repr(t, t.force(exc.args[0]))})")
    return Const(exc.cls.__name__ + to_repr(t, TupleValue(exc.args)))


def expect_nothing_handled(t: Tracer) -> None:
    """The caller of what is captured handles no exception: guarded, or a break."""
    if sys.exc_info()[1] is not None:
        t.graph_break("caller-exception", "the caller's exception would be seen")
    t.guards.add(Predicate((), _caller_handles_nothing, "has a caller without exception"))


def _caller_handles_nothing(*values: Any) -> bool:
    return sys.exc_info()[1] is None


def handled_now(t: Tracer) -> Value | None:
    """What is handled; where no frame of the region handles anything, neither does its caller."""
    if t.handled is None:
        expect_nothing_handled(t)
    return t.handled


@handles(sys.exc_info)
def _exc_info(t: Tracer, /) -> Value:
    handled = handled_now(t)
    if handled is None:
        return TupleValue([NONE, NONE, NONE])
    return TupleValue([t.class_value(handled.cls), handled, traceback_of(t, handled)])


@handles(sys.exception)
def _exception(t: Tracer, /) -> Value:
    return handled_now(t) or NONE
