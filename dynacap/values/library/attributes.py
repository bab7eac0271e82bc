"""Attribute access by function, and the methods of ``object``."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from dynacap.values import data_model as dm
from dynacap.values.base import Const, Known, OfProcess, Value, or_none
from dynacap.values.data_model.attribute_writes import (
    generic_delete_attribute,
    generic_set_attribute,
)
from dynacap.values.data_model.attributes import generic_attribute, no_attribute, type_attribute
from dynacap.values.data_model.calls import made, new_object, type_call
from dynacap.values.data_model.operators import inverted_eq
from dynacap.values.data_model.refusals import like
from dynacap.values.identity import IdentityValue
from dynacap.values.library.handlers import (
    BUILT_IN,
    constant_of,
    handles,
    handles_each,
    handles_rows,
    methods,
    not_implemented,
    unordered,
)
from dynacap.values.stand_in import for_real
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

_MACHINERY = ("__dir__", "__sizeof__", "__reduce__", "__getstate__")
_PLAINEST = (object, type(None))  # None has methods of its own on some Pythons, which do the same


def name_of(t: Tracer, name: Value) -> str:
    """An attribute's name, which must be text."""
    if not issubclass(name.cls, str):
        t.raise_real(error_of(getattr, None, like(name)))
    return str(constant_of(t, name, "an attribute's name"))


def attribute_or_none(t: Tracer, obj: Value, name: str) -> Value | None:
    """The attribute, or None where looking for it raises AttributeError."""
    return or_none(AttributeError, lambda: dm.find_attribute(t, obj, name))


@handles(getattr)
def _getattr(t: Tracer, obj: Value, name: Value, default: Value | None = None, /) -> Value:
    if default is None:
        return dm.get_attribute(t, obj, name_of(t, name))
    return attribute_or_none(t, obj, name_of(t, name)) or default


@handles(vars)
def _vars(t: Tracer, obj: Value | None = None, /) -> Value:
    if obj is None:
        return t.call(Known(locals), [])
    found = attribute_or_none(t, obj, "__dict__")
    if found is None:
        t.raise_error(TypeError, "vars() argument must have __dict__ attribute")
    return found


@handles(*methods("__getattribute__", object, *BUILT_IN))
def _getattribute(t: Tracer, self: Value, name: Value, /) -> Value:
    text = name_of(t, name)
    return generic_attribute(t, self, text) or no_attribute(t, self, text)


@handles(type.__getattribute__)
def _type_getattribute(t: Tracer, self: Value, name: Value, /) -> Value:
    text = name_of(t, name)
    if type(self) is not Known:
        return dm.get_attribute(t, self, text)
    return type_attribute(t, self, text) or no_attribute(t, self, text)


def _register_changes(owner: type) -> None:
    def check(t: Tracer, self: Value) -> None:
        if owner is object and issubclass(self.cls, type):
            t.graph_break("class-attribute-write", "a method of object is refused for a class")

    @handles(owner.__setattr__)
    def set_(t: Tracer, self: Value, name: Value, value: Value, /) -> None:
        check(t, self)
        generic_set_attribute(t, self, name_of(t, name), value)

    @handles(owner.__delattr__)
    def delete(t: Tracer, self: Value, name: Value, /) -> None:
        check(t, self)
        generic_delete_attribute(t, self, name_of(t, name))


for _owner in (object, type):
    _register_changes(_owner)


@handles(object.__init__)
def _object_init(t: Tracer, self: Value, /, *args: Value, **kwargs: Value) -> None:
    if args or kwargs:
        own = t.lookup(self.cls, "__init__") is not object.__init__
        if own or t.lookup(self.cls, "__new__") is object.__new__:
            what = "object" if own else self.cls.__name__
            text = "__init__() takes exactly one argument (the instance to initialize)"
            t.raise_error(TypeError, f"{what}.{text}")


_SHOWS = "how an object lies in memory, or is copied and pickled"


@handles(*(m for n in _MACHINERY for m in methods(n, object, *BUILT_IN)))
def _machinery(t: Tracer, self: Value, /) -> NoReturn:
    t.graph_break("unsupported-call", _SHOWS)


@handles(*methods("__reduce_ex__", object, *BUILT_IN))
def _reduce_ex(t: Tracer, self: Value, protocol: Value, /) -> NoReturn:
    t.graph_break("unsupported-call", _SHOWS)


_HOOK: Any = vars(object)["__subclasshook__"]


def _same(t: Tracer, self: Value, other: Value, /) -> Value:
    return Const(True) if dm.is_same(t, self, other) else not_implemented()


handles_rows(
    {
        hasattr: lambda t, obj, name, /: Const(
            attribute_or_none(t, obj, name_of(t, name)) is not None
        ),
        setattr: lambda t, obj, name, value, /: dm.set_attribute(t, obj, name_of(t, name), value),
        delattr: lambda t, obj, name, /: dm.delete_attribute(t, obj, name_of(t, name)),
        object.__new__: lambda t, cls, /, *args, **named: new_object(t, cls.known(), args, named),
        vars(object)["__init_subclass__"]: lambda t, cls, /: None,
        _HOOK: lambda t, cls, /, *given: made(
            t, for_real(t, _HOOK.__get__(None, cls.known()), [None] * len(given), {})
        ),
        object.__repr__: lambda t, self, /: t.graph_break(
            "address", f"the text of a {self.cls.__name__} shows its address"
        ),
    }
)
handles_each({"__class_getitem__": lambda t, cls, key, /: dm.get_item(t, cls, key)}, *BUILT_IN)
handles_each({"__eq__": _same, "__ne__": inverted_eq}, *_PLAINEST)
handles_each(
    dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__"), unordered),
    *_PLAINEST,
    types.BuiltinFunctionType,
)


@handles(object.__hash__, torch.Tensor.__hash__)
def _hash(t: Tracer, self: Value, /) -> Value:
    if isinstance(self, Known):
        OfProcess.met += 1
        return Const(object.__hash__(self.value))
    if isinstance(self, Const):
        return t.graph_break("address", f"the address of a {self.cls.__name__}")
    return identity(t, hash if t.tensors.owns(self) else object.__hash__, self)


_asked: weakref.WeakKeyDictionary[Tracer, list[Value]] = weakref.WeakKeyDictionary()


def identity(t: Tracer, function: Callable[[Any], int], obj: Value) -> Value:
    """The address of an object as a value; it is another than those asked for before, or the
    guards on their identity see to it.
    """
    others = _asked.setdefault(t, [])
    for other in others:
        dm.is_same(t, obj, other)
    others.append(obj)
    return IdentityValue(function, obj)


@handles(id)
def _id(t: Tracer, obj: Value, /) -> Value:
    if isinstance(obj, Known):
        OfProcess.met += 1
        return Const(id(obj.value))
    if isinstance(obj, Const):
        return t.graph_break("address", f"id() of a {obj.cls.__name__}")
    return identity(t, id, obj)


@handles(type.__call__)
def _type_call(t: Tracer, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
    if isinstance(cls, Known) and cls.value is type:
        return t.call(cls, list(args), kwargs)
    return type_call(t, cls, list(args), kwargs)
