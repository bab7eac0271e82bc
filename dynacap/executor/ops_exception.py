"""Raising, handling, and ``with``."""

from __future__ import annotations

from typing import Any, NoReturn

from dynacap.executor.exceptions import leave_trail, push_handled
from dynacap.executor.frame import Frame, PreviousException
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.instruction import Instruction
from dynacap.polyfills.groups import match_star, raise_star
from dynacap.values.base import MISSING, Const, Known, UserRaise, Value, is_none
from dynacap.values.container import TupleValue
from dynacap.values.data_model.attributes import bind
from dynacap.values.library.exceptions import handled_now, traceback_of
from dynacap.values.library.generators import as_exception
from dynacap.values.object import ExceptionValue
from dynacap.values.wording import not_for_with


@handles("RAISE_VARARGS")
def raise_varargs(m: Machine, f: Frame, i: Instruction) -> None:
    """Pop cause and exception as the operand says, and raise."""
    if i.arg == 0:
        handled = handled_now(m)
        if handled is None:
            m.raise_error(RuntimeError, "No active exception to reraise")
        m.throw(handled)
    cause = f.pop() if i.arg == 2 else None
    exc = _exception(m, f.pop())
    if cause is not None:
        if not is_none(cause):
            cause = _exception(m, cause, "exception causes")
        if exc.real is not None:
            m.graph_break("exception-write", "an exception from outside gets a cause")
        exc.cause, exc.suppress_context = cause, True
    m.throw(exc)


def _exception(m: Machine, value: Value, what: str = "exceptions") -> ExceptionValue:
    """What ``raise`` makes of its operand: a class is called."""
    if type(value) is Known and isinstance(value.value, type):
        if issubclass(value.value, BaseException):
            value = as_exception(m, value)
    if not isinstance(value, ExceptionValue):
        m.raise_error(TypeError, f"{what} must derive from BaseException")
    return value


def _reraise(m: Machine, depth: int, *seen: Value) -> NoReturn:
    raise UserRaise(seen[-1])


@handles("PUSH_EXC_INFO")
def push_exc_info(m: Machine, f: Frame, i: Instruction) -> None:
    """Under the exception on top goes the one handled before; the top is handled now."""
    exc = f.pop()
    previous = push_handled(m, exc)
    previous.was_outer = f.generator is not None and previous.exc is f.generator.outer
    f.stack.append(previous)
    f.stack.append(exc)


@handles("POP_EXCEPT")
def pop_except(m: Machine, f: Frame, i: Instruction) -> None:
    """The exception handled before is handled again."""
    previous = f.stack.pop()
    assert isinstance(previous, PreviousException)
    m.handled = previous.exc
    if f.generator is not None and previous.was_outer:
        m.handled = f.generator.outer  # whoever resumed it last
    # Cleanup code pops a copy; what it copied stays on the stack and is no more than a value.
    left = previous.exc or Const(None)
    f.stack[:] = [left if item is previous else item for item in f.stack]


def _matches(m: Machine, exc: Value, wanted: Value) -> bool:
    if isinstance(wanted, TupleValue):
        return any([_matches(m, exc, m.force(item)) for item in wanted.items])
    cls = wanted.value if isinstance(wanted, Known) else None
    if not isinstance(cls, type) or not issubclass(cls, BaseException):
        text = "catching classes that do not inherit from BaseException is not allowed"
        m.raise_error(TypeError, text)
    return cls in exc.cls.__mro__


_trace: list[Any] = []  # of the group in which ``except*`` wraps an exception
try:
    raise ValueError
except* ValueError as _wrapped:
    _trace.append(_wrapped.__traceback__)


@handles("CHECK_EG_MATCH")
def check_eg_match(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace an exception and classes by what is left of it and the match, handled from now on."""
    exc, wanted = f.pop_many(2)
    match, rest = m.unpack(m.call(m.wrap(match_star, None), [exc, wanted]))
    f.stack += [rest, match]
    if not isinstance(match, ExceptionValue):
        return
    if _trace != [None] and not issubclass(exc.cls, BaseExceptionGroup):
        leave_trail(m, match, f)
        match.raised, match.raised_at = True, m.whole_steps
    handling = [item for item in f.stack if isinstance(item, PreviousException)]
    m.handled = handling[-1].current = match


@handles("BEFORE_WITH", "BEFORE_ASYNC_WITH")
def before_with(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace a context manager by its bound ``__exit__`` and the result of ``__enter__``."""
    manager, kind = f.pop(), "a" * (i.op == "BEFORE_ASYNC_WITH")
    enter = _bound(m, manager, f"__{kind}enter__")
    exit_ = _bound(m, manager, f"__{kind}exit__")
    f.push(exit_)
    f.push(m.call(enter, []))


_OF_WITH = ("__enter__", "__exit__", "__aenter__", "__aexit__")


def _bound(m: Machine, manager: Value, name: str) -> Value:
    raw = m.lookup(manager.cls, name)
    if raw is MISSING and name.startswith("__a"):
        m.graph_break("async", f"a {manager.cls.__name__} has no {name}")
    if raw is MISSING:
        known = [each for each in _OF_WITH if m.lookup(manager.cls, each) is not MISSING]
        m.raise_real(not_for_with(manager.cls, known))
    found = bind(m, raw, m.class_attribute(manager.cls, name), manager, manager.cls)
    assert found is not None
    return found


def _with_except_start(m: Machine, depth: int, exit_: Value, *above: Value) -> Value:
    return m.call(exit_, [m.class_value(above[-1].cls), above[-1], traceback_of(m, above[-1])])


operation("RERAISE", _reraise)
operation("CHECK_EXC_MATCH", lambda m, _, exc, wanted: Const(_matches(m, exc, wanted)))
operation("PREP_RERAISE_STAR", lambda m, _, *both: m.call(m.wrap(raise_star, None), [*both]))
operation("WITH_EXCEPT_START", _with_except_start)
operation("LOAD_SPECIAL", lambda m, name, manager: _bound(m, manager, name))
