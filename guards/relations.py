"""Guards on several values: one object or distinct ones, memory shared or not, anything else."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from dynacap.guards.kinds import Guard, Origin, register
from dynacap.guards.show import show
from dynacap.guards.source import Source
from dynacap.guards.tensor import overlap_pattern, storages_differ, tensor_facts


@register
@dataclass(frozen=True)
class SameObject(Guard):
    """Two sources that lead to one object."""

    kind = "same"
    left: Source
    right: Source
    origin: Origin | None = field(default=None, compare=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.left, self.right)

    def holds(self, *values: object) -> bool:
        return values[0] is values[1]

    def subject(self) -> str:
        return f"{self.left.name()} and {self.right.name()}"

    def expectation(self) -> str:
        return "are one object"

    def finding(self, *values: object) -> str:
        return "two objects"


@dataclass(frozen=True)
class _Group(Guard):
    """A guard on any number of sources."""

    group: tuple[Source, ...]

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.group


@register
@dataclass(frozen=True)
class NotAliased(_Group):
    """No two of the sources lead to one object."""

    kind = "distinct"
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        return len({id(value) for value in values}) == len(values)

    def expectation(self) -> str:
        return "are distinct objects"

    def finding(self, *values: object) -> str:
        first: dict[int, Source] = {}
        for source, value in zip(self.group, values, strict=True):
            if id(value) in first:
                return f"{first[id(value)].name()} and {source.name()} as one object"
            first[id(value)] = source
        return "distinct objects"


Pattern = tuple[tuple[int, int, int], ...]


@register
@dataclass(frozen=True)
class Overlap(_Group):
    """Which of these tensors' memory ranges meet, and at what distance.

    ``pattern`` has ``(i, j, bytes from the start of i to the start of j)`` for each pair that
    meets; with shapes and strides guarded too, that fixes which elements are shared.  A range
    reaches from a tensor's first to its last element, so interleaved tensors meet.
    """

    kind = "overlap"
    pattern: Pattern = ()
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        return overlap_pattern(values) == self.pattern

    def expectation(self) -> str:
        return self._told(self.pattern)

    def finding(self, *values: object) -> str:
        found = overlap_pattern(values)
        return "something without memory" if found is None else self._told(found)

    def _told(self, pattern: Pattern) -> str:
        if not pattern:
            return "share no memory"
        names = [source.name() for source in self.group]
        pairs = (f"{names[i]} and {names[j]} ({gap} bytes apart)" for i, j, gap in pattern)
        return "share memory: " + ", ".join(pairs)


def NoOverlap(group: tuple[Source, ...], origin: Origin | None = None) -> Overlap:
    """An :class:`Overlap` in which no two ranges meet."""
    return Overlap(group, (), origin)


@register
@dataclass(frozen=True)
class Predicate(_Group):
    """Whatever no other kind says: a Python function of the values.  Slow; an exception is a no."""

    kind = "predicate"
    test: Callable[..., object]
    text: str = field(compare=False)
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        return bool(self.test(*values))

    def expectation(self) -> str:
        return self.text


def OwnStorage(group: tuple[Source, ...]) -> Predicate:
    """That no two of these tensors lie in one storage."""
    return Predicate(group, storages_differ, "lie in storages of their own")


@register
@dataclass(frozen=True)
class Sizes(_Group):
    """What symbolic sizes and numbers have to fulfil, as Python over ``v0``, ``v1``, ...

    ``conditions`` are pairs: the text over the values of the sources, which reads sizes and strides
    of tensors and computes with ints, and the same in the user's words.
    """

    kind = "sizes"
    conditions: tuple[tuple[str, str], ...] = ()
    origin: Origin | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        test = self._compiled(" and ".join(f"({text})" for text, _ in self.conditions))
        object.__setattr__(self, "_test", test)

    def _compiled(self, text: str) -> Callable[..., object]:
        names = ", ".join(f"v{index}" for index in range(len(self.group)))
        test: Callable[..., object] = eval(f"lambda {names}: {text}", {"math": math})
        return test

    def holds(self, *values: object) -> bool:
        try:
            return bool(self._test(*values))  # type: ignore[attr-defined]
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
            return False

    def expectation(self) -> str:
        return "fulfil " + " and ".join(told for _, told in self.conditions)

    def finding(self, *values: object) -> str:
        broken = [told for text, told in self.conditions if not self._fulfils(text, values)]
        return "not " + ", not ".join(broken) + f" ({', '.join(map(_measure, values))})"

    def _fulfils(self, text: str, values: tuple[object, ...]) -> bool:
        try:
            return bool(self._compiled(text)(*values))
        except (ArithmeticError, AttributeError, IndexError, TypeError, ValueError):
            return False


def _measure(value: object) -> str:
    facts = tensor_facts(value)
    return show(value) if facts is None else f"shape {tuple(facts.shape)}"
