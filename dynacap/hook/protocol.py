"""What a frame hook is: the Protocol that the C hook and the ``sys.settrace`` twin implement."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final, Protocol, TypeAlias


class Never:
    """The type of :data:`NEVER`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NEVER"


NEVER: Final = Never()
"""A callback's answer for code that is never worth it: the code is marked, for all callbacks."""

FrameCallable: TypeAlias = Callable[..., Any]
"""Runs in place of a frame, as ``frame_callable(function, *arguments)``: arguments in the order
of ``co_varnames``, as CPython binds them (positional, keyword-only, ``*args``, ``**kwargs``).  The
body of a class or module, and what ``exec`` runs, has its namespace for an argument."""

Callback: TypeAlias = Callable[[FunctionType], FrameCallable | Never | None]
"""Asked for each new frame; ``None``: let it run as it is."""

Finish: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Capabilities:
    """What a hook can do; code and tests ask for these and never for a hook's name."""

    replaces_running_frame: bool
    """The first call that the callback wants is replaced, not only those that follow."""

    sees_every_function: bool
    """Functions are found whatever holds them; otherwise closures may be missed."""

    keeps_code: bool
    """``function.__code__`` stays what it is; otherwise see :meth:`Hook.original_code`."""

    keeps_recursion_limit: bool
    """Our own frames do not count against ``sys.getrecursionlimit()``."""

    tidies_tracebacks: bool
    """Frames of code that was given to :meth:`Hook.mark_hidden` stay out of tracebacks."""


class CompiledFunction(Protocol):
    """A callable which binds its arguments and calls ``table(function, *bound)``.

    It behaves as the function does: attributes, signature, methods, weak references; it is pickled
    and copied by name, as functions are.  Defaults are read from the function at each call.  A
    result of exactly the class that was given to :meth:`Hook.set_suspend_type` goes through
    ``finish`` first, if there is one.  The table may be exchanged at any time.
    """

    table: FrameCallable
    finish: Finish | None

    @property
    def function(self) -> FunctionType:
        """The function whose calls these are."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...


class Hook(Protocol):
    """Offers the frames that start in a thread to a callback, while it is active there.

    A frame is offered if it is the start of a Python function, or of a body, which is neither a
    generator nor a coroutine and whose code is not marked; none while the thread has a trace
    function of the user's, which is told of each line.  The callback, and what it answers, run
    with the hook inactive in the thread; an exception of the callback is logged and the frame runs
    as it is.
    """

    name: str
    reason: str
    capabilities: Capabilities

    def active(self, callback: Callback | None) -> AbstractContextManager[object]:
        """A context: offer frames of this thread to ``callback`` (``None``: to nobody)."""

    def enter(self, callback: Callback | None, frames: int = 0) -> int:
        """Begin what :meth:`active` does; the token ends it.

        ``frames`` of the user's wait meanwhile that are not on the stack: where the recursion limit
        is kept, they count against it.
        """

    def exit(self, token: int) -> None:
        """End what the matching :meth:`enter`, and each one after it, began in this thread."""

    def is_active(self) -> bool:
        """Whether frames of this thread are offered to a callback at the moment."""

    def mark_never(self, code: CodeType) -> None:
        """Offer frames of ``code`` to nobody, in all threads."""

    def is_marked(self, code: CodeType) -> bool:
        """Whether :meth:`mark_never` holds for ``code``."""

    def clear_marks(self) -> None:
        """Forget every :meth:`mark_never`."""

    def mark_hidden(self, code: CodeType) -> None:
        """Leave frames of ``code`` out of tracebacks, unless the error arose in one of them."""

    def frames_left(self) -> int:
        """How many more frames of the user's the recursion limit allows, as far as is known."""

    def original_code(self, function: FunctionType) -> CodeType:
        """The code that the function had before the hook touched it."""

    def take(self, function: FunctionType) -> None:
        """Offer a function from its very next call on, for hooks that have to be told."""

    def in_place_of(self, value: Any) -> Any:
        """What is called for a function of Python's that runs bodies; any other value as it is."""

    def compiled_function(
        self, function: FunctionType, table: FrameCallable, finish: Finish | None = None
    ) -> CompiledFunction:
        """Make a :class:`CompiledFunction`; as a callback's answer it serves like its table."""

    def trampoline(self, driver: Any, paths: dict[Any, Any], weakly: bool = False) -> Finish:
        """What goes on from a suspended region: ``driver.finish``, or by ``paths`` where it can.

        A path says what ``driver`` did before: see :meth:`path`.  It is asked for the rest by
        ``finish``, ``offer``, ``table_at``, ``watched_at`` and ``thrown``.
        """

    def path(
        self,
        step: FunctionType,
        waiting: int,
        head: int,
        rest: tuple[Any, ...],
        sites: tuple[Any, ...],
        ends: tuple[bool, ...],
    ) -> Any:
        """How to go on from a break without the driver; None where this hook cannot.

        ``step`` runs the instruction, given the frame's values behind the function; the first
        ``waiting`` values of all belong to the frames at ``rest``, the next ``head`` stay in front
        of what the step gives.  By its outcome: the ``sites`` then, and whether the frame ``ends``.
        """

    def set_suspend_type(self, suspend_type: type | None) -> None:
        """The class of results that are unfinished, see :class:`CompiledFunction`."""

    def reset(self) -> None:
        """Undo everything that the hook changed, marks included."""
