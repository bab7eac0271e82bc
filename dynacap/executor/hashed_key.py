"""Dict keys and set members whose class has a ``__hash__`` of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dynacap.errors import GraphBreak
from dynacap.values.base import Const, NotConstant, UserRaise, Value
from dynacap.values.container import Key
from dynacap.values.data_model import call_special, compare, truth

if TYPE_CHECKING:
    from dynacap.executor.outside import Outside


class HashedKey:
    """Stands for a key in the storage of symbolic dicts and sets.

    Its hash is what the traced ``__hash__`` gives, which has to be a constant; equality asks the
    traced ``__eq__``.  Storage does not ask as often as a dict would, and the replay of effects
    asks again (see :func:`check_again`): neither may have effects of its own.
    """

    __slots__ = ("machine", "said", "step", "value")

    def __init__(self, machine: Outside, value: Value) -> None:
        self.machine = machine
        self.value = value
        self.step = machine.whole_steps
        self.said = self.asked()
        machine.user_keys = True

    def asked(self) -> int:
        """What the traced ``__hash__`` says now."""
        ask = lambda: call_special(self.machine, self.value, "__hash__", [])  # noqa: E731
        said = self._without_effects(ask).constant()
        if not isinstance(said, int):
            self.machine.raise_error(TypeError, "__hash__ method should return an integer")
        return said

    def _without_effects(self, ask: Callable[[], Value]) -> Value:
        before = self.machine.effects
        answer = ask()
        if self.machine.effects != before:
            kind = self.value.cls.__name__
            self.machine.graph_break("user-hash", f"__hash__ or __eq__ of a {kind} has effects")
        return answer

    def __hash__(self) -> int:
        return self.said  # not the hash of that: Python takes what fits as it is

    def __eq__(self, other: object) -> bool:
        right = other.value if isinstance(other, HashedKey) else other
        if not isinstance(right, Value):
            right = Const(right)
        if self.value is right:
            return True
        equal = self._without_effects(lambda: compare(self.machine, "==", self.value, right))
        return truth(self.machine, equal)


def check_again(machine: Outside, keys: Iterable[Key]) -> None:
    """Break before the keys of a dict or set were first asked, unless they say the same in the
    end, when the real one is filled.
    """
    alike: dict[int, list[Key]] = {}
    asked: list[HashedKey] = []
    same = True
    for key in keys:
        own = [part for part in _parts(key) if isinstance(part, HashedKey)]
        asked += own
        others = alike.setdefault(hash(key), [])
        try:
            same = same and all(part.asked() == part.said for part in own) and key not in others
        except (UserRaise, NotConstant, GraphBreak):
            same = False
        others.append(key)
    if not same:
        kind = asked[0].value.cls.__name__
        step = min(key.step for key in asked)
        machine.graph_break("user-hash", f"a {kind} has another hash in the end", before=step)


def _parts(key: Key) -> Iterator[Key]:
    if type(key) is tuple:
        for part in key:
            yield from _parts(part)
    else:
        yield key
