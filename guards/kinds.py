"""What a guard can demand of the value at a source: one frozen dataclass for each kind.

A guard says which source it is about, what it expects there, and which line of the user's made it
necessary.  ``holds`` is its meaning, in Python; the C checker implements the common kinds itself
and calls ``holds`` for the rest, so a new kind needs nothing but its class here or in a file of
its own.  No guard runs user code, and none raises.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from dynacap.errors import UserFrame
from dynacap.guards import raw
from dynacap.guards.constant import ConstKey, Fingerprint, fingerprint, try_fingerprint
from dynacap.guards.raw import MISSING, is_a, type_lookup
from dynacap.guards.ref import Ref, describe
from dynacap.guards.show import show
from dynacap.guards.source import Source, dict_key, find_item, key_matches, lacks_constant

Origin = UserFrame  # the user's line that made a guard necessary

KINDS: dict[str, type["Guard"]] = {}

_set = object.__setattr__  # for the constructors of frozen classes


def register(cls: type["Guard"]) -> type["Guard"]:
    """Enter a kind under its ``kind``; complains about a name that is taken or a missing method."""
    name = cls.__dict__.get("kind")
    if not isinstance(name, str) or not name:
        raise TypeError(f"{cls.__name__} has no `kind`: a name for its guards in lists and logs")
    if name in KINDS:
        raise TypeError(f"the guard kind {name!r} is taken by {KINDS[name].__name__}")
    for method in ("holds", "expectation"):
        if getattr(cls, method) is getattr(Guard, method):
            raise TypeError(f"{cls.__name__} does not say what it means: no `{method}`")
    KINDS[name] = cls
    return cls


@dataclass(frozen=True)
class Guard:
    """Base of all kinds; ``origin`` takes no part in comparison."""

    kind: ClassVar[str] = ""

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources whose values ``holds`` is given, in order."""
        raise NotImplementedError

    @property
    def refs(self) -> tuple[Ref, ...]:
        """Objects whose death means that the guard can never hold again."""
        return ()

    def holds(self, *values: object) -> bool:
        """Whether these values are as expected."""
        raise NotImplementedError

    def expectation(self) -> str:
        """What is expected, as the end of a sentence that begins with the source's name."""
        raise NotImplementedError

    def finding(self, *values: object) -> str:
        """What is there instead, for the explanation of a failure."""
        return ", ".join(map(show, values))

    def subject(self) -> str:
        """The sources in the user's words."""
        return ", ".join(source.name() for source in self.sources)

    def __str__(self) -> str:
        return f"{self.subject()} {self.expectation()}".strip()


@dataclass(frozen=True)
class SourceGuard(Guard):
    """A guard on the value at one source."""

    source: Source

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source,)


@dataclass(frozen=True, init=False)
class _Expects(SourceGuard):
    """A guard on a value by one object, which is held weakly where Python allows it."""

    expected: Ref
    origin: Origin | None = field(default=None, compare=False)

    def __init__(self, source: Source, expected: object, origin: Origin | None = None) -> None:
        _set(self, "source", source)
        _set(self, "expected", Ref(expected))
        _set(self, "origin", origin)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return (self.expected,)


@register
@dataclass(frozen=True, init=False)
class TypeIs(_Expects):
    """The value's exact type."""

    kind = "type"

    def holds(self, *values: object) -> bool:
        return self.expected.refers_to(type(values[0]))

    def expectation(self) -> str:
        return f"is a {self.expected!r}"

    def finding(self, *values: object) -> str:
        return f"a {describe(type(values[0]))}"


@register
@dataclass(frozen=True, init=False)
class IdIs(_Expects):
    """The very object: a function, a class, a module."""

    kind = "identity"

    def holds(self, *values: object) -> bool:
        return self.expected.refers_to(values[0])

    def expectation(self) -> str:
        return f"is the same object as before, {self.expected!r}"


@register
@dataclass(frozen=True, init=False)
class ConstEq(SourceGuard):
    """A constant: equal in type and value, floats to the last bit."""

    kind = "constant"
    mark: Fingerprint = field(repr=False)
    value: object = field(compare=False)
    origin: Origin | None = field(default=None, compare=False)

    def __init__(self, source: Source, value: object, origin: Origin | None = None) -> None:
        _set(self, "source", source)
        _set(self, "value", value)
        _set(self, "mark", fingerprint(value))
        _set(self, "origin", origin)

    def holds(self, *values: object) -> bool:
        return try_fingerprint(values[0]) == self.mark

    def expectation(self) -> str:
        return f"is {show(self.value)}"


@register
@dataclass(frozen=True)
class Length(SourceGuard):
    """The number of items in a builtin container's own storage."""

    kind = "length"
    length: int
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        return raw.length(values[0]) == self.length

    def expectation(self) -> str:
        return f"has {self.length} items"

    def finding(self, *values: object) -> str:
        count = raw.length(values[0])
        return show(values[0]) if count is None else f"{count} items"


@register
@dataclass(frozen=True, init=False)
class DictKeys(SourceGuard):
    """The keys of a dict, in order: constants by value, other keys by identity."""

    kind = "keys"
    keys: tuple[object, ...]
    origin: Origin | None = field(default=None, compare=False)

    def __init__(
        self, source: Source, keys: "tuple[object, ...]", origin: Origin | None = None
    ) -> None:
        _set(self, "source", source)
        _set(self, "keys", tuple(map(dict_key, keys)))
        _set(self, "origin", origin)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(key for key in self.keys if type(key) is Ref)

    def holds(self, *values: object) -> bool:
        found = raw.dict_keys(values[0])
        if found is None or len(found) != len(self.keys):
            return False
        return all(map(key_matches, self.keys, found))

    def expectation(self) -> str:
        return f"has the keys {_shown_keys(self.keys)}"

    def finding(self, *values: object) -> str:
        found = raw.dict_keys(values[0])
        return show(values[0]) if found is None else _shown_keys(found)


def _shown_keys(keys: Sequence[object], limit: int = 12) -> str:
    shown = [repr(key) if type(key) in (ConstKey, Ref) else show(key) for key in keys[:limit]]
    rest = len(keys) - limit
    return "[" + ", ".join(shown) + (f", and {rest} more]" if rest > 0 else "]")


@dataclass(frozen=True, init=False)
class _KeyGuard(SourceGuard):
    """A guard on whether a dict has one key."""

    key: object
    origin: Origin | None = field(default=None, compare=False)

    def __init__(self, source: Source, key: object, origin: Origin | None = None) -> None:
        _set(self, "source", source)
        _set(self, "key", dict_key(key))
        _set(self, "origin", origin)

    def finding(self, *values: object) -> str:
        keys = raw.dict_keys(values[0])
        return show(values[0]) if keys is None else f"the keys {_shown_keys(keys)}"


@register
@dataclass(frozen=True, init=False)
class HasKey(_KeyGuard):
    """A dict has a key: an instance attribute, a global is there."""

    kind = "present"

    @property
    def refs(self) -> tuple[Ref, ...]:
        return (self.key,) if type(self.key) is Ref else ()

    def holds(self, *values: object) -> bool:
        return find_item(values[0], self.key) is not MISSING

    def expectation(self) -> str:
        return f"has {self.key!r}"


@register
@dataclass(frozen=True, init=False)
class LacksKey(_KeyGuard):
    """A dict does not have a key: no instance attribute, no global of that name."""

    kind = "absent"

    def holds(self, *values: object) -> bool:
        value = values[0]
        if not is_a(value, dict):
            return False
        if type(self.key) is ConstKey:
            return lacks_constant(value, self.key.value)
        return find_item(value, self.key) is MISSING

    def expectation(self) -> str:
        return f"has no {self.key!r}"


@register
@dataclass(frozen=True)
class ClassLacks(SourceGuard):
    """Neither a class nor any of its bases defines a name."""

    kind = "class_absent"
    attribute: str
    origin: Origin | None = field(default=None, compare=False)

    def holds(self, *values: object) -> bool:
        cls = values[0]
        return is_a(cls, type) and type_lookup(cls, self.attribute) is MISSING  # type: ignore[arg-type]

    def expectation(self) -> str:
        return f"defines no {self.attribute!r}"

    def finding(self, *values: object) -> str:
        return f"{show(values[0])}, which has it"


def _members(value: object) -> list[object]:
    """The members of a set, whatever its class says of iteration."""
    return list(raw.storage(set if is_a(value, set) else frozenset, value))


def _mark(member: object) -> Fingerprint | Ref:
    return Ref(member) if (mark := try_fingerprint(member)) is None else mark


@register
@dataclass(frozen=True, init=False)
class SetEq(SourceGuard):
    """A set or frozenset of these constants and objects alone, which it shows in this order."""

    kind = "set"
    members: tuple[Fingerprint | Ref, ...] = field(repr=False)
    shown: str = field(compare=False)
    origin: Origin | None = field(default=None, compare=False)

    def __init__(
        self,
        source: Source,
        members: "set[object] | frozenset[object]",
        origin: Origin | None = None,
    ) -> None:
        _set(self, "source", source)
        _set(self, "members", tuple(map(_mark, _members(members))))
        _set(self, "shown", show(sorted(_members(members), key=repr)))
        _set(self, "origin", origin)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return tuple(member for member in self.members if type(member) is Ref)

    def holds(self, *values: object) -> bool:
        value = values[0]
        if not is_a(value, (set, frozenset)) or raw.length(value) != len(self.members):
            return False
        return tuple(map(_mark, _members(value))) == self.members

    def expectation(self) -> str:
        return f"has the members {self.shown}"
