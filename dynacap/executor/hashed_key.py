"""Dict keys and set members whose class has a ``__hash__`` of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynacap.values.base import Const, Value
from dynacap.values.data_model import call_special, compare, truth

if TYPE_CHECKING:
    from dynacap.executor.outside import Outside


class HashedKey:
    """Stands for a key in the storage of symbolic dicts and sets.

    Its hash is what the traced ``__hash__`` gives, which has to be a constant; equality asks the
    traced ``__eq__``.  Storage does not ask as often as a dict would, and the replay of effects
    asks again: neither may have effects of its own.
    """

    __slots__ = ("_hash", "machine", "value")

    def __init__(self, machine: Outside, value: Value) -> None:
        self.machine = machine
        self.value = value
        given = self._without_effects(lambda: call_special(machine, value, "__hash__", []))
        self._hash = hash(given.constant())

    def _without_effects(self, ask: Callable[[], Value]) -> Value:
        before = self.machine.effects
        answer = ask()
        if self.machine.effects != before:
            kind = self.value.cls.__name__
            self.machine.graph_break("user-hash", f"__hash__ or __eq__ of a {kind} has effects")
        return answer

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        right = other.value if isinstance(other, HashedKey) else other
        if not isinstance(right, Value):
            right = Const(right)
        if self.value is right:
            return True
        equal = self._without_effects(lambda: compare(self.machine, "==", self.value, right))
        return truth(self.machine, equal)
