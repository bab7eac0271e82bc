"""Generators and coroutines: yield, yield from, await, and asynchronous iteration."""

from __future__ import annotations

from inspect import CO_ITERABLE_COROUTINE
from types import CoroutineType

from dynacap.executor.frame import YIELD, Frame
from dynacap.executor.generators import delegates, escaping
from dynacap.executor.machine import Machine
from dynacap.executor.outside_generators import read_frame
from dynacap.executor.registry import handles, operation
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import MISSING, NONE, Const, Sentinel, UserRaise, Value
from dynacap.values.data_model import call_special, get_attribute
from dynacap.values.data_model.items import stop_value
from dynacap.values.function import GeneratorValue


@handles("YIELD_VALUE")
def yield_value(m: Machine, f: Frame, i: Instruction) -> Sentinel:
    """Put the frame aside; the top goes to who resumed it."""
    return YIELD


@handles("SEND")
def send(m: Machine, f: Frame, i: Instruction) -> None:
    """Send the top to the iterator below: push what it yields, or replace both by its result."""
    sent, receiver = f.pop(), f.pop()
    try:
        yielded = _send(m, receiver, sent)
    except UserRaise as raised:
        if not issubclass(raised.exc.cls, StopIteration):
            raise
        if i.arg:
            f.push(receiver)
        f.push(stop_value(raised.exc))
        assert i.target is not None
        f.pc = i.target
        return
    f.push(receiver)
    f.push(yielded)


@handles("CLEANUP_THROW")
def cleanup_throw(m: Machine, f: Frame, i: Instruction) -> None:
    """An exception came out of ``yield from``: if the iterator ended so, go on with its value."""
    exc = f.pop_many(3)[-1]
    _expect(StopIteration, exc)
    f.stack += [NONE, stop_value(exc)]


def _expect(kind: type, exc: Value) -> None:
    """Raise on what is another exception."""
    if not issubclass(exc.cls, kind):
        raise UserRaise(exc)


@handles("STOPITERATION_ERROR")
def stopiteration_error(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace a StopIteration that leaves a generator by a RuntimeError (PEP 479)."""
    assert f.generator is not None
    f.push(escaping(m, f.pop(), f.generator.cls))


def _send(m: Machine, receiver: Value, sent: Value) -> Value:
    if isinstance(receiver, GeneratorValue):
        return m.resume_generator(receiver, sent, None)
    if isinstance(sent, Const) and sent.value is None:
        return call_special(m, receiver, "__next__", [])
    return m.call(get_attribute(m, receiver, "send"), [sent])


def _awaitable(m: Machine, obj: Value) -> Value:
    """The iterator that ``await`` drives."""
    if isinstance(obj, GeneratorValue):
        if obj.state == "outside":
            read_frame(m, obj)
        if obj.cls is CoroutineType and obj.state == "suspended" and delegates(obj.frame):
            m.raise_error(RuntimeError, "coroutine is being awaited already")
        code = obj.function and obj.function.code
        if obj.cls is CoroutineType or (code and code.co_flags & CO_ITERABLE_COROUTINE):
            return obj
    return _asked(m, obj, "__await__", "__next__")


def _asked(m: Machine, obj: Value, name: str, wanted: str = "") -> Value:
    """What a special method gives, if it is there, and gives what has the other method."""
    if m.lookup(obj.cls, name) in (MISSING, None):
        m.graph_break("async", f"a {obj.cls.__name__} has no {name}")
    found = call_special(m, obj, name, [])
    if wanted and m.lookup(found.cls, wanted) is MISSING:
        m.graph_break("async", f"{name} gives a {found.cls.__name__}")
    return found


# The generator was made when its function was called; the first resume starts here.
operation("RETURN_GENERATOR", lambda m, _: NONE)
operation("GET_AWAITABLE", lambda m, _, obj: _awaitable(m, obj))
operation("GET_AITER", lambda m, _, obj: _asked(m, obj, "__aiter__", "__anext__"))
operation("GET_ANEXT", lambda m, _, iterator: _awaitable(m, _asked(m, iterator, "__anext__")))
operation("END_ASYNC_FOR", lambda m, _, iterator, exc: _expect(StopAsyncIteration, exc))
