"""Generators: frames that have been put aside.  ``send``, ``throw`` and ``close`` resume them."""

from __future__ import annotations

import inspect
import sys
import types
from typing import TYPE_CHECKING, Any, NoReturn

from dynacap.executor.exceptions import set_context, unwind
from dynacap.executor.finalizers import generator_ended
from dynacap.executor.frame import Frame
from dynacap.executor.outside_generators import read_frame
from dynacap.guards.relations import Predicate
from dynacap.opcodes.instruction import Instruction
from dynacap.resume.layout import GENERATOR_FLAGS
from dynacap.values.base import Const, UserRaise, Value, is_none
from dynacap.values.data_model.items import stop_value
from dynacap.values.function import FunctionValue, GeneratorValue
from dynacap.values.iterator import IteratorValue
from dynacap.values.library.generators import close_generator
from dynacap.values.object import ExceptionValue

if TYPE_CHECKING:
    from dynacap.executor.machine import Machine

_YIELD_FROM = 2  # operand of the RESUME that follows a yield inside ``yield from``; 3: ``await``


def is_suspendable(code: types.CodeType) -> bool:
    """Whether a call of this code makes a generator or coroutine instead of running."""
    return bool(code.co_flags & GENERATOR_FLAGS)


def make_generator(m: Machine, fn: FunctionValue, frame: Frame) -> Value:
    """The generator of a call."""
    flags = fn.code.co_flags
    is_coroutine = flags & inspect.CO_COROUTINE
    if flags & inspect.CO_ASYNC_GENERATOR:
        m.graph_break("async", f"{fn.qualname} is an async generator")
    if is_coroutine and not _leaves_no_origin():
        m.graph_break("running-frame", f"{fn.qualname} notes where it is called")
    if is_coroutine:
        m.guards.add(Predicate((), _leaves_no_origin, "has coroutines that leave no origin"))
    gen = GeneratorValue(fn, frame, types.CoroutineType if is_coroutine else types.GeneratorType)
    frame.generator = gen
    m.finalizers.made(gen, m.depth)
    return gen


def _leaves_no_origin(*values: Any) -> bool:
    return not sys.get_coroutine_origin_tracking_depth()


def resume_generator(
    m: Machine, gen: GeneratorValue, sent: Value | None, thrown: Value | None
) -> Value:
    """Run until the next yield; UserRaise(StopIteration) with the return value at the end."""
    if gen.state == "outside":
        read_frame(m, gen)
    if gen.real is not None:
        m.touch(gen)
    if gen.state == "running":
        m.raise_error(ValueError, f"{gen.cls.__name__} already executing")
    if gen.state == "done":
        if gen.cls is types.CoroutineType:
            m.raise_error(RuntimeError, "cannot reuse already awaited coroutine")
        if thrown is not None:
            _throw_outright(m, thrown)
        raise UserRaise(ExceptionValue(StopIteration, []))
    frame: Frame = gen.frame
    if gen.state == "new":
        _start(m, gen, sent, thrown)
    elif thrown is None:
        frame.push(sent if sent is not None else Const(None))
    else:
        yielded, thrown = _throw_into_delegate(m, frame, thrown)
        if yielded is not None:
            return yielded
    return _run(m, gen, frame, thrown)


def _start(m: Machine, gen: GeneratorValue, sent: Value | None, thrown: Value | None) -> None:
    if thrown is not None:
        gen.state = "done"
        _throw_outright(m, thrown)
    if sent is not None and not is_none(sent):
        text = f"can't send non-None value to a just-started {gen.cls.__name__}"
        m.raise_error(TypeError, text)


def _throw_outright(m: Machine, thrown: Value) -> NoReturn:
    """Throw into a generator that has no handler; what its caller handles is no context."""
    set_context(m, thrown, None)
    raise UserRaise(thrown)


def _run(m: Machine, gen: GeneratorValue, frame: Frame, thrown: Value | None) -> Value:
    outer = gen.outer = m.handled
    m.handled = gen.handled or outer
    gen.state = "running"
    m.frames.append(frame)
    m.entered.add(frame.function.code)
    try:
        if thrown is not None:
            frame.push(Const(None))  # in the place of what is sent: handlers count it
            set_context(m, thrown, gen.handled)
            unwind(m, UserRaise(thrown), len(m.frames) - 1)
        value = m.run_nested()
    except UserRaise as raised:
        gen.state = "done"
        generator_ended(m, frame)
        raised.exc = escaping(m, raised.exc, gen.cls)
        raise
    finally:
        gen.handled = m.handled if m.handled is not outer else None
        gen.outer = None
        m.handled = outer
    if frame.instructions[frame.index].op == "RETURN_VALUE":
        gen.state = "done"
        generator_ended(m, frame)
        raise UserRaise(ExceptionValue(StopIteration, [] if is_none(value) else [value]))
    gen.state = "suspended"
    m.finalizers.suspended(gen)
    return value


def escaping(m: Machine, exc: Value, kind: type) -> Value:
    """PEP 479: what leaves a generator; in place of a StopIteration a RuntimeError."""
    if not isinstance(exc, ExceptionValue) or not issubclass(exc.cls, StopIteration):
        return exc
    error = ExceptionValue(RuntimeError, [Const(f"{kind.__name__} raised StopIteration")])
    set_context(m, error, m.handled)
    error.cause = error.context = exc
    error.suppress_context = True
    return error


def _throw_into_delegate(
    m: Machine, frame: Frame, thrown: Value
) -> tuple[Value | None, Value | None]:
    """Hand an exception to what ``yield from`` waits for: what it yields, or what to raise here."""
    if not delegates(frame):
        return None, thrown
    delegate = frame.stack[-1]
    if isinstance(delegate, IteratorValue):
        return None, thrown  # it has no ``throw``
    if not isinstance(delegate, GeneratorValue):
        m.graph_break("generator-throw", "throw() into an iterator that is no generator")
    if issubclass(thrown.cls, GeneratorExit):
        close_generator(m, delegate)
        return None, thrown
    try:
        return resume_generator(m, delegate, None, thrown), None
    except UserRaise as raised:
        send = _send_before(frame)
        # Where the iterator stays on the stack, a CLEANUP_THROW looks at what came out of it.
        if send.arg or not issubclass(raised.exc.cls, StopIteration):
            return None, raised.exc
        assert send.target is not None
        frame.stack[-1] = stop_value(raised.exc)
        frame.pc = send.target
        return None, None


def delegates(frame: Frame) -> bool:
    """Whether a frame that was put aside waits for what ``yield from`` or ``await`` awaits."""
    resume = frame.instructions[frame.pc]
    return resume.op == "RESUME" and resume.arg & 3 >= _YIELD_FROM


def _send_before(frame: Frame) -> Instruction:
    """The SEND of the ``yield from`` that a frame waits in."""
    index = frame.index
    while frame.instructions[index].op != "SEND":
        index -= 1
    return frame.instructions[index]
