"""What every symbolic value answers: its Python type, its source, and its constant, if it has one.

A value stands for one Python object.  Identity of values is identity of objects: two objects that
are the same in eager are the same value here.  How a value behaves is not its own business: the
data model (:mod:`dynacap.values.data_model`) is written once, over the real Python types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, dataclass_transform

from dynacap.guards.source import Source


class NotConstant(Exception):
    """A value was asked for its constant and has none."""


class UserRaise(Exception):
    """The traced program raised; ``exc`` is the symbolic exception."""

    def __init__(self, exc: Value) -> None:
        super().__init__(exc)
        self.exc = exc


def or_none(kind: type | tuple[type, ...], ask: Callable[[], Value | None]) -> Value | None:
    """What ``ask`` gives; None where the traced program raises an exception of that kind in it."""
    try:
        return ask()
    except UserRaise as raised:
        if not issubclass(raised.exc.cls, kind):
            raise
        return None


class OfProcess:
    """Counts what captures met that holds in this process alone, and has no guard: hashes,
    addresses, the order of sets.
    """

    met = 0


class Sentinel:
    """A mark that is no value of the program: NULL on the stack, a deleted entry."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"


T = TypeVar("T")


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def fields(cls: type[T]) -> type[T]:
    """A class of values, whose fields are what it is made of.  (No ``super()`` without arguments in
    its methods: it is not the class that the statement makes.)
    """
    return dataclass(eq=False, repr=False, slots=True)(cls)


_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8
NULL: Final = Sentinel("NULL")
DELETED: Final = Sentinel("DELETED")
MISSING: Final = Sentinel("MISSING")


@fields
class Value:
    """One Python object as the executor sees it.

    ``source`` says where it came from, or is None if capture made it or it is held by the entry.
    """

    source: Source | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # a field of many classes, which would take this for its default

        @property
        def cls(self) -> type:
            """The exact Python type of the object."""
            raise NotImplementedError

    @property
    def title(self) -> str:
        """The type as CPython's errors name it: with its module, if no class statement made it."""
        cls = self.cls
        by_statement = cls.__flags__ & (_HEAP_TYPE | _IMMUTABLE_TYPE) == _HEAP_TYPE
        made_by_c = not by_statement and cls.__module__ != "builtins"
        return f"{cls.__module__}.{cls.__name__}" if made_by_c else cls.__name__

    def constant(self) -> Any:
        """The object itself where it is known and immutable, or NotConstant."""
        raise NotConstant(self)

    def known(self) -> Any:
        """The very object, where its identity is known to capture, or NotConstant."""
        raise NotConstant(self)

    def describe(self) -> str:
        """A few words for messages."""
        return self.cls.__name__

    def release(self) -> None:
        """Let go of the real object: capture is over, and values may hold each other."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.describe()}>"


@fields
class Held(Value):
    """An object that capture itself holds."""

    value: Any

    @property
    def cls(self) -> type:
        return type(self.value)

    def constant(self) -> Any:
        return self.value

    def known(self) -> Any:
        return self.value


class Const(Held):
    """An immutable object known by value: a number, text, None, a dtype, a range."""

    __slots__ = ()

    def describe(self) -> str:
        return _short_repr(self.value)


class UnreadConst(Const):
    """A number or text from outside that nothing has looked at yet: it is guarded by value when
    its value is first read, and costs nothing where it is only handed on."""

    __slots__ = ("_guard", "_held")

    def __init__(self, value: Any, source: Source, guard: Callable[..., None]) -> None:
        self.source = source
        self._held = value
        self._guard: Callable[..., None] | None = guard

    @property
    def cls(self) -> type:
        """The type, which is guarded on its own."""
        if self._guard is not None:
            self._guard("TypeIs", self.source, type(self._held))
        return type(self._held)

    @property
    def value(self) -> Any:
        """The number or text; guarded from now on."""
        if self._guard is not None:
            guard, self._guard = self._guard, None
            guard("ConstEq", self.source, self._held)
        return self._held


@fields
class Known(Held):
    """An object known by identity: a class, a module, a function written in C, an enum member.

    Its attributes are read from the real object, under guards if it came from outside.
    """

    attrs: Value | None = None  # the mirror of its ``__dict__``, once touched

    def describe(self) -> str:
        if hasattr(type(self.value).__getattribute__, "__code__"):
            return object.__repr__(self.value)  # code of the user's is not asked
        name = getattr(self.value, "__qualname__", None) or getattr(self.value, "__name__", None)
        return str(name) if name else _short_repr(self.value)


class Alias(Known):
    """A ``list[int]`` or ``int | str`` that was made inside: another object for each call."""

    __slots__ = ()


@fields
class Lazy(Value):
    """An object from outside that nothing has looked at yet; it costs no guard until then."""

    real: Any

    @property
    def cls(self) -> type:
        raise AssertionError("a lazy value must be forced before it is used")


def constant_or(value: Value, default: Any) -> Any:
    """The constant of a value, or ``default``."""
    try:
        return value.constant()
    except NotConstant:
        return default


def is_outside(value: Value) -> bool:
    """Whether a value stands for an object that was there before the region."""
    return value.source is not None or getattr(value, "real", None) is not None


def is_const(value: Value) -> bool:
    """Whether the value is an immutable object known to capture."""
    return constant_or(value, MISSING) is not MISSING


def real_of_known(value: Value) -> Any:
    """The object itself where capture knows it by identity, else MISSING."""
    return value.value if isinstance(value, (Const, Known)) else MISSING


def is_none(value: Value) -> bool:
    """Whether the value is None; a number or text that is not read yet is guarded to be one."""
    return type(value) in (Const, UnreadConst) and value.cls is type(None)


NONE: Final = Const(None)


def _short_repr(obj: object) -> str:
    try:
        text = repr(obj)
    except Exception:
        text = object.__repr__(obj)
    return text if len(text) <= 80 else text[:77] + "..."


Handler = Callable[..., Value]
