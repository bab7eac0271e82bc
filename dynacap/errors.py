"""Every exception that dynacap raises: one base class, a sentence for each.

The names that torch.compile has too mean here what they mean there.  Exceptions of the user's own
code are never wrapped in one of these while it runs as plain Python or as compiled code.
"""

import linecache
from dataclasses import dataclass

from dynacap.break_reasons import REASONS


@dataclass(frozen=True, slots=True)
class UserFrame:
    """One line of the user's code: file, line number and the function's name."""

    filename: str
    lineno: int
    function: str

    @property
    def source(self) -> str:
        """The text of the line, or nothing where the file cannot be read."""
        return linecache.getline(self.filename, self.lineno).strip()

    def __str__(self) -> str:
        return f"{self.filename}:{self.lineno} in {self.function}"


UserStack = tuple[UserFrame, ...]


def format_stack(stack: UserStack) -> str:
    """The user's stack as Python prints one: outermost call first, each with its line of code."""
    lines = []
    for frame in stack:
        lines.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.function}')
        if frame.source:
            lines.append(f"    {frame.source}")
    return "\n".join(lines)


class DynacapError(RuntimeError):
    """Base of every exception here; a RuntimeError, as its counterpart in torch is."""


class ExplainedBreak(DynacapError):
    """Base of the two that say why a graph broke, where, and what to do."""

    def __init__(
        self, reason: str, detail: str = "", hint: str = "", stack: UserStack = ()
    ) -> None:
        super().__init__(reason, detail, hint, stack)
        self.reason = reason
        self.detail = detail
        self.hint = hint
        self.stack = stack

    def __str__(self) -> str:
        return explain_break(self.reason, self.detail, self.hint, self.stack)


class GraphBreak(ExplainedBreak):
    """Capture cannot go past an instruction; it is compiled up to there.  Never reaches the user.

    ``reason`` is the slug of an entry in the registry of break reasons, ``detail`` what was met
    here, ``hint`` what the user can do, ``stack`` the user's frames, outermost first.  ``before``:
    the step of the chain before which capture has to end, where that is not the one that runs; -2
    if nothing is to be captured.
    """

    before = -1

    def at(self, before: int) -> "GraphBreak":
        """The same, before a step.  (It must not be named where it is raised: a frame of its own
        traceback would hold it, and all that lives there would wait for the garbage collector.)
        """
        self.before = before
        return self

    def bare(self) -> "GraphBreak":
        """The same, without the frames of ours that it came from: they hold the user's objects."""
        return GraphBreak(self.reason, self.detail, self.hint, self.stack)


class SkipFrame(DynacapError):
    """This frame runs as plain Python, for the reason given.  Never reaches the user."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}" if self.detail else self.reason


class Unsupported(ExplainedBreak):
    """A graph break under ``fullgraph=True``, with the whole explanation."""

    @classmethod
    def from_break(cls, graph_break: GraphBreak) -> "Unsupported":
        """The error for a break that was not allowed."""
        return cls(graph_break.reason, graph_break.detail, graph_break.hint, graph_break.stack)


def explain_break(reason: str, detail: str, hint: str, stack: UserStack) -> str:
    """What was met, why it breaks the graph, what to do, and where in the user's code."""
    lines = [f"graph break [{reason}]" + (f": {detail}" if detail else "")]
    if reason in REASONS:
        lines.append(f"  why: {REASONS[reason].explanation}")
    if hint:
        lines.append(f"  what to do: {hint}")
    if stack:
        lines += ["  your code (most recent call last):", format_stack(stack)]
    return "\n".join(lines)


class TorchRuntimeError(DynacapError):
    """A torch operation failed on the fake tensors, so that it would fail on real ones too."""


class UserError(DynacapError):
    """The user asked dynacap for something that has no meaning, or marked something wrongly."""


class RecompileError(DynacapError):
    """A recompile happened although ``config.error_on_recompile`` forbids it."""


class FailOnRecompileLimitHit(DynacapError):
    """The recompile limit was reached while ``config.fail_on_recompile_limit_hit`` is set."""


class BackendCompilerFailed(DynacapError):
    """A backend raised while it compiled a graph; names the backend, the graph and the node.

    ``inner_exception`` (and ``__cause__``) is what the backend raised.
    """

    def __init__(
        self, backend: str, inner_exception: BaseException, node: str = "", graph: str = ""
    ) -> None:
        super().__init__(backend, inner_exception, node, graph)
        self.backend = backend
        self.inner_exception = inner_exception
        self.node = node
        self.graph = graph
        self.__cause__ = inner_exception

    def __str__(self) -> str:
        inner = self.inner_exception
        lines = [f"backend {self.backend!r} failed: {type(inner).__name__}: {inner}"]
        if self.node:
            lines.append(f"  at node: {self.node}")
        if self.graph:
            lines.append("  in the graph:\n" + _indent(self.graph))
        lines.append(
            "  what to do: try backend='eager' to see whether the graph itself is right, or set"
            " dynacap.config.suppress_backend_errors = True to run such graphs eagerly"
        )
        return "\n".join(lines)


class GraphError(DynacapError):
    """A graph is malformed, or was asked for a change that would make it so; shows the node."""


class MetadataMismatch(DynacapError):
    """An operation gave a tensor other than the graph says; names the node and the user's line."""


class VerificationFailed(DynacapError):
    """What a backend made of a graph differs from eager; names a program that shows it."""


class InvalidBackend(DynacapError):
    """No backend goes by the name that was asked for."""


class InternalError(DynacapError):
    """Something in dynacap went wrong that never should; raised instead of running eagerly only
    while ``config.raise_internal_errors`` is set.
    """


def _indent(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


class UnsupportedPython(DynacapError):
    """The bytecode of this Python is not known here; functions run as plain Python."""


class ResumeError(DynacapError):
    """No code can be made that goes on from this point; the frame runs as plain Python."""
