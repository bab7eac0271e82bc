"""Instances of classes that are not containers: attributes live in a mirrored ``__dict__``."""

from __future__ import annotations

import types
from dataclasses import field
from typing import Any, ClassVar

from dynacap.opcodes import Positions
from dynacap.values.base import DELETED, MISSING, Const, Known, Lazy, Sentinel, Value, fields
from dynacap.values.container import Stored


@fields
class ObjectValue(Stored):
    """An instance of a user's class (or an nn.Module): ``attrs`` mirrors its ``__dict__``.

    ``slots`` holds what was read from or written to ``__slots__`` and other C-level members.
    ``new_args`` are the arguments that ``__new__`` of the C base needs to make it anew.
    """

    cls: type
    slots: dict[str, Value | Sentinel] = field(default_factory=dict, init=False)
    dirty_slots: dict[str, None] = field(default_factory=dict, init=False)


@fields
class ExceptionValue(ObjectValue):
    """An exception: its ``args`` and what the raise statement keeps on it."""

    args: list[Value]
    shown: Value | None = field(default=None, init=False)  # the tuple of them, once asked for
    made_of: list[Value] = field(default_factory=list, init=False)  # a group: message, exceptions
    before: Value | None = field(default=None, init=False)  # a traceback from outside it was given
    cause: Value | None = field(default=None, init=False)
    context: Value | None = field(default=None, init=False)
    suppress_context: bool = field(default=False, init=False)
    raised: bool = field(default=False, init=False)
    raised_at: int = field(default=-1, init=False)  # the chain's steps before it was first raised
    traceback: TracebackValue | None = field(default=None, init=False)  # last handed on for it
    # its traceback, from the innermost frame on: file, place, function
    trail: list[tuple[str, Positions, str]] = field(default_factory=list, init=False)

    def release(self) -> None:
        Stored.release(self)
        self.args = self.made_of = []
        self.cause = self.context = self.before = self.shown = None

    def describe(self) -> str:
        return f"{self.cls.__name__}({', '.join(map(_describe, self.args))})"


# What an instance of a subclass of these types is as a plain one, without asking the subclass.
PAYLOADS: dict[type, Any] = {
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    str: str.__str__,
    bytes: bytes.__bytes__,
}


@fields
class PayloadValue(ObjectValue):
    """An instance of a user's subclass of a number's or text's type, with what it is as such."""

    payload: Any

    @property
    def base(self) -> type:
        """The built-in type."""
        return type(self.payload)


def plain(real: Any) -> Any:
    """The number or text that an object is, as an object of the built-in type; else MISSING."""
    if type(real) in PAYLOADS:
        return real
    for kind, convert in PAYLOADS.items():
        if isinstance(real, kind):
            return convert(real)
    return MISSING


def payload_of(value: Value) -> Any:
    """The number or text that a value is known to be, without asking its class; else MISSING."""
    if isinstance(value, PayloadValue):
        return value.payload
    return plain(value.value) if isinstance(value, (Const, Known)) else MISSING


@fields
class CellValue(Value):
    """A closure cell."""

    cls: ClassVar[type] = types.CellType
    content: Value | Sentinel = DELETED
    real: Any = None
    dirty: bool = False

    def release(self) -> None:
        self.real = None
        self.content = DELETED


@fields
class ClassChange(Value):
    """What was written to the attributes of a class, to be replayed on it."""

    owner: Value
    real: type
    written: dict[str, Value] = field(default_factory=dict)

    @property
    def cls(self) -> type:
        return type(self.real)


@fields
class WrittenAttribute:
    """Stands for the raw attribute of a class that was written while capturing: plain data."""

    value: Value


@fields
class SuperValue(Value):
    """``super(type, obj)``: attribute lookup that starts behind ``start`` in the MRO."""

    cls: ClassVar[type] = super
    start: Value
    obj: Value
    obj_type: type


@fields
class PropertyValue(Value):
    """A staticmethod, classmethod or property made inside a traced function."""

    cls: type
    parts: list[Value]


def _describe(value: Value) -> str:
    return type(value.real).__name__ if type(value) is Lazy else value.describe()


@fields
class TracebackValue(Value):
    """The traceback of an exception that was raised inside: handed on, never looked into."""

    cls: ClassVar[type] = types.TracebackType
    exc: ExceptionValue
    trail: list[tuple[str, Positions, str]]
