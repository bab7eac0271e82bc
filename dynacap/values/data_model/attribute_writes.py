"""Attributes that are set and deleted: ``object.__setattr__`` and ``object.__delattr__``."""

from __future__ import annotations

import types
from typing import Any, NoReturn

from dynacap.guards.raw import IMMUTABLE_TYPE, is_a
from dynacap.values.base import DELETED, MISSING, Const, Known, Value
from dynacap.values.data_model import attributes
from dynacap.values.data_model.calls import call_special
from dynacap.values.natives import find_setter
from dynacap.values.object import ExceptionValue, ObjectValue, PropertyValue, WrittenAttribute
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of, instance_named

_EXCEPTION_OR_NONE = (BaseException, type(None))


def set_attribute(t: Tracer, obj: Value, name: str, value: Value) -> None:
    """``setattr(obj, name, value)``."""
    if attributes.is_overridden(t, obj.cls, "__setattr__"):
        call_special(t, obj, "__setattr__", [Const(name), value])
    else:
        generic_set_attribute(t, obj, name, value)


def generic_set_attribute(t: Tracer, obj: Value, name: str, value: Value) -> None:
    """``object.__setattr__``: a data descriptor, else the instance dict."""
    if type(obj) is Known and is_a(obj.value, type):
        _set_class_attribute(t, obj, name, value)
        return
    raw = t.lookup(obj.cls, name)
    if raw is not MISSING and attributes.is_data_descriptor(t, raw):
        _set_through(t, raw, obj, name, value)
        return
    if t.tensors.owns(obj):
        t.tensors.set_attribute(t, obj, name, value)
        return
    attrs = attributes.instance_dict(t, obj)
    if attrs is None and type(obj) is PropertyValue and obj.cls is not property:
        t.graph_break("unsupported-field", f"{name} of a {obj.cls.__name__} is set")
    if attrs is None:
        _no_room(t, raw, obj, setattr, name, None)
    attrs.set(t, name, Const(name), value)


def _no_room(t: Tracer, raw: Any, obj: Value, operation: Any, *operands: Any) -> NoReturn:
    """Raise what Python says of an attribute in an object without a dict."""
    attributes.check_no_proxy(t, obj.cls)
    found = {} if raw is MISSING else {operands[0]: None}
    like = instance_named(obj.title, __slots__=(), **found)
    t.raise_real(error_of(operation, like, *operands), about=obj)


def _set_class_attribute(t: Tracer, obj: Known, name: str, value: Value) -> None:
    """Plain data in place of plain data, or where nothing was; anything else breaks."""
    cls = obj.value
    plain = t.lookup(value.cls, "__get__") is MISSING and t.lookup(type(cls), name) is MISSING
    raw = t.lookup(cls, name)
    if raw is not MISSING and type(raw) is not WrittenAttribute:
        plain = plain and not hasattr(type(raw), "__get__") and not hasattr(type(raw), "__set__")
    kept = cls.__flags__ & IMMUTABLE_TYPE or (name.startswith("__") and name.endswith("__"))
    if kept or not plain:
        t.graph_break("class-attribute-write", f"{cls.__name__}.{name} is set")
    t.write_class(obj, name, value)


def _set_through(t: Tracer, raw: Any, obj: Value, name: str, value: Value) -> None:
    if type(raw) is property:
        owner = t.class_attribute(obj.cls, name)
        part = attributes.property_part(t, raw, owner, "fset", obj.cls, property.__set__, None)
        t.call(part, [obj, value])
    elif type(raw) in attributes.C_FIELDS:
        _set_field(t, raw, obj, value)
    else:
        call_special(t, t.class_attribute(obj.cls, name), "__set__", [obj, value])


def _set_field(t: Tracer, raw: Any, obj: Value, value: Value) -> None:
    name = raw.__name__
    handler = find_setter(raw)
    if handler is not None:
        handler(t, obj, value)
        return
    if isinstance(obj, ExceptionValue) and set_exception_field(t, obj, name, value):
        return
    if t.tensors.owns(obj):
        t.tensors.set_attribute(t, obj, name, value)
        return
    if _is_slot(raw) and isinstance(obj, ObjectValue):
        obj.slots[name] = value
        obj.dirty_slots[name] = None
        t.touch(obj)
        return
    t.graph_break("unsupported-field", f"{obj.cls.__name__}.{name} is set")


def _is_slot(raw: Any) -> bool:
    """Whether it is a slot of the user's; a C type's may be read-only, or not go when deleted."""
    kind = types.MemberDescriptorType
    return type(raw) is kind and not raw.__objclass__.__flags__ & IMMUTABLE_TYPE


def set_exception_field(t: Tracer, obj: ExceptionValue, name: str, value: Value) -> bool:
    """Set ``__cause__``, ``__context__`` and their kin; False if the field is another."""
    if name in ("__cause__", "__context__") and not issubclass(value.cls, _EXCEPTION_OR_NONE):
        what = f"exception {name.strip('_')}"
        t.raise_error(TypeError, f"{what} must be None or derive from BaseException")
    if name == "__cause__":
        obj.cause, obj.suppress_context = value, True
    elif name == "__context__":
        obj.context = value
    elif name == "__suppress_context__":
        if not issubclass(value.cls, bool):
            t.raise_error(TypeError, "attribute value type must be bool")
        obj.suppress_context = bool(value.constant())
    else:
        return False
    if obj.real is not None:
        t.graph_break("exception-write", f"{name} of an exception from outside is set")
    return True


def delete_attribute(t: Tracer, obj: Value, name: str) -> None:
    """``delattr(obj, name)``."""
    if attributes.is_overridden(t, obj.cls, "__delattr__"):
        call_special(t, obj, "__delattr__", [Const(name)])
        return
    generic_delete_attribute(t, obj, name)


def generic_delete_attribute(t: Tracer, obj: Value, name: str) -> None:
    """``object.__delattr__``."""
    if isinstance(obj, Known) and is_a(obj.value, type):
        t.graph_break("class-attribute-write", f"{obj.value.__name__}.{name} is deleted")
    raw = t.lookup(obj.cls, name)
    if raw is not MISSING and attributes.is_data_descriptor(t, raw):
        _delete_through(t, raw, obj, name)
        return
    attrs = attributes.instance_dict(t, obj)
    if attrs is None:
        _no_room(t, raw, obj, delattr, name)
    if not attrs.delete(t, name):
        attributes.no_attribute(t, obj, name, read=False)


def _delete_through(t: Tracer, raw: Any, obj: Value, name: str) -> None:
    if type(raw) is property:
        owner = t.class_attribute(obj.cls, name)
        part = attributes.property_part(t, raw, owner, "fdel", obj.cls, property.__delete__)
        t.call(part, [obj])
    elif _is_slot(raw) and isinstance(obj, ObjectValue):
        if attributes.read_field(t, raw, obj) is None:
            t.raise_error(AttributeError, name)
        obj.slots[name] = DELETED
        obj.dirty_slots[name] = None
        t.touch(obj)
    elif type(raw) in attributes.C_FIELDS:
        t.graph_break("unsupported-field", f"{obj.cls.__name__}.{name} is deleted")
    else:
        call_special(t, t.class_attribute(obj.cls, name), "__delete__", [obj])
