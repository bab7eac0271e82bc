"""Enums and dataclasses: what their Python code works out from a class is known of the class."""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Iterable
from typing import Any

from dynacap.values.base import Const, Known, Value
from dynacap.values.container import TupleValue
from dynacap.values.data_model import get_attribute
from dynacap.values.data_model.calls import fold_or_break, folds
from dynacap.values.iterator import ListIterator
from dynacap.values.library.attributes import attribute_or_none
from dynacap.values.library.handlers import NONE, handles, is_none, real_of_known
from dynacap.values.tracer import Tracer

_PROPERTY: Any = enum.property  # a subclass of DynamicClassAttribute, written in Python
_OWN_GETTERS = {
    id(cls.__dict__[name].fget): field
    for cls in (enum.Enum, enum.Flag)
    for name, field in (("name", "_name_"), ("value", "_value_"))
    if name in cls.__dict__
}


@handles(_PROPERTY.__get__)
def _enum_property(t: Tracer, self: Value, instance: Value, ownerclass: Value = NONE) -> Value:
    descriptor: Any = self.value if isinstance(self, Known) else getattr(self, "real", None)
    if is_none(instance):
        return t.wrap(descriptor.__get__(None, ownerclass.known()), None)
    field = _OWN_GETTERS.get(id(descriptor.fget))
    if field is not None and isinstance(instance, Known):
        return t.wrap(getattr(instance.value, field), None)
    return t.call(t.wrap(descriptor.fget, None), [instance])


# Python functions of the library that are run for real on members and constants; some have several
# names.
_FOLDED = {
    id(method): method
    for cls in (enum.Enum, enum.Flag, enum.IntFlag, enum.IntEnum, enum.StrEnum)
    for name in (
        "__repr__", "__str__", "__format__", "__hash__", "__or__", "__and__", "__xor__",
        "__invert__", "__ror__", "__rand__", "__rxor__", "__contains__", "__bool__",
    )
    if isinstance(method := vars(cls).get(name), types.FunctionType)
}  # fmt: skip
folds(*_FOLDED.values())


@handles(enum.EnumType.__call__)
def _enum_call(t: Tracer, cls: Known, /, *args: Value, **kwargs: Value) -> Value:
    plain = args and type(args[0]) is Const and args[0].value in cls.value._value2member_map_
    plain = plain or t.lookup(cls.value, "_missing_").__module__ == "enum"
    if len(args) != 1 or kwargs or not plain:
        return t.graph_break("class-creation", "an enum is made, or its _missing_ asked, by a call")
    return fold_or_break(t, cls.value, [args[0]], {})


def _members(t: Tracer, members: Iterable[Any]) -> Value:
    return ListIterator(TupleValue([t.wrap(member, None) for member in members]))


handles(enum.EnumType.__iter__)(lambda t, cls, /: _members(t, cls.value))
handles(enum.EnumType.__reversed__)(lambda t, cls, /: _members(t, reversed(cls.value)))
handles(enum.EnumType.__len__)(lambda t, cls, /: Const(len(cls.value)))
handles(enum.EnumType.__bool__)(lambda t, cls, /: Const(True))


@handles(enum.EnumType.__getitem__)
def _enum_item(t: Tracer, cls: Known, name: Value, /) -> Value:
    try:
        return t.wrap(cls.value[name.constant()], None)
    except KeyError as error:
        return t.raise_real(error)


@handles(dataclasses.fields)
def _fields(t: Tracer, class_or_instance: Value, /) -> Value:
    real = real_of_known(class_or_instance)
    cls = real if isinstance(real, type) else class_or_instance.cls
    if not dataclasses.is_dataclass(cls):
        t.raise_error(TypeError, "must be called with a dataclass type or instance")
    get_attribute(t, t.class_value(cls), "__dataclass_fields__")
    return TupleValue([t.wrap(field, None) for field in dataclasses.fields(cls)])


@handles(dataclasses.is_dataclass)
def _is_dataclass(t: Tracer, obj: Value, /) -> Value:
    real = real_of_known(obj)
    cls = real if isinstance(real, type) else obj.cls
    fields = attribute_or_none(t, t.class_value(cls), "__dataclass_fields__")
    return Const(fields is not None)
