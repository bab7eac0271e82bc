"""Exceptions of the traced program: raising, context, and the way to a handler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from dynacap.executor.frame import Frame, PreviousException
from dynacap.opcodes.instruction import Handler
from dynacap.values.base import Const, Known, UserRaise, Value
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
            _leave_trail(m, raised.exc, frame)
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
    raise raised


def _leave_trail(m: Machine, exc: ExceptionValue, frame: Frame) -> None:
    code = frame.function.code
    if not code.co_filename.startswith(_OURS):
        place = (frame.line(), *frame.instructions[frame.index].positions[1:])
        exc.trail.append((code.co_filename, place, code.co_name))
    if exc.real is not None:
        m.touch(exc)


def _raises_again(frame: Frame) -> bool:
    """Whether the instruction hands an exception on, which adds nothing to its traceback."""
    instruction = frame.instructions[frame.index]
    return instruction.op == "RERAISE" or (
        instruction.op == "RAISE_VARARGS" and not instruction.arg
    )


def inside_try(m: Machine, by_data: bool = False) -> bool:
    """Whether an exception raised now might meet a handler of the program's; ``by_data``: one that
    an operation raises for the data that it meets.

    The cleanup that the compiler puts around handlers only raises on, and so do the context
    managers of torch.
    """
    return any(_has_handler(m, frame, by_data) for frame in m.frames)


def _has_handler(m: Machine, frame: Frame, by_data: bool) -> bool:
    for handler in handlers_around(frame):
        second = frame.instructions[handler.target + 1]
        if second.op == "WITH_EXCEPT_START" and _is_of_torch(frame, handler.depth):
            continue
        if not by_data or _takes_others(m, frame, handler.target + 1):
            return True
    return False


# What no operation raises that went well with fake tensors.
_NEVER_BY_DATA = frozenset(
    {AttributeError, ImportError, KeyError, NameError, NotImplementedError, TypeError}
)
_OF_CLAUSES = frozenset({"LOAD_GLOBAL", "BUILD_TUPLE", "CHECK_EXC_MATCH", "POP_JUMP_IF_FALSE"})


def _takes_others(m: Machine, frame: Frame, index: int) -> bool:
    """Whether a handler takes more than those, by the names in its ``except`` clauses."""
    while (instruction := frame.instructions[index]).op in _OF_CLAUSES:
        if instruction.op == "LOAD_GLOBAL":
            name = instruction.arg
            found = frame.globals.get(m, name) or frame.builtins.get(m, name)
            if not isinstance(found, Known) or found.value not in _NEVER_BY_DATA:
                return True
        index = index + 1 if instruction.target is None else instruction.target
    return instruction.op != "RERAISE"


# How the handlers begin that the compiler puts around handlers, comprehensions and generators.
_CLEANUP = frozenset({"COPY", "SWAP", "CLEANUP_THROW", "STOPITERATION_ERROR"})


def handlers_around(frame: Frame) -> Iterator[Handler]:
    """The handlers of the program's in which the current instruction lies, innermost first."""
    handler = frame.code.handlers[frame.index]
    while handler is not None:
        if frame.instructions[handler.target].op not in _CLEANUP:
            yield handler
        handler = frame.code.handlers[handler.target]


def _is_of_torch(frame: Frame, depth: int) -> bool:
    """Whether the ``__exit__`` below a handler's depth is that of a context manager of torch."""
    exit_ = frame.stack[depth - 1] if len(frame.stack) >= depth else None
    owner = exit_.obj.cls if isinstance(exit_, BoundMethod) else type(None)
    return owner.__module__.partition(".")[0] == "torch"


def push_handled(m: Machine, exc: Value) -> PreviousException:
    """Start handling an exception; gives what POP_EXCEPT restores."""
    previous = PreviousException(m.handled, exc)
    m.handled = exc
    return previous
