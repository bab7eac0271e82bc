"""Attribute access: ``object.__getattribute__``, ``type.__getattribute__`` and descriptors.

Source: the language reference, "Implementing Descriptors" and "Invoking Descriptors".
"""

from __future__ import annotations

import builtins
import decimal
import enum
import functools
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import dynacap.values.object as objects
from dynacap.guards.raw import IMMUTABLE_TYPE, derives, is_a, is_computed, type_flags
from dynacap.guards.source import Attr, InstanceDict, Source
from dynacap.guards.thread_local import ThreadDict
from dynacap.values.base import DELETED, MISSING, Const, Known, UnreadConst, UserRaise, Value
from dynacap.values.build import builds, guard_type
from dynacap.values.container import DictValue
from dynacap.values.data_model.calls import C_METHODS, call_special, part_of
from dynacap.values.data_model.refusals import like
from dynacap.values.function import BoundMethod, FunctionValue, GeneratorValue
from dynacap.values.natives import find_native, is_pure
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of, instance_named, unset_slot

C_FIELDS = (types.GetSetDescriptorType, types.MemberDescriptorType)
_OF_FUNCTION = functools.WRAPPER_ASSIGNMENTS  # what class methods have from their functions
_CLASS_FIELD = vars(object)["__class__"]
_KEEP_THEIR_OWN = (threading.local, decimal.Context)  # attributes in C of their own
_TYPE_FIELDS = frozenset(
    "__name__ __qualname__ __module__ __doc__ __mro__ __bases__ __base__ __flags__"
    " __abstractmethods__ __annotations__ __text_signature__".split()
)


def get_attribute(t: Tracer, obj: Value, name: str) -> Value:
    """``getattr(obj, name)``; raises AttributeError in the traced program if there is none."""
    return find_attribute(t, obj, name) or no_attribute(t, obj, name)


def find_attribute(t: Tracer, obj: Value, name: str) -> Value | None:
    """``getattr(obj, name)``, or None where Python would raise its own AttributeError."""
    try:
        return _find_attribute(t, obj, name)
    except UserRaise as raised:
        exc = raised.exc
        if (
            isinstance(exc, objects.ExceptionValue)
            and exc.real is None
            and issubclass(exc.cls, AttributeError)
        ):
            if exc.slots.keys().isdisjoint({"name", "obj"}):
                exc.slots |= {"name": Const(name), "obj": obj}
        raise


def _find_attribute(t: Tracer, obj: Value, name: str) -> Value | None:
    if type(obj) is objects.SuperValue:
        return _super_attribute(t, obj, name)
    cls = obj.cls
    check_no_proxy(t, cls)
    if isinstance(obj, objects.PropertyValue) and cls is not property and name in _OF_FUNCTION:
        return find_attribute(t, obj.parts[0], name)
    if not is_overridden(t, cls, "__getattribute__"):
        if type(obj) is Known and is_a(obj.value, type):
            found = type_attribute(t, obj, name)
        else:
            found = _unless_raised(t, cls, lambda: generic_attribute(t, obj, name))
    else:
        arguments: list[Value] = [Const(name)]
        found = _unless_raised(t, cls, lambda: call_special(t, obj, "__getattribute__", arguments))
    if found is None and type(obj) is BoundMethod and cls is types.MethodType:
        found = find_attribute(t, obj.func, name)
    if found is None and t.lookup(cls, "__getattr__") is not MISSING:
        return call_special(t, obj, "__getattr__", [Const(name)])
    if found is None and isinstance(obj, Known) and is_a(obj.value, types.ModuleType):
        return _module_getattr(t, obj, name)
    return found


def is_overridden(t: Tracer, cls: type, name: str) -> bool:
    """Whether a class has something of its own for ``__getattribute__`` or its kin."""
    raw = t.lookup(cls, name)
    if type(raw) not in C_METHODS or raw.__name__ != name:
        return True
    return raw.__objclass__ in _KEEP_THEIR_OWN and cls is not threading.local


def claimed_class(t: Tracer, obj: Value) -> type:
    """The class that ``isinstance`` and ``super`` believe: what the object says of itself."""
    check_no_proxy(t, obj.cls)
    own = t.lookup(obj.cls, "__class__") is _CLASS_FIELD
    if own and not is_overridden(t, obj.cls, "__getattribute__"):
        return obj.cls
    said = real_of(find_attribute(t, obj, "__class__") or obj)
    return said if isinstance(said, type) else obj.cls


def check_no_proxy(t: Tracer, cls: type) -> None:
    """Break where an attribute is that of the object behind a weak proxy."""
    if cls is weakref.ProxyType or cls is weakref.CallableProxyType:  # metaclasses are not asked
        t.graph_break("weak-reference", "an attribute behind a weak proxy")


def _unless_raised(t: Tracer, cls: type, find: Callable[[], Value | None]) -> Value | None:
    """What ``find`` gives; None where it raises AttributeError and ``__getattr__`` comes next."""
    try:
        return find()
    except UserRaise as raised:
        if (
            not issubclass(raised.exc.cls, AttributeError)
            or t.lookup(cls, "__getattr__") is MISSING
        ):
            raise
        return None


def generic_attribute(t: Tracer, obj: Value, name: str) -> Value | None:
    """``object.__getattribute__``: data descriptor, instance dict, other descriptor, class."""
    cls = obj.cls
    raw = t.lookup(cls, name)
    if raw is not MISSING and _comes_first(t, raw):
        return bind(t, raw, t.class_attribute(cls, name), obj, cls)
    attrs = instance_dict(t, obj)
    if attrs is not None:
        found = attrs.get(t, name)
        if found is not None:
            return found
    if raw is MISSING:  # of the dict itself, only where it is one for each thread
        return attrs if name == "__dict__" else None
    return bind(t, raw, t.class_attribute(cls, name), obj, cls)


def bind(t: Tracer, raw: Any, value: Value, obj: Value | None, cls: type) -> Value | None:
    """What ``__get__`` of a raw class attribute gives for ``obj`` (None: for the class itself)."""
    if isinstance(value, FunctionValue):
        return value if obj is None else BoundMethod(value, obj)
    if type(raw) is objects.WrittenAttribute:
        return value
    binder = _BINDERS.get(type(raw))
    if binder is not None:
        bound: Value | None = binder(t, raw, value, obj, cls)
        return bound
    if type(value) is objects.PropertyValue:
        return _bind_made(t, value, obj, cls)
    if t.lookup(type(raw), "__get__") is MISSING:
        return value
    owner = t.class_value(cls)
    return call_special(t, value, "__get__", [obj if obj is not None else Const(None), owner])


def _bind_made(t: Tracer, made: objects.PropertyValue, obj: Value | None, cls: type) -> Value:
    if made.cls is staticmethod:
        return made.parts[0]
    if made.cls is classmethod:
        return BoundMethod(made.parts[0], t.class_value(cls))
    return made if obj is None else t.call(made.parts[0], [obj])


def property_part(
    t: Tracer, raw: Any, value: Value, part: str, cls: type, use: Any, *to: Any
) -> Value:
    """A property's function of that kind; of one that has none, Python says so."""
    if getattr(raw, part) is None:
        shown = instance_named(cls.__name__, __qualname__=cls.__qualname__)
        t.raise_real(error_of(use, raw, shown, *to))
    return part_of(t, getattr(raw, part), value, part)


def _bind_property(t: Tracer, raw: Any, value: Value, obj: Value | None, cls: type) -> Value:
    if obj is None:
        return value
    return t.call(property_part(t, raw, value, "fget", cls, property.__get__), [obj])


def _bind_staticmethod(t: Tracer, raw: Any, value: Value, obj: Value | None, cls: type) -> Value:
    return part_of(t, raw.__func__, value, "__func__")


def _class_of(t: Tracer, obj: Value | None, cls: type) -> Value:
    """What a class method gets for its class, if it is found through ``obj``."""
    return obj if obj is not None and is_a(real_of(obj), type) else t.class_value(cls)


def _bind_classmethod(t: Tracer, raw: Any, value: Value, obj: Value | None, cls: type) -> Value:
    func = part_of(t, raw.__func__, value, "__func__")
    if not isinstance(func, FunctionValue) and t.lookup(func.cls, "__get__") is not MISSING:
        t.graph_break("unsupported-field", "a classmethod around another descriptor")
    return BoundMethod(func, _class_of(t, obj, cls))


def _bind_c_classmethod(t: Tracer, raw: Any, value: Value, obj: Value | None, cls: type) -> Value:
    if find_native(raw) is None and not is_pure(raw):
        return t.wrap(raw.__get__(None, cls), None)
    return BoundMethod(Known(raw), _class_of(t, obj, cls))


_BINDERS: dict[type, Any] = {
    property: _bind_property,
    staticmethod: _bind_staticmethod,
    classmethod: _bind_classmethod,
    types.ClassMethodDescriptorType: _bind_c_classmethod,
    **dict.fromkeys(
        C_METHODS, lambda t, raw, value, obj, cls: (obj and BoundMethod(value, obj)) or value
    ),
    types.BuiltinFunctionType: lambda t, raw, value, obj, cls: value,
    **dict.fromkeys(
        C_FIELDS, lambda t, raw, value, obj, cls: read_field(t, raw, obj) if obj else value
    ),
}


def read_field(t: Tracer, raw: Any, obj: Value) -> Value | None:
    """A C-level field of an object: a slot, or what a getset descriptor computes."""
    handler = find_native(raw)
    if handler is not None:
        return handler(t, [obj], {})
    if raw.__name__ == "__dict__":
        return instance_dict(t, obj)
    if (asked := t.tensors.ask(t, raw.__get__, [obj], {})) is not None:
        return asked
    if raw.__name__ == "__class__":
        return t.class_value(obj.cls)
    tensor_field = t.tensors.read_field(t, raw, obj)
    if tensor_field is not None:
        return tensor_field
    if isinstance(obj, objects.ObjectValue) and raw.__name__ in obj.slots:
        held = obj.slots[raw.__name__]
        return None if held is DELETED else held  # type: ignore[return-value]
    if isinstance(obj, objects.PayloadValue) and raw.__objclass__ is obj.base:
        return t.wrap(raw.__get__(obj.payload), None)
    real = real_of(obj)
    if isinstance(obj, GeneratorValue) and obj in t.touched:
        t.graph_break("unsupported-field", f"{raw.__name__} of a generator that went on")
    if real is None:
        if isinstance(obj, objects.ExceptionValue) and raw.__objclass__ in vars(builtins).values():
            return Const(None)  # as the fields of built-in exceptions begin
        if isinstance(obj, objects.ObjectValue):
            return Const(None) if raw.__name__ == "__weakref__" else None
        t.graph_break("unsupported-field", f"{obj.cls.__name__}.{raw.__name__}")
    return read_real_field(t, raw, obj, real)


def read_real_field(t: Tracer, raw: Any, obj: Value, real: Any) -> Value | None:
    """A C-level field as the outside object has it, under a guard."""
    name = raw.__name__
    try:
        if is_computed(raw, real):
            t.graph_break("unsupported-field", f"{obj.cls.__name__}.{name} may have to be computed")
        held = raw.__get__(real)
    except AttributeError as error:
        if derives(type(real), type) and type_flags(real) & IMMUTABLE_TYPE:
            t.raise_real(error)
        return t.graph_break("unset-slot", f"{obj.cls.__name__}.{name} is not set")
    source = Attr(obj.source, name) if obj.source is not None else None
    value = t.wrap(held, source)
    if type(value) is UnreadConst and source is not None:
        t.guard("TypeIs", source, type(held))  # the value may never be asked for
    if isinstance(obj, objects.ObjectValue):
        obj.slots[name] = value
    return value


def real_of(obj: Value) -> Any:
    """The outside object that a value stands for, or None."""
    if isinstance(obj, (Known, Const)):
        return obj.value
    return getattr(obj, "real", None)


def instance_dict(t: Tracer, obj: Value) -> DictValue | None:
    """The mirror of ``obj.__dict__``, or None if the object has none."""
    attrs: DictValue | None = getattr(obj, "attrs", None)
    if attrs is not None:
        return attrs
    if not _has_dict(obj):
        return None
    real = real_of(obj)
    if real is None:
        attrs = DictValue()
    else:
        alone = obj.cls is threading.local
        source = (ThreadDict if alone else InstanceDict)(obj.source) if obj.source else None
        try:
            held = (getattr if alone else object.__getattribute__)(real, "__dict__")
        except AttributeError:
            t.graph_break("unsupported-field", f"a {obj.cls.__name__} does not show its attributes")
        wrapped = t.wrap(held, source)
        if not isinstance(wrapped, DictValue):
            return None
        attrs = wrapped
    attrs.owner = obj
    obj.attrs = attrs  # type: ignore[attr-defined]
    return attrs


def _has_dict(obj: Value) -> bool:
    if not hasattr(obj, "attrs"):
        return False
    has = obj.cls.__dictoffset__ != 0 or obj.cls is threading.local
    return has and not is_a(real_of(obj), type)


def _comes_first(t: Tracer, raw: Any) -> bool:
    """Whether a raw class attribute is read before the instance dict."""
    return is_data_descriptor(t, raw) and t.lookup(type(raw), "__get__") is not MISSING


def is_data_descriptor(t: Tracer, raw: Any) -> bool:
    """Whether a raw class attribute is set and deleted before the instance dict."""
    kind = type(raw)
    if kind is types.FunctionType or kind in C_METHODS or kind is objects.WrittenAttribute:
        return False
    if kind is property or kind in C_FIELDS:
        return True
    return t.lookup(kind, "__set__") is not MISSING or t.lookup(kind, "__delete__") is not MISSING


def type_attribute(t: Tracer, obj: Known, name: str) -> Value | None:
    """``type.__getattribute__``: as for objects, but descriptors of the class itself are bound."""
    cls = obj.value
    meta = type(cls)
    if name == "__class__":
        return t.class_value(meta)
    if name == "__dict__":
        return t.graph_break("class-dict", f"{cls.__name__}.__dict__ is read")
    if isinstance(cls, enum.EnumType) and name in cls._member_map_:
        return t.wrap(cls._member_map_[name], None)
    found, meta_raw = None, t.lookup(meta, name)
    if meta_raw is not MISSING and _comes_first(t, meta_raw):
        if name in _TYPE_FIELDS or type(meta_raw) in C_FIELDS:
            return _type_field(t, obj, meta_raw, name)
        found = _unless_raised(
            t, meta, lambda: bind(t, meta_raw, t.class_attribute(meta, name), obj, meta)
        )
    elif (raw := t.lookup(cls, name)) is not MISSING:
        return bind(t, raw, t.class_attribute(cls, name), None, cls)
    elif meta_raw is not MISSING:
        return bind(t, meta_raw, t.class_attribute(meta, name), obj, meta)
    return found


@builds(super)
def _build_super(t: Tracer, real: Any, source: Source | None) -> Value:
    """``super()`` that was kept in a variable; one that is bound to nothing is any object."""
    guard_type(t, real, source)
    start, obj, kind = (
        t.wrap(vars(super)[name].__get__(real), Attr(source, name) if source else None)
        for name in ("__thisclass__", "__self__", "__self_class__")
    )
    if type(kind) is not Known:
        return objects.ObjectValue(super, real=real, source=source)
    return objects.SuperValue(start, obj, kind.value, source=source)


def make_super(t: Tracer, start: Value, obj: Value) -> objects.SuperValue:
    """``super(start, obj)``: ``obj`` is an instance of ``start`` or a subclass of it.

    A class may be either: ``super()`` in a metaclass's method has the class as its instance.
    """
    cls = start.known()
    as_class = obj.value if type(obj) is Known and is_a(obj.value, type) else None
    if as_class is not None and derives(as_class, cls):
        return objects.SuperValue(start, obj, as_class)
    kind = obj.cls if derives(obj.cls, cls) else claimed_class(t, obj)
    if not derives(kind, cls):
        t.raise_real(error_of(super, cls, as_class or like(obj)))
    return objects.SuperValue(start, obj, kind)


def check_annotations(t: Tracer, kind: type, real: Any) -> None:
    """Break where code of the user's has yet to make the annotations of a class or function."""
    raw = vars(kind).get("__annotate__")
    if raw is not None and raw.__get__(real) and "__annotations_cache__" not in vars(real):
        t.graph_break("dynamic-code", f"annotations of {real.__qualname__} are made")


def _type_field(t: Tracer, obj: Known, raw: Any, name: str) -> Value | None:
    try:
        if name == "__annotations__":
            check_annotations(t, type, obj.value)
        held = raw.__get__(obj.value)
    except AttributeError:  # a class that is not abstract has no __abstractmethods__
        return None
    return part_of(t, held, obj, name)


def _super_attribute(t: Tracer, obj: objects.SuperValue, name: str) -> Value | None:
    start = obj.start.known()
    t.lookup(obj.obj_type, name)  # breaks where the class is half made
    mro = obj.obj_type.__mro__
    at = next(index for index, base in enumerate(mro) if base is start)
    for base in mro[at + 1 :] if name != "__class__" else ():
        if name in base.__dict__:
            raw = base.__dict__[name]
            value = t.class_attribute(base, name)
            is_class = type(obj.obj) is Known and obj.obj.value is obj.obj_type
            if is_class and not isinstance(raw, classmethod):
                return bind(t, raw, value, None, obj.obj_type)
            return bind(t, raw, value, obj.obj, obj.obj_type)
        if base is not object:
            t.lookup(base, name)
    return generic_attribute(t, obj, name)


def _module_getattr(t: Tracer, obj: Known, name: str) -> Value | None:
    attrs = instance_dict(t, obj)
    assert attrs is not None
    hook = attrs.get(t, "__getattr__")
    return None if hook is None else t.call(hook, [Const(name)])


def no_attribute(t: Tracer, obj: Value, name: str, read: bool = True) -> NoReturn:
    """Raise the AttributeError that Python raises for an attribute that is not there; it names
    object and attribute where that was to be ``read``.
    """
    real = real_of(obj)
    if isinstance(real, type):
        text = f"type object {real.__name__!r} has no attribute {name!r}"
    elif isinstance(real, types.ModuleType):
        text = f"module {real.__name__!r} has no attribute {name!r}"
    elif type(obj) is objects.SuperValue:
        text = f"'super' object has no attribute {name!r}"
    elif type(t.lookup(obj.cls, name)) is types.MemberDescriptorType:
        text = str(unset_slot(obj.cls, name))
    else:
        text = f"{obj.title!r} object has no attribute {name!r}"
    error = objects.ExceptionValue(AttributeError, [Const(text)])
    error.slots = {"name": Const(name), "obj": obj} if read else {}
    t.throw(error)
