"""Objects that are made again by one call: of what, on what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dynacap.values.base import Value, fields
from dynacap.values.tracer import Tracer

Recipe = tuple[Callable[..., Any], list[Value]]


class Writer(Protocol):
    """What code generation offers here."""

    machine: Any
    late: list[str]  # the lines behind all others

    def helper(self, function: Any) -> str:
        """A name for a callable that the entry holds."""

    def exprs(self, values: list[Value]) -> str:
        """Expressions for values, separated by commas."""


class Rebuildable(Value):
    """A value whose object one call gives, in the state in which it is now."""

    __slots__ = ()

    def recipe(self, t: Tracer) -> Recipe:
        """What to call, and on what."""
        return t.graph_break("cannot-rebuild", f"a {self.describe()} leaves the captured region")

    def rebuild(self, writer: Writer) -> str:
        """The call as an expression."""
        function, args = self.recipe(writer.machine)
        return f"{writer.helper(function)}({writer.exprs(args)})"


@fields
class Made(Rebuildable):
    """An object that nothing looks into: what makes it, of what."""

    cls: type
    make: Callable[..., Any]
    operands: list[Value]

    def recipe(self, t: Tracer) -> Recipe:
        """What to call, and on what."""
        return self.make, self.operands
