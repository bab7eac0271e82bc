"""Generators: yield and yield from."""

from __future__ import annotations

from dynacap.executor.frame import YIELD, Frame
from dynacap.executor.generators import escaping
from dynacap.executor.machine import Machine
from dynacap.executor.registry import handles
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Const, Sentinel, UserRaise, Value
from dynacap.values.data_model import call_special, get_attribute
from dynacap.values.data_model.items import stop_value
from dynacap.values.function import GeneratorValue


@handles("RETURN_GENERATOR")
def return_generator(m: Machine, f: Frame, i: Instruction) -> None:
    """The generator was made when the function was called; the first resume starts here."""
    if f.generator is None:
        m.graph_break("generator-frame", "a generator runs as plain Python")
    f.push(Const(None))


@handles("YIELD_VALUE")
def yield_value(m: Machine, f: Frame, i: Instruction) -> Sentinel:
    """Put the frame aside; the top goes to who resumed it."""
    if f.generator is None:
        m.graph_break("generator-frame", "a generator runs as plain Python")
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
    _, _, exc = f.pop_many(3)
    if not issubclass(exc.cls, StopIteration):
        raise UserRaise(exc)
    f.push(Const(None))
    f.push(stop_value(exc))


@handles("STOPITERATION_ERROR")
def stopiteration_error(m: Machine, f: Frame, i: Instruction) -> None:
    """Replace a StopIteration that leaves a generator by a RuntimeError (PEP 479)."""
    f.push(escaping(m, f.pop()))


def _send(m: Machine, receiver: Value, sent: Value) -> Value:
    if isinstance(receiver, GeneratorValue):
        return m.resume_generator(receiver, sent, None)
    if isinstance(sent, Const) and sent.value is None:
        return call_special(m, receiver, "__next__", [])
    return m.call(get_attribute(m, receiver, "send"), [sent])
