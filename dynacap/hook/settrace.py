"""The hook in plain Python: sees calls through ``sys.settrace``, dispatches by a trampoline.

A trace function can neither replace the frame that starts nor ask for its function.  So the first
call of a function that the callback wants runs as it is, and from then on the function's
``__code__`` is a trampoline: it asks the callback of the thread in which it runs and calls what
that answers, or the original code.  What inspects ``function.__code__`` meanwhile sees the
trampoline, and tracebacks show its frame above the one of the original code.  ``reset()`` puts the
original back.
"""

import inspect
import os
import sys
import threading
import weakref
from contextlib import AbstractContextManager
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from dynacap.hook import compiled_function
from dynacap.hook.activation import Activation
from dynacap.hook.bodies import body, is_body
from dynacap.hook.body_calls import BodyCalls
from dynacap.hook.code_table import CodeTable
from dynacap.hook.failures import report_failure
from dynacap.hook.functions import FunctionFinder
from dynacap.hook.protocol import (
    Callback,
    Capabilities,
    CompiledFunction,
    Finish,
    FrameCallable,
    Never,
)
from dynacap.hook.signature import TRAMPOLINE_FILE, spreader, trampoline as trampoline_code
from dynacap.hook.trampoline import trampoline

_ANY_GENERATOR = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
    | inspect.CO_ITERABLE_COROUTINE
)
_FUNCTION_BODY = inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
_OURS = (os.path.dirname(os.path.dirname(__file__)) + os.sep, TRAMPOLINE_FILE)  # all of dynacap


class Exchange:
    """One function whose code is a trampoline.

    The function owns the trampoline, and the trampoline owns this.  The way back is by weak
    references: the garbage collector does not look into code objects, so that a cycle through one
    would never go.
    """

    def __init__(self, function: FunctionType) -> None:
        self.original = function.__code__
        self._spread = spreader(self.original)
        self._function = weakref.ref(function)
        function.__code__ = trampoline_code(self.original, self.run)

    def run(self, *bound: Any) -> Any:
        """What the trampoline calls, with the arguments that it bound."""
        function = self._function()
        if function is None:
            raise RuntimeError("a trampoline ran for a function that is gone")
        if is_body(self.original):
            bound = (sys._getframe(1).f_locals,)
        thread = _activation.thread
        callback = None if thread.outer is not None else thread.callback
        if callback is not None and self.original not in _never:
            paused = _activation.pause()
            try:
                answer = _ask(callback, function)
                if answer is not None:
                    return _run_flat(answer, function, *bound)
            finally:
                _activation.resume(paused)
        if is_body(self.original):
            return body(function, self.original, *bound)(None)
        return self._spread(self._as_it_was(function), *bound)

    def undo(self) -> None:
        """Put the original code back, unless the user has put something else there."""
        function = self._function()
        if function is not None and _exchanged.get(function.__code__) is self:
            function.__code__ = self.original

    def _as_it_was(self, function: FunctionType) -> FunctionType:
        return FunctionType(
            self.original, function.__globals__, function.__name__, None, function.__closure__
        )


def _run_flat(answer: FrameCallable, /, *flat: Any) -> Any:
    """Call a frame callable, or the table of a compiled function; the hook is inactive already."""
    if isinstance(answer, compiled_function.CompiledFunction):
        return answer.run(*flat)
    return answer(*flat)


def original_code(function: FunctionType) -> CodeType:
    """The code that the function had before it was exchanged."""
    exchange = _exchanged.get(function.__code__)
    return function.__code__ if exchange is None else exchange.original


def _ask(callback: Callback, function: FunctionType) -> FrameCallable | None:
    """The callback's answer; None for all that is no callable.  The hook is inactive already."""
    try:
        answer = callback(function)
    except Exception as error:
        report_failure(error, function)
        return None
    if isinstance(answer, Never):
        _never[original_code(function)] = True
        return None
    return answer


def _saw_call(frame: FrameType, callback: Callback) -> None:
    """A frame begins: exchange its function's code if the callback wants it."""
    code = frame.f_code
    if code.co_flags & (_ANY_GENERATOR | _FUNCTION_BODY) != _FUNCTION_BODY:
        return
    if code in _never or code in _exchanged or _is_exchanged(code):
        return
    if code.co_filename.startswith(_OURS):
        return
    function = _finder.find(frame)
    if function is not None:
        _offer(function, callback)


def _offer(function: FunctionType, callback: Callback) -> None:
    code = function.__code__
    if _ask(callback, function) is None:
        return
    try:
        _exchange(function, code)
    except Exception as error:
        _never[code] = True
        report_failure(error, function)


def _will_run(function: FunctionType) -> None:
    """A body is about to run for the first time."""
    thread = _activation.thread
    callback = None if thread.outer is not None else thread.callback
    code = function.__code__
    if callback is not None and code not in _never and code not in _exchanged:
        paused = _activation.pause()
        try:
            _offer(function, callback)
        finally:
            _activation.resume(paused)


def _exchange(function: FunctionType, code: CodeType) -> None:
    with _lock:
        if function.__code__ is code:
            exchange = Exchange(function)
            _exchanged[function.__code__] = exchange
            _originals[code] = weakref.ref(exchange)


def _is_exchanged(code: CodeType) -> bool:
    """Whether this is the code behind a trampoline, now run for it (or for a second function)."""
    exchange = _originals.get(code)
    return exchange is not None and exchange() is not None


_lock = threading.Lock()
_body_calls = BodyCalls(_will_run)
_activation = Activation(_saw_call, _body_calls)
_finder = FunctionFinder()
_never: CodeTable[bool] = CodeTable()
_exchanged: CodeTable[Exchange] = CodeTable()  # by the trampoline
_originals: CodeTable[weakref.ref[Exchange]] = CodeTable()


class Active:
    """While entered, calls in this thread are offered to the callback."""

    def __init__(self, callback: Callback | None) -> None:
        self._callback = callback
        self._token: int | None = None

    def __enter__(self) -> "Active":
        if self._token is not None:
            raise RuntimeError("this activation is entered already; make another")
        self._token = _activation.enter(self._callback)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        token, self._token = self._token, None
        _activation.exit(-1 if token is None else token)


class SettraceHook:
    """The functions of this module under the names of the Protocol."""

    name = "settrace"
    capabilities = Capabilities(
        replaces_running_frame=False,
        sees_every_function=False,
        keeps_code=False,
        keeps_recursion_limit=False,
        tidies_tracebacks=False,
    )

    enter = staticmethod(_activation.enter)
    exit = staticmethod(_activation.exit)
    is_active = staticmethod(_activation.is_active)
    clear_marks = staticmethod(_never.clear)
    in_place_of = staticmethod(_body_calls.in_place_of)
    original_code = staticmethod(original_code)
    set_suspend_type = staticmethod(compiled_function.set_suspend_type)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def active(self, callback: Callback | None) -> AbstractContextManager[object]:
        """A context: offer calls of this thread to ``callback``."""
        return Active(callback)

    def mark_never(self, code: CodeType) -> None:
        """Offer calls of ``code`` to nobody."""
        _never[code] = True

    def is_marked(self, code: CodeType) -> bool:
        """Whether :meth:`mark_never` holds for ``code``."""
        return code in _never

    def mark_hidden(self, code: CodeType) -> None:
        """Nothing: see ``capabilities.tidies_tracebacks``."""

    def frames_left(self) -> int:
        """The whole limit: frames of ours stand between those of the user's."""
        return sys.getrecursionlimit()

    def compiled_function(
        self, function: FunctionType, table: FrameCallable, finish: Finish | None = None
    ) -> CompiledFunction:
        """A compiled function in Python."""
        return compiled_function.CompiledFunction(
            function, table, finish, _activation, original_code
        )

    def trampoline(self, driver: Any, paths: dict[Any, Any], weakly: bool = False) -> Finish:
        """The driver's loop."""
        return trampoline(driver, weakly)

    def path(self, *fields: Any) -> None:
        """None: all breaks go through the driver."""

    def take(self, function: FunctionType) -> None:
        """Dispatch a function from its first call on."""
        code = function.__code__
        if code.co_flags & _ANY_GENERATOR or code in _exchanged:
            return
        paused = _activation.pause()
        try:
            _exchange(function, code)
        finally:
            _activation.resume(paused)

    def reset(self) -> None:
        """Put every exchanged code back and forget marks and findings."""
        for exchange in _exchanged.values():
            exchange.undo()
        _exchanged.clear()
        _originals.clear()
        _never.clear()
        _finder.clear()
