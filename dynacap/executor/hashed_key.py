"""Dict keys and set members whose class has a ``__hash__`` of its own."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from dynacap.values.base import Const, Value
from dynacap.values.data_model import call_special, compare, truth

if TYPE_CHECKING:
    from dynacap.executor.outside import Outside


class HashedKey:
    """Stands for a key in the storage of symbolic dicts and sets.

    Its hash is what the traced ``__hash__`` gives, which has to be a constant; equality asks the
    traced ``__eq__``, when and as often as a dict would.
    """

    __slots__ = ("_hash", "machine", "value")

    def __init__(self, machine: Outside, value: Value, hasher: Any) -> None:
        if not isinstance(hasher, types.FunctionType):
            machine.graph_break("user-hash", f"the hash of a {value.cls.__name__}")
        self.machine = machine
        self.value = value
        self._hash = hash(call_special(machine, value, "__hash__", []).constant())

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        right = other.value if isinstance(other, HashedKey) else other
        if not isinstance(right, Value):
            right = Const(right)
        return self.value is right or truth(
            self.machine, compare(self.machine, "==", self.value, right)
        )
