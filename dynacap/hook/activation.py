"""Which threads the hook is active in, and with which callback; the twin of activation.c."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from dynacap.hook.body_calls import BodyCalls
from dynacap.hook.protocol import Callback


class ThreadState(threading.local):
    """One thread: its callback, what unfinished ``enter`` calls replaced, the trace function."""

    def __init__(self, saw_call: Callable[[FrameType, Callback], None]) -> None:
        self.callback: Callback | None = None
        self.saved: list[Callback | None] = []
        self.tracing = False
        self.dropped = False
        """CPython dropped our trace function, since an exception went through it."""
        self.bare = self.tracer = Tracer(self, None, saw_call)
        """The trace function in place; ``bare`` is the one over no other."""

    @property
    def outer(self) -> Any:
        """The trace function that was there before ours.  It is served, and nobody else: frames run
        as they are, since it is told of each of their lines."""
        return self.tracer.outer if self.tracing else None


class Tracer:
    """Our trace function, over the one that was there before: seen a call, it lets that one see it.

    A program may ask for the trace function while ours is there, set another, and later put back
    what it got.  So each knows what it stands for, and one that is found where we put none is taken
    for that.
    """

    def __init__(
        self, thread: ThreadState, outer: Any, saw_call: Callable[[FrameType, Callback], None]
    ) -> None:
        self.outer = outer
        self._thread = thread
        self._saw_call = saw_call

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        thread, outer = self._thread, self.outer
        callback = thread.callback
        if callback is not None and event == "call" and outer is None:
            # Not pause() and resume(): nothing is traced in here, and near the recursion limit
            # only what makes no call is sure to happen.
            thread.callback = None
            try:
                self._saw_call(frame, callback)
            except RecursionError:
                pass
            except BaseException:
                thread.dropped = True
                raise
            finally:
                thread.callback = callback
        if outer is None:
            return None
        local = outer(frame, event, arg)
        self._stay_on_top(thread)
        return local

    def over(self, outer: Any) -> Tracer:
        """The same over another trace function."""
        return Tracer(self._thread, outer, self._saw_call)

    def _stay_on_top(self, thread: ThreadState) -> None:
        """Tracers in C put themselves in place of the Python function that called them."""
        current = sys.gettrace()
        if thread.tracing and current is not thread.tracer:
            thread.tracer = self.over(_below(current))
            sys.settrace(thread.tracer)


def _below(current: Any) -> Any:
    """The trace function that is not ours in the place of this one."""
    return current.outer if type(current) is Tracer else current


class Activation:
    """Switches ``sys.settrace`` in the threads where a callback is to be asked."""

    def __init__(
        self, saw_call: Callable[[FrameType, Callback], None], body_calls: BodyCalls
    ) -> None:
        self.thread = ThreadState(saw_call)
        self._body_calls = body_calls

    def enter(self, callback: Callback | None, frames: int = 0) -> int:
        """Make ``callback`` the thread's; the token ends it."""
        thread = self.thread
        thread.saved.append(thread.callback)
        self.switch(callback)
        return len(thread.saved) - 1

    def exit(self, token: int) -> None:
        """End what the matching :meth:`enter`, and each one after it, began in this thread."""
        saved = self.thread.saved
        if not 0 <= token < len(saved):
            raise RuntimeError(
                f"exit({token}): this thread has {len(saved)} unfinished enter(); each token "
                "serves once, in the thread that it was made in"
            )
        callback = saved[token]
        del saved[token:]
        self.switch(callback)

    def pause(self) -> tuple[Callback | None, int]:
        """Run our own code from here on, the hook inactive; :meth:`resume` ends it."""
        thread = self.thread
        paused = (thread.callback, len(thread.saved))
        if thread.callback is not None:
            self.switch(None)
        return paused

    def resume(self, paused: tuple[Callback | None, int]) -> None:
        """Undo :meth:`pause`, and each ``enter`` since that lacks its ``exit``."""
        callback, unfinished = paused
        del self.thread.saved[unfinished:]
        if callback is not self.thread.callback:
            self.switch(callback)

    def is_active(self) -> bool:
        """Whether a callback is to be asked in this thread."""
        return self.thread.callback is not None

    def switch(self, callback: Callback | None) -> None:
        """Exchange the thread's callback, and trace calls while there is one."""
        thread = self.thread
        thread.callback = callback
        if callback is None:
            self._stop_tracing(thread)
        else:
            self._start_tracing(thread)

    def _start_tracing(self, thread: ThreadState) -> None:
        current = sys.gettrace()
        if not thread.tracing:
            outer = _below(current)
            if outer is not None and not callable(outer):
                return  # of a tracer in C, which nobody but itself can call
            if outer is None:
                self._body_calls.put()
            else:
                thread.tracer = thread.bare.over(outer)
            thread.tracing = True
            thread.dropped = False
            sys.settrace(thread.tracer)
        elif current is None:
            # Dropped by CPython, when it met the recursion limit in calling it.
            sys.settrace(thread.tracer)

    def _stop_tracing(self, thread: ThreadState) -> None:
        if not thread.tracing:
            return
        thread.tracing = False
        current = sys.gettrace()
        # Someone who set another trace function meanwhile wants it to stay.
        if type(current) is Tracer:
            sys.settrace(current.outer)
        elif current is None and thread.dropped:
            sys.settrace(thread.tracer.outer)
        thread.tracer = thread.bare
        self._body_calls.take_away()  # untraced: near the recursion limit each call counts
