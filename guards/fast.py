"""The checker and the table in C, as the rest of dynacap uses them."""

from collections.abc import Sequence

from dynacap.guards import _fastcheck
from dynacap.guards.checker import Died, watch_guards
from dynacap.guards.explain import Failure, first_failure
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.lower import lower
from dynacap.guards.plan import Plan
from dynacap.guards.source import Source
from dynacap.guards.tensor import torch_module
from dynacap.guards.tensor_layout import find_layout

FastEntryTable = _fastcheck.EntryTable
FastGraphCall = _fastcheck.GraphCall

_bound_to: object = None  # the torch whose accessors the C module has looked up


def _bind_torch() -> None:
    global _bound_to
    torch = torch_module()
    if torch is not None and torch is not _bound_to and hasattr(torch, "Tensor"):
        _fastcheck.bind_torch(torch)
        _bound_to = torch
        find_layout(torch)


class FastChecker(_fastcheck.Checker):
    """The guards as a program in C; explaining a failure is left to Python."""

    guards: GuardSet
    slots: tuple[Source, ...]

    def __new__(cls, guards: GuardSet, slots: Sequence[Source] = ()) -> "FastChecker":
        """Write the program and have the C checker made from it."""
        _bind_torch()
        self = super().__new__(cls, lower(guards, slots))
        assert isinstance(self, FastChecker)
        self.guards = guards
        self.slots = tuple(slots)
        return self

    def explain(self, flat: tuple[object, ...], /) -> Failure | None:
        """The first guard that does not hold, or None."""
        return first_failure(Plan(self.guards, self.slots), flat)

    def watch(self, died: Died, /) -> tuple[object, ...]:
        """Have ``died`` called when an object dies without which no check can succeed."""
        return watch_guards(self.guards, died)
