"""The hook in C: replaces frames as they start (PEP 523).

``import dynacap.hook.pep523`` raises ImportError where the extension is not built.
"""

import os
from types import CodeType, FunctionType

from dynacap.hook import _chook
from dynacap.hook.failures import report_failure
from dynacap.hook.protocol import NEVER, Capabilities, CompiledFunction, Finish, FrameCallable

_chook.configure(NEVER, report_failure)
os.register_at_fork(after_in_child=_chook.after_fork)


class Pep523Hook:
    """The functions of the C extension under the names of the Protocol."""

    name = "pep523"
    capabilities = Capabilities(
        replaces_running_frame=True,
        sees_every_function=True,
        keeps_code=True,
        keeps_recursion_limit=True,
        tidies_tracebacks=True,
    )

    active = _chook.Active
    enter = staticmethod(_chook.enter)
    exit = staticmethod(_chook.exit)
    is_active = staticmethod(_chook.is_active)
    mark_never = staticmethod(_chook.mark_never)
    is_marked = staticmethod(_chook.is_marked)
    clear_marks = staticmethod(_chook.clear_marks)
    mark_hidden = staticmethod(_chook.mark_hidden)
    frames_left = staticmethod(_chook.frames_left)
    path = staticmethod(_chook.Path)
    trampoline = staticmethod(_chook.Trampoline)
    set_suspend_type = staticmethod(_chook.set_suspend_type)
    reset = staticmethod(_chook.clear_marks)

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def original_code(self, function: FunctionType) -> CodeType:
        """The function's code, which this hook never changes."""
        return function.__code__

    def take(self, function: FunctionType) -> None:
        """Nothing: each function is."""

    def in_place_of(self, value: object) -> object:
        """The value: bodies are offered as they start."""
        return value

    def compiled_function(
        self, function: FunctionType, table: FrameCallable, finish: Finish | None = None
    ) -> CompiledFunction:
        """A compiled function in C."""
        return _chook.CompiledFunction(function, table, finish)
