"""What the data model and the executor ask of the tensor family, as a Protocol."""

from __future__ import annotations

from typing import Any, Protocol

from dynacap.guards.source import Source
from dynacap.values.base import Value
from dynacap.values.tracer import Tracer


class TensorFamily(Protocol):
    """Tensors under capture: fake metadata, the graph, and what torch's functions mean."""

    graph: Any  # dynacap.fxlite.Graph
    state_nodes: int  # nodes that set grad mode and the like; no operations of the user's
    stays_eager: bool  # it changes inputs in a way that functional backends do not know
    end_state: Any  # torch's state where the region ends, if it is another than at its start
    symbols: Any  # of the numbers that vary (values/tensor/symbols.py), once there is one
    late_errors: Any  # what the graph may raise (values/tensor/late_errors.py)
    inputs: list[Value]  # tensors (and other placeholders) from outside, in placeholder order

    def enter_capture(self) -> None:
        """Called before the first instruction is traced."""

    def exit_capture(self) -> None:
        """Called when capture ends, however it ends: torch's state is again what it was."""

    def drop_unused_items(self) -> None:
        """Called when the graph is complete, outputs and all."""

    def release(self) -> None:
        """Let go of the user's tensors: capture is over."""

    def owns(self, value: Value) -> bool:
        """Whether the value is a tensor."""

    def takes_binary(self, left: Value, right: Value) -> bool:
        """Whether an operator on these operands is a torch operation (one is a tensor and the
        other a tensor, a number, or what torch's operators accept)."""

    def wrap_number(self, real: int | float, source: Source) -> Value | None:
        """A number from outside as a symbol, or None if it is a constant."""

    def add_known(self, t: Tracer, target: Any, args: list[Value], result: Any) -> Any:
        """Add the node of a call whose result is known without running it."""

    def is_operation(self, real: Any) -> bool:
        """Whether a callable belongs to torch's operator surface and goes into the graph."""

    def wrap(self, t: Tracer, real: Any, source: Source | None) -> Value:
        """A tensor from outside: a graph input, with its guard."""

    def call(self, t: Tracer, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Put a call into the graph, run it on fake tensors, give the result as a value."""

    def method(self, t: Tracer, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """The same for a method of a tensor."""

    def read_field(self, t: Tracer, raw: Any, obj: Value) -> Value | None:
        """A C-level field of a tensor (shape, dtype, grad, ...); None if obj is no tensor."""

    def set_attribute(self, t: Tracer, obj: Value, name: str, value: Value) -> None:
        """``tensor.name = value`` for C-level fields and for the instance dict."""

    def get_item(self, t: Tracer, obj: Value, key: Value) -> Value:
        """``tensor[key]``."""

    def set_item(self, t: Tracer, obj: Value, key: Value, value: Value) -> None:
        """``tensor[key] = value``."""

    def iterate(self, t: Tracer, obj: Value) -> Value:
        """``iter(tensor)``."""

    def truth(self, t: Tracer, obj: Value) -> bool:
        """``bool(tensor)``: breaks, since it depends on data."""

    def assume(self, t: Tracer, obj: Value, expected: bool) -> bool:
        """Have the graph raise where ``bool(tensor)`` is not as expected; False if it cannot."""
