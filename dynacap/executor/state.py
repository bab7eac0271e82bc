"""What the parts of the machine ask of each other: what a Tracer gives, by one part or another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.values.base import Value

    class State(Tracer):
        """Base of the machine's parts, to a type checker."""

        def find_attribute(self, obj: Value, name: str) -> Value | None:
            """``getattr(obj, name)``, or None where Python would raise its own AttributeError."""

        def unpack(self, obj: Value) -> list[Value]:
            """``[*obj]``."""
else:
    State = object
