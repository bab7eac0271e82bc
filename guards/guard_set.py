"""The guards of one captured region: in order, without doubles."""

from collections.abc import Iterable, Iterator

from dynacap.guards.kinds import Guard, TypeIs
from dynacap.guards.source import Source
from dynacap.guards.tensor_kind import Tensor


class GuardSet:
    """Guards in the order that capture made them; adding one that is there changes nothing."""

    def __init__(self, guards: Iterable[Guard] = ()) -> None:
        self._known: set[Guard] = set()
        self._order: list[Guard] = []
        self._by_source: dict[Source, list[Guard]] = {}
        self._indexed = 0
        for guard in guards:
            self.add(guard)

    def add(self, guard: Guard) -> bool:
        """Add a guard; whether it is new."""
        if guard in self._known:
            return False
        self._known.add(guard)
        self._order.append(guard)
        return True

    def update(self, guards: Iterable[Guard]) -> None:
        """Add many."""
        for guard in guards:
            self.add(guard)

    def guards_for(self, source: Source) -> tuple[Guard, ...]:
        """The guards about a source, in order."""
        for guard in self._order[self._indexed :]:
            for subject in guard.sources:
                self._by_source.setdefault(subject, []).append(guard)
        self._indexed = len(self._order)
        return tuple(self._by_source.get(source, ()))

    def rewind(self, length: int) -> None:
        """Drop all but the first ``length`` guards: what capture does when it takes a step back."""
        self._known.difference_update(self._order[length:])
        del self._order[length:]
        if self._indexed > length:
            self._by_source.clear()
            self._indexed = 0

    def leave_out_types(self) -> None:
        """Drop guards on the type of what another guard says to be a tensor."""
        tensors = {guard.source for guard in self._order if isinstance(guard, Tensor)}
        kept = [g for g in self._order if type(g) is not TypeIs or g.source not in tensors]
        self.rewind(0)
        self.update(kept)

    def copy(self) -> "GuardSet":
        """A set of its own with the same guards."""
        return GuardSet(self._order)

    def __iter__(self) -> Iterator[Guard]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, guard: object) -> bool:
        return guard in self._known

    def __str__(self) -> str:
        """One line for each guard, with the user's line that made it necessary."""
        return "\n".join(describe_guard(guard) for guard in self._order)


def describe_guard(guard: Guard) -> str:
    """The guard as a sentence, then where it comes from."""
    origin = getattr(guard, "origin", None)
    return f"{guard}" + (f"  # {origin}" if origin is not None else "")
