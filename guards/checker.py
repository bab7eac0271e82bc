"""The checker in Python: the meaning of guards, and what runs where the C one is not built."""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dynacap.guards.explain import Failure, first_failure
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.kinds import Guard
from dynacap.guards.plan import ROOT, Plan
from dynacap.guards.raw import MISSING
from dynacap.guards.source import Source

Died = Callable[["weakref.ref[Any]"], object]


def watch_guards(guards: Iterable[Guard], died: Died) -> tuple[object, ...]:
    """Weak references, one for each object that a guard cannot outlive, which call ``died``."""
    refs = {ref for guard in guards for ref in guard.refs if not ref.strong}
    watches: list[object] = []
    for ref in refs:
        obj = ref.get()
        if obj is None:
            died(ref.weak())
        else:
            watches.append(weakref.ref(obj, died))
    return tuple(watches)


class PythonChecker:
    """Reads each source once, base first, and asks each guard; stops at the first no."""

    def __init__(self, guards: GuardSet, slots: Sequence[Source] = ()) -> None:
        self.guards = guards
        self.slots = tuple(slots)
        self._plan = plan = Plan(guards, self.slots)
        self._state = [guard.holds for guard in plan.state]
        self._nodes = [
            (node.source.step, node.base, [guard.holds for guard in node.guards])
            for node in plan.nodes
        ]
        self._relations = [(relation.guard.holds, relation.nodes) for relation in plan.relations]

    def check(self, flat: tuple[object, ...], /) -> tuple[object, ...] | None:
        """The slots' values if all guards hold, else None."""
        try:
            return self._check(flat)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None  # a guard that cannot be asked does not hold

    def _check(self, flat: tuple[object, ...]) -> tuple[object, ...] | None:
        for holds in self._state:
            if not holds():
                return None
        values: list[object] = []
        for step, base, tests in self._nodes:
            value = step(flat if base == ROOT else values[base])
            if value is MISSING:
                return None
            for holds in tests:
                if not holds(value):
                    return None
            values.append(value)
        for holds, positions in self._relations:
            if not holds(*[values[position] for position in positions]):
                return None
        return tuple([values[position] for position in self._plan.slots])

    def explain(self, flat: tuple[object, ...], /) -> Failure | None:
        """The first guard that does not hold, or None."""
        return first_failure(self._plan, flat)

    def watch(self, died: Died, /) -> tuple[object, ...]:
        """Have ``died`` called when an object dies without which no check can succeed."""
        return watch_guards(self.guards, died)
