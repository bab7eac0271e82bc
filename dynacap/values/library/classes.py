"""Questions about classes, and what is made from them: isinstance, type, super, property."""

from __future__ import annotations

import abc
import functools
import types
import typing
import weakref
from typing import Any

from dynacap.guards.raw import IMMUTABLE_TYPE, derives, type_dict, type_flags
from dynacap.guards.registrations import Registrations
from dynacap.guards.relations import Predicate
from dynacap.values.base import MISSING, NONE, Const, Known, OfProcess, Value
from dynacap.values.build import build_known, builds_subclasses
from dynacap.values.container import DictValue, ListValue, TupleValue
from dynacap.values.data_model import call_special, get_attribute, truth
from dynacap.values.data_model.attributes import claimed_class, make_super
from dynacap.values.data_model.refusals import refuse
from dynacap.values.library.attributes import attribute_or_none
from dynacap.values.library.handlers import handles, handles_rows, is_none, real_of_known
from dynacap.values.object import ObjectValue, PropertyValue, WrittenAttribute
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

# what annotations are made of never changes
_OF_ANNOTATIONS: tuple[Any, ...] = (
    types.GenericAlias, typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple
)  # fmt: skip
for _kind in (*_OF_ANNOTATIONS, getattr(typing, "_Final", typing.TypeVar)):
    builds_subclasses(_kind)(build_known)

_PROTOCOL_CHECK = type(typing.Protocol).__instancecheck__
_STATIC = hasattr(typing, "_lazy_load_getattr_static")  # since then it runs no code of the object's
_KEEPS = (type.__instancecheck__, abc.ABCMeta.__instancecheck__)


def is_instance(t: Tracer, obj: Value, classinfo: Value) -> bool:
    """``isinstance(obj, classinfo)``."""
    if isinstance(classinfo, TupleValue):
        return any(is_instance(t, obj, t.force(one)) for one in classinfo.items)
    cls = real_of_known(classinfo)
    if isinstance(cls, types.UnionType):
        return any(is_instance(t, obj, t.wrap(one, None)) for one in typing.get_args(cls))
    if not isinstance(cls, type):
        if t.lookup(classinfo.cls, "__instancecheck__") is MISSING:
            refuse(t, functools.partial(isinstance, object), classinfo)
        return truth(t, call_special(t, classinfo, "__instancecheck__", [obj]))
    if obj.cls is cls:
        return True
    check = t.lookup(type(cls), "__instancecheck__")
    if check is _PROTOCOL_CHECK:
        return _follows_protocol(t, obj, cls)
    if check in _KEEPS:
        return _inherits(t, obj, cls)
    return truth(t, call_special(t, classinfo, "__instancecheck__", [obj]))


def _inherits(t: Tracer, obj: Value, cls: type) -> bool:
    """What classes answer that have no ``__instancecheck__`` of their own."""
    if issubclass(obj.cls, cls):
        _note_registration(obj.cls, cls)
        return True
    _guard_registrations(t, obj.cls, cls)
    return issubclass(claimed_class(t, obj), cls)


_registrations: weakref.WeakKeyDictionary[Tracer, Registrations] = weakref.WeakKeyDictionary()


def _guard_registrations(t: Tracer, cls: type, base: type) -> None:
    """A class may become a subclass: ``base.register(cls)``."""
    if not isinstance(base, abc.ABCMeta):
        return
    found = _registrations.get(t)
    if found is None:
        found = _registrations[t] = Registrations()
        t.guards.add(Predicate((), found.hold, "no class was registered for an abstract one"))
    found.add(cls, base)


def _note_registration(cls: type, base: type) -> None:
    """That a class was registered, or asked for its attributes, has no guard."""
    known = type_flags(cls) & IMMUTABLE_TYPE and type_dict(base).get("__module__") in _STANDARD
    OfProcess.met += not (known or derives(cls, base))


_STANDARD = ("collections.abc", "numbers", "typing")


class _Instance:
    """What passes for an instance of a class, to ask whether it inherits or is registered."""

    def __init__(self, cls: type) -> None:
        self.cls = cls

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self.cls


def _answers(t: Tracer, cls: type, name: str) -> bool:
    """Whether code of the program may run where an object is asked for an attribute."""
    raw = t.lookup(cls, name)
    own = t.lookup(cls, "__getattribute__") is not object.__getattribute__
    computed = not isinstance(raw, types.FunctionType) and hasattr(type(raw), "__get__")
    return own or computed or (raw is MISSING and t.lookup(cls, "__getattr__") is not MISSING)


def _follows_protocol(t: Tracer, obj: Value, cls: type) -> bool:
    if not getattr(cls, "_is_protocol", False):
        return issubclass(obj.cls, cls)
    if not getattr(cls, "_is_runtime_protocol", False):
        t.raise_error(
            TypeError,
            "Instance and class checks can only be used with @runtime_checkable protocols",
        )
    _guard_registrations(t, obj.cls, cls)
    OfProcess.met += 1  # what it asks for has no guard
    if isinstance(cls, abc.ABCMeta) and abc.ABCMeta.__instancecheck__(cls, _Instance(obj.cls)):
        return True
    for name in sorted(typing._get_protocol_attrs(cls)):  # type: ignore[attr-defined]
        if _STATIC and _answers(t, obj.cls, name):
            t.graph_break("unsupported-call", f"isinstance() looks for {name} without running code")
        found = attribute_or_none(t, obj, name)
        if found is None or (is_none(found) and callable(getattr(cls, name, None))):
            return False
    return True


def is_subclass(t: Tracer, sub: Value, classinfo: Value) -> bool:
    """``issubclass(sub, classinfo)``."""
    if isinstance(classinfo, TupleValue):
        return any(is_subclass(t, sub, t.force(one)) for one in classinfo.items)
    real_sub, cls = real_of_known(sub), real_of_known(classinfo)
    if isinstance(cls, types.UnionType):
        return any(is_subclass(t, sub, t.wrap(one, None)) for one in cls.__args__)
    check, is_class = t.lookup(classinfo.cls, "__subclasscheck__"), isinstance(real_sub, type)
    written = isinstance(check, types.FunctionType) and not _is_library(check)
    if written or (check is not MISSING and not isinstance(cls, type)):
        return truth(t, call_special(t, classinfo, "__subclasscheck__", [sub]))
    if (
        not is_class
        and t.lookup(sub.cls, "__bases__") is MISSING
        and not hasattr(real_sub, "__bases__")
    ):
        t.raise_real(error_of(issubclass, None, int))
    if not isinstance(cls, type):
        refuse(t, functools.partial(issubclass, object), classinfo)
    if _is_changed(t, cls):
        t.graph_break("unsupported-call", f"{cls.__name__}, a protocol made here, is asked")
    try:
        found = issubclass(real_sub, cls)
    except TypeError as error:
        return t.raise_real(error)
    if not found:
        _guard_registrations(t, real_sub, cls)
    else:
        _note_registration(real_sub, cls)
    return found


def _is_changed(t: Tracer, protocol: type) -> bool:
    """Whether what a class notes of being a protocol was changed in the traced program alone."""
    members = getattr(protocol, "__non_callable_proto_members__", MISSING)
    if type(t.lookup(protocol, "_is_runtime_protocol")) is WrittenAttribute:
        return True
    return any(getattr(value, "real", None) is members for value in t.touched)


def _is_library(function: types.FunctionType) -> bool:
    return function.__module__ in ("abc", "typing", "enum")


@handles(type)
def _type(t: Tracer, obj: Value, /, *rest: Value, **kwargs: Value) -> Value:
    if rest or kwargs:
        return t.graph_break("class-creation", "type() with three arguments makes a class")
    return t.class_value(obj.cls)


@handles(super)
def _super(t: Tracer, start: Value | None = None, obj: Value | None = None, /) -> Value:
    if start is None or obj is None or not isinstance(real_of_known(start), type):
        return t.graph_break("super", "super() without both a class and an object")
    return make_super(t, start, obj)


@handles(property)
def _property(
    t: Tracer,
    fget: Value = Const(None),
    fset: Value = Const(None),
    fdel: Value = Const(None),
    doc: Value = Const(None),
) -> Value:
    return PropertyValue(property, [fget, fset, fdel, doc])


@handles(property.__get__)
def _property_get(t: Tracer, self: Value, obj: Value, owner: Value = Const(None), /) -> Value:
    if is_none(obj):
        return self
    if isinstance(self, PropertyValue):
        return t.call(self.parts[0], [obj])
    return t.call(get_attribute(t, self, "fget"), [obj])


@handles(*(vars(kind)["__isabstractmethod__"] for kind in (property, staticmethod, classmethod)))
def _is_abstract(t: Tracer, self: Value, /) -> Value:
    """Whether one of the functions says so, whose word may be any object."""
    parts = [attribute_or_none(t, self, part) for part in ("fget", "fset", "fdel", "__func__")]
    said = (attribute_or_none(t, part, "__isabstractmethod__") for part in parts if part)
    return Const(any(word is not None and truth(t, word) for word in said))


handles(*_KEEPS)(lambda t, cls, instance: Const(_inherits(t, instance, cls.value)))


@handles(type.__subclasscheck__, abc.ABCMeta.__subclasscheck__)
def _subclasscheck(t: Tracer, cls: Known, subclass: Value) -> Value:
    if not (found := issubclass(subclass.known(), cls.value)):
        _guard_registrations(t, subclass.known(), cls.value)
    return Const(found)


@handles(type.mro)
def _mro(t: Tracer, cls: Known, /) -> Value:
    t.lookup(cls.value, "mro")  # breaks where the class is half made
    return ListValue([t.class_value(base) for base in type.mro(cls.value)])


handles_rows(
    {
        isinstance: lambda t, obj, info, /: Const(is_instance(t, obj, info)),
        issubclass: lambda t, sub, info, /: Const(is_subclass(t, sub, info)),
        callable: lambda t, obj, /: Const(t.lookup(obj.cls, "__call__") is not MISSING),
        staticmethod: lambda t, function, /: PropertyValue(staticmethod, [function]),
        classmethod: lambda t, function, /: PropertyValue(classmethod, [function]),
        types.FunctionType.__get__: lambda t, self, obj, owner=NONE, /: (
            self if is_none(obj) else t.call(t.wrap(types.MethodType, None), [self, obj])
        ),
        types.SimpleNamespace.__new__: lambda t, cls, /, *_, **__: ObjectValue(cls.known()),
    }
)


@handles(types.SimpleNamespace.__init__)
def _namespace_init(t: Tracer, self: Value, /, **kwargs: Value) -> None:
    attrs: Any = get_attribute(t, self, "__dict__")
    assert isinstance(attrs, DictValue)
    for name, value in kwargs.items():
        attrs.set(t, name, Const(name), value)
