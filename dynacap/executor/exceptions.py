"""Exceptions of the traced program: raising, context, and the way to a handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynacap.executor.frame import PreviousException
from dynacap.values.base import Const, UserRaise, Value
from dynacap.values.object import ExceptionValue

if TYPE_CHECKING:
    from dynacap.executor.machine import Machine


def set_context(m: Machine, exc: Value) -> None:
    """``__context__`` of an exception that is raised while another is handled."""
    if not isinstance(exc, ExceptionValue):
        return
    if not exc.raised:
        exc.raised = True
        exc.raised_at = m.steps
    handled = m.handled
    if handled is None or handled is exc or exc.real is not None:
        return
    _cut_cycle(handled, exc)
    exc.context = handled


def _cut_cycle(handled: Value, exc: ExceptionValue) -> None:
    """As CPython does: the chain of contexts must not come back to the new exception."""
    at = handled
    while isinstance(at, ExceptionValue) and isinstance(at.context, ExceptionValue):
        if at.context is exc:
            at.context = None
            return
        at = at.context


def unwind(m: Machine, raised: UserRaise, base: int) -> None:
    """Go to the handler of an exception; raise on if no frame above ``base`` has one."""
    frames = m.frames
    while len(frames) > base:
        frame = frames[-1]
        handler = frame.code.handlers[frame.index]
        if handler is not None:
            del frame.stack[handler.depth :]
            if handler.lasti:
                frame.stack.append(Const(frame.instructions[frame.index].lasti // 2))
            frame.stack.append(raised.exc)
            frame.pc = handler.target
            return
        frames.pop()
        if frame.generator is not None:
            frame.generator.state = "done"
    raise raised


def push_handled(m: Machine, exc: Value) -> PreviousException:
    """Start handling an exception; gives what POP_EXCEPT restores."""
    previous = PreviousException(m.handled, exc)
    m.handled = exc
    return previous
