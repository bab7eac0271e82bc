"""Exceptions of the traced program: raising, context, and the way to a handler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from dynacap.executor.frame import Frame, PreviousException
from dynacap.opcodes.instruction import Handler
from dynacap.values.base import Const, UserRaise, Value
from dynacap.values.function import BoundMethod
from dynacap.values.object import ExceptionValue

if TYPE_CHECKING:
    from dynacap.executor.machine import Machine

_OURS = str(Path(__file__).parents[1])


def set_context(m: Machine, exc: Value, handled: Value | None) -> None:
    """``__context__`` of an exception that is raised while another is handled."""
    if not isinstance(exc, ExceptionValue):
        return
    if not exc.raised:
        exc.raised = True
        exc.raised_at = m.whole_steps
    if handled is None or handled is exc:
        return
    if exc.real is not None:
        m.graph_break("exception-write", "an exception from outside gets a context")
    _cut_cycle(handled, exc)
    exc.context = handled


def _cut_cycle(handled: Value, exc: ExceptionValue) -> None:
    """As CPython does: the chain of contexts must not come back to the new exception."""
    at, seen = handled, {handled}
    while isinstance(at, ExceptionValue) and isinstance(at.context, ExceptionValue):
        if at.context is exc:
            at.context = None
        if at.context is None or at.context in seen:
            return
        at = at.context
        seen.add(at)


def unwind(m: Machine, raised: UserRaise, base: int) -> None:
    """Go to the handler of an exception; raise on if no frame above ``base`` has one."""
    frames = m.frames
    again = _raises_again(frames[-1])
    while len(frames) > base:
        frame = frames[-1]
        if isinstance(raised.exc, ExceptionValue) and not again:
            leave_trail(m, raised.exc, frame)
        again = False
        if m.finalizers.open:  # the traceback keeps the frame, and what it holds
            m.finalizers.raised_through.setdefault(raised.exc, []).append(frame)
        handler = frame.code.handlers[frame.index]
        if handler is not None:
            if isinstance(raised.exc, ExceptionValue):
                raised.exc.raised = True
            del frame.stack[handler.depth :]
            if handler.lasti:
                frame.stack.append(Const(frame.instructions[frame.index].lasti // 2))
            frame.stack.append(raised.exc)
            frame.pc = handler.target
            return
        frames.pop()
        if frame.generator is not None:
            frame.generator.state = "done"
    try:
        raise raised
    finally:
        del raised  # or its traceback and this frame would hold each other, and the user's objects


def leave_trail(m: Machine, exc: ExceptionValue, frame: Frame) -> None:
    """A frame is added to the traceback of an exception."""
    code = frame.function.code
    if not code.co_filename.startswith(_OURS):
        place = (frame.line(), *frame.instructions[frame.index].positions[1:])
        exc.trail.append((code.co_filename, place, code.co_name))
    if exc.real is not None:
        m.touch(exc)


def _raises_again(frame: Frame) -> bool:
    """Whether the instruction hands an exception on, which adds nothing to its traceback."""
    instruction = frame.instructions[frame.index]
    return instruction.op in ("RERAISE", "END_ASYNC_FOR") or (
        instruction.op == "RAISE_VARARGS" and not instruction.arg
    )


def inside_try(m: Machine) -> bool:
    """Whether an exception raised now might meet a handler of the program's.

    The cleanup that the compiler puts around handlers only raises on, and so do the context
    managers of torch and ``contextlib.nullcontext``.
    """
    return any(_has_handler(frame) for frame in m.frames)


def _has_handler(frame: Frame) -> bool:
    for handler in handlers_around(frame):
        begin = frame.instructions[handler.target + 1]
        if begin.op != "WITH_EXCEPT_START" or not _lets_pass(frame, handler.depth + 3 - begin.arg):
            return True
    return False


# How the handlers begin that the compiler puts around handlers, comprehensions and generators.
_CLEANUP = frozenset({"COPY", "SWAP", "CLEANUP_THROW", "STOPITERATION_ERROR"})


def handlers_around(frame: Frame) -> Iterator[Handler]:
    """The handlers of the program's in which the current instruction lies, innermost first."""
    handler = frame.code.handlers[frame.index]
    while handler is not None:
        if frame.instructions[handler.target].op not in _CLEANUP:
            yield handler
        handler = frame.code.handlers[handler.target]


def _lets_pass(frame: Frame, place: int) -> bool:
    """Whether the ``__exit__`` on the stack is that of a manager of torch, or does nothing."""
    exit_ = frame.stack[place] if len(frame.stack) > place else None
    owner = exit_.obj.cls if isinstance(exit_, BoundMethod) else type(None)
    return owner is nullcontext or owner.__module__.partition(".")[0] == "torch"


def push_handled(m: Machine, exc: Value) -> PreviousException:
    """Start handling an exception; gives what POP_EXCEPT restores."""
    previous = PreviousException(m.handled, exc)
    m.handled = exc
    return previous
