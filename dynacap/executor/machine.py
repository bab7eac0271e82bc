"""The symbolic executor of one captured region: a chain of frames, stepped instruction by
instruction.

The frames of ``self.frames`` form one chain.  Calls made by CALL instructions push a frame and go
on in the same loop; calls made from inside the data model (an operator, a property) run a nested
loop to their end.  A graph break is taken on the chain: before the current instruction of its
innermost frame.  If it came up in a nested loop, capture starts afresh and stops there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

from dynacap import marks
from dynacap.break_reasons import REASONS
from dynacap.errors import GraphBreak, UserFrame
from dynacap.executor import exceptions, generators
from dynacap.executor.exceptions import set_context, unwind
from dynacap.executor.finalizers import Finalizers, close_dropped, keep_outside
from dynacap.executor.frame import RETURN, Frame
from dynacap.executor.generators import is_suspendable, make_generator
from dynacap.executor.inline import Kwargs, guard_code, make_frame
from dynacap.executor.library_calls import library_call
from dynacap.executor.outside import Outside
from dynacap.executor.registry import HANDLERS
from dynacap.guards.kinds import Guard
from dynacap.hook import choose_hook
from dynacap.values import data_model
from dynacap.values.base import Const, NotConstant, UserRaise, Value
from dynacap.values.data_model.calls import call_resolved, resolve_call
from dynacap.values.data_model.exceptions import makes_more
from dynacap.values.function import FunctionValue
from dynacap.values.natives import find_native_code, is_whole
from dynacap.values.object import ExceptionValue
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.family import TensorFamily

MAX_WORK = 1_000_000  # instructions (1.7 s) without any operation: a loop is left alone
MAX_NESTED = 60  # nested loops; each takes several frames of the host's own stack


_OURS = str(Path(__file__).parents[1])


class StopHere(Exception):
    """Capture reached the instruction before which an earlier attempt has to break."""


class Machine(Outside):
    """Executes frames symbolically; what the values know as the Tracer."""

    until: tuple[Guard, ...] = ()  # a break is one only while these hold

    def __init__(self, tensors: TensorFamily, stop_at: int = -1) -> None:
        super().__init__()
        self.tensors = tensors
        self.frames: list[Frame] = []
        self.handled: Value | None = None  # the exception that is being handled now
        self.depth = 0  # of nested loops
        self.steps = 0  # instructions executed on the chain
        self.stop_at = stop_at
        self.next_look, self.last_look = MAX_WORK, (-2, 0)  # steps and graph when we looked last
        self.finalizers = Finalizers()
        self.max_frames = min(1000, choose_hook().frames_left())
        self.entered: set[CodeType] = set()  # what calls ran of the user's, for reports

    # -- where we are ----------------------------------------------------------------------------
    def location(self) -> tuple[str, int, str]:
        """File, line and function of the instruction that runs now, library frames left out."""
        frame = self._shown_frame()
        code = frame.function.code
        return code.co_filename, frame.line(), code.co_name

    def _shown_frame(self) -> Frame:
        for frame in reversed(self.frames):
            if frame.function.source is not None or frame.function.real is None:
                return frame
        return self.frames[-1]

    def user_frame(self) -> UserFrame | None:
        """The same as a record; None in code of ours."""
        if not self.frames:
            return None
        place = self.location()
        return None if place[0].startswith(_OURS) else UserFrame(*place)

    def running(self) -> FunctionValue:
        """The function whose frame is innermost."""
        return self.frames[-1].function

    def user_stack(self) -> tuple[UserFrame, ...]:
        """The user's stack, outermost first."""
        return tuple(
            UserFrame(f.function.code.co_filename, f.line(), f.function.code.co_name)
            for f in self.frames
        )

    def release(self) -> None:
        """Let go of every object of the user's: capture is over.

        Values know the machine and the machine knows them; without this the user's objects would
        live until the garbage collector comes by.
        """
        for value in self.mirrors.values():
            value.release()
        self.mirrors.clear()
        self._alive.clear()
        self._touched.clear()
        self.frames.clear()
        self.handled = None
        self.tensors.release()

    # -- the loops -------------------------------------------------------------------------------
    def run_chain(self) -> Value:
        """Run the chain until its outermost frame returns; UserRaise if the program raises."""
        frames, finalizers = self.frames, self.finalizers
        stop_at = self.stop_at if self.stop_at >= 0 else sys.maxsize
        while True:
            frame = frames[-1]
            if frame.code.starts[frame.pc]:
                if self.steps >= stop_at:
                    raise StopHere
                self.whole_steps = self.steps
            self.steps += 1
            if finalizers.outside:
                keep_outside(self, frame)
            result = self._step(frame, 0)
            if finalizers.open:
                close_dropped(self, frame, result)
            if result is not None:
                return result

    def run_nested(self) -> Value:
        """Run the frame just pushed to its end."""
        if self.depth >= MAX_NESTED:
            self.frames.pop()
            self.graph_break("nesting", "calls nested too deep inside operators or iterators")
        frames = self.frames
        base = len(frames) - 1
        self.depth += 1
        try:
            while True:
                frame = frames[-1]
                result = self._step(frame, base)
                if self.finalizers.open:
                    close_dropped(self, frame, result)
                if result is not None:
                    return result
        finally:
            self.depth -= 1
            self.finalizers.left(self.depth)
            del frames[base:]

    def _step(self, frame: Frame, base: int) -> Value | None:
        """Execute one instruction; the result when the frame at ``base`` returns or yields."""
        self.work += 1
        index = frame.index = frame.pc
        frame.pc = index + 1
        instruction = frame.instructions[index]
        try:
            signal = HANDLERS[instruction.op](self, frame, instruction)
        except UserRaise as raised:
            unwind(self, raised, base)
            return None
        except NotConstant as unknown:
            if type(unknown.args[0]) is SymbolValue:
                self.graph_break(*unknown.args[0].unknown)
            self.graph_break("not-constant", f"{unknown.args[0]!r} in {instruction.op}")
        if signal is None:
            return None
        value = frame.pop()
        self.frames.pop()
        if len(self.frames) == base:
            return value
        assert signal is RETURN
        self.frames[-1].stack.append(value)
        return None

    def look(self) -> None:
        """Leave to plain Python what goes on and on without any operation for the graph."""
        if self.work < self.next_look:
            return
        self.next_look = self.work + MAX_WORK
        before, operations = self.last_look
        self.last_look = self.whole_steps, len(self.tensors.graph.nodes)
        if operations == self.last_look[1]:
            self.graph_break("long-loop", f"{MAX_WORK} instructions", before=before)

    # -- calls -----------------------------------------------------------------------------------
    def call(self, fn: Value, args: list[Value], kwargs: Kwargs | None = None) -> Value:
        """Call a value now, inlining Python functions."""
        fn, args = resolve_call(self, fn, args)
        return call_resolved(self, fn, args, kwargs or {})

    def inline(self, fn: FunctionValue, args: list[Value], kwargs: Kwargs) -> Value:
        """Run a Python function symbolically to its end, in a nested loop."""
        entered = self.enter(fn, args, kwargs)
        return entered if entered is not None else self.run_nested()

    def enter(self, fn: FunctionValue, args: list[Value], kwargs: Kwargs) -> Value | None:
        """Push the frame of a call; or give its result, if the call only makes a generator."""
        if fn.real is not None and marks.wrapped_by_torch(fn.real) is not None:
            return self._enter_wrapped(fn, args, kwargs)
        special = self.special_function(fn, args, kwargs)
        if special is not None:
            return special
        frame = make_frame(self, fn, args, kwargs)
        if is_suspendable(fn.code):
            return make_generator(self, fn, frame)
        if len(self.frames) >= self.max_frames:
            self.graph_break("recursion", f"{len(self.frames)} calls deep")
        self.frames.append(frame)
        self.entered.add(fn.code)
        return self.run_nested() if is_whole(fn.code) else None

    def _enter_wrapped(self, fn: FunctionValue, args: list[Value], kwargs: Kwargs) -> Value | None:
        """A function that torch.compile made is what it wraps."""
        wrapped = self.find_attribute(fn, marks.WRAPPED_BY_TORCH)
        assert wrapped is not None
        inner, args = resolve_call(self, wrapped, args)
        if isinstance(inner, FunctionValue):
            return self.enter(inner, args, kwargs)
        return call_resolved(self, inner, args, kwargs)

    def special_function(
        self, fn: FunctionValue, args: list[Value], kwargs: Kwargs
    ) -> Value | None:
        """The result of a Python function that is not inlined: a torch operation, a handler."""
        if fn.real is None:
            return None
        by_code = find_native_code(fn.code)
        if by_code is not None:
            guard_code(self, fn)
            return by_code(self, fn, args, kwargs)
        result = library_call(self, fn.real, args, kwargs)
        if result is not None and fn.source is not None:
            self.guard("IdIs", fn.source, fn.real)
        return result

    # -- exceptions and breaks -------------------------------------------------------------------
    def raise_error(self, cls: type[BaseException], *args: Any) -> NoReturn:
        """Raise a built-in exception in the traced program."""
        self.throw(ExceptionValue(cls, [self.wrap(arg, None) for arg in args]))

    def raise_real(self, error: BaseException, about: Value | None = None) -> NoReturn:
        """Raise in the traced program what folding an operation raised for real."""
        if makes_more(type(error), len(error.args)) or _came_of_another(error):
            self.graph_break("exception", f"{type(error).__name__} is raised")
        made = ExceptionValue(type(error), [self.wrap(arg, None) for arg in error.args])
        if isinstance(error, AttributeError) and about is not None and error.name:
            made.slots = {"name": Const(error.name), "obj": about}
        for note in getattr(error, "__notes__", ()):
            self.call(data_model.get_attribute(self, made, "add_note"), [Const(note)])
        self.throw(made)

    def throw(self, exc: Value) -> NoReturn:
        """Raise a symbolic exception, with its context."""
        set_context(self, exc, self.handled)
        raise UserRaise(exc)

    def graph_break(
        self, reason: str, detail: str = "", hint: str = "", before: int = -1
    ) -> NoReturn:
        """Stop capture before the current instruction of the chain, or before that step of it."""
        raise GraphBreak(reason, detail, hint or REASONS[reason].hint, self.user_stack()).at(before)

    # -- what stands elsewhere ---------------------------------------------------------------------
    find_attribute = data_model.find_attribute
    call_special = data_model.call_special
    get_item = data_model.get_item
    unpack = data_model.unpack
    resume_generator = generators.resume_generator
    inside_try = exceptions.inside_try


def _came_of_another(error: BaseException) -> bool:
    """Whether it has a cause or context that the call made, and not we by handling one of ours."""
    other = error.__cause__ or error.__context__
    entry = other.__traceback__ if other is not None else None
    ours = entry is not None and entry.tb_frame.f_code.co_filename.startswith(_OURS)
    return other is not None and not ours
