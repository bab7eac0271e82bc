"""A real object and its source become a value, by a table keyed on the object's type."""

from __future__ import annotations

import collections
import dataclasses
import enum
import inspect
import types
from collections.abc import Callable
from typing import Any

from dynacap.backends.fakes.world import SILENCE
from dynacap.guards.raw import IMMUTABLE_TYPE, is_a, storage
from dynacap.guards.source import Attr, DequeItem, SeqItem, Source
from dynacap.hook import original_code
from dynacap.values.base import Known, Lazy, OfProcess, Value
from dynacap.values.container import DictValue, ListValue, SetValue, SliceValue, TupleValue
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.natives import registers
from dynacap.values.object import CellValue, ExceptionValue, ObjectValue, PayloadValue, plain
from dynacap.values.tracer import Tracer

Builder = Callable[["Tracer", Any, Source | None], Value]

CONST_TYPES: set[type] = {
    int, float, complex, bool, str, bytes, type(None), type(Ellipsis), type(NotImplemented),
    range, slice, types.CodeType,
}  # fmt: skip

_BUILDERS: dict[type, Builder] = {}
_LAYOUTS: list[tuple[type, Builder]] = []  # for subclasses, the most derived first


builds = registers(_BUILDERS)  # the builder for objects of exactly these types


def builds_subclasses(base: type) -> Callable[[Builder], Builder]:
    """Register the builder for objects of any subclass of ``base`` that has none of its own."""

    def register(builder: Builder) -> Builder:
        _LAYOUTS.append((base, builder))
        _LAYOUTS.sort(key=lambda pair: len(pair[0].__mro__), reverse=True)
        return builder

    return register


def build(t: Tracer, real: Any, source: Source | None) -> Value:
    """The value of an object that has none yet, with the guards on what it is."""
    kind = type(real)
    builder = _BUILDERS.get(kind) or _builder_of(kind)
    return builder(t, real, source)


def _builder_of(kind: type) -> Builder:
    for base, builder in _LAYOUTS:
        if issubclass(kind, base):
            return builder
    return build_object


def guard_type(t: Tracer, real: Any, source: Source | None) -> None:
    """The type of an outside object is what it was, and is where its class is found."""
    if source is not None:
        t.guard("TypeIs", source, type(real))
    elif type(real) not in _TOLD and not _are_parameters(real):
        OfProcess.met += 1  # nothing guards what is read of it


# made of what is guarded: a class and its fields, a function's code and defaults
_TOLD = {dataclasses.Field, inspect.Signature, inspect.Parameter}


def _are_parameters(real: Any) -> bool:
    """Whether it is what a signature keeps them in."""
    return type(real) is collections.OrderedDict and {inspect.Parameter} >= set(
        map(type, real.values())
    )


def build_object(t: Tracer, real: Any, source: Source | None) -> Value:
    """An instance of some class."""
    guard_type(t, real, source)
    return ObjectValue(type(real), real=real, source=source)


@builds(
    type,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    types.MethodWrapperType,
    types.GenericAlias,
    types.UnionType,
    property,
    staticmethod,
    classmethod,
)
def build_known(t: Tracer, real: Any, source: Source | None) -> Value:
    """An object that is known by identity."""
    if source is not None:
        if is_a(real, _BOUND) and _is_bound(real):
            return _build_builtin_method(t, real, source)
        if type(real) in (staticmethod, classmethod):  # Python cannot refer to them weakly
            t.guard("TypeIs", source, type(real))
            t.guard("IdIs", Attr(source, "__func__"), real.__func__)
        else:
            t.guard("IdIs", source, real)
            if is_a(real, types.ModuleType):  # which can be given another class
                t.guard("TypeIs", source, type(real))
    return Known(real, source=source)


_BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)


def _is_bound(real: Any) -> bool:
    """Whether it is a method of an object; pybind11 binds plain functions to records of its own."""
    owner = real.__self__
    if isinstance(owner, types.ModuleType | type | None):
        return False
    return hasattr(type(owner), real.__name__)


def _build_builtin_method(t: Tracer, real: Any, source: Source) -> Value:
    """A C method bound to an object (``some_list.append``) that was kept in a variable."""
    t.guard("TypeIs", source, type(real))
    raw = t.lookup(type(real.__self__), real.__name__)
    obj = t.wrap(real.__self__, Attr(source, "__self__"))
    t.guard("ConstEq", Attr(source, "__name__"), real.__name__)
    return BoundMethod(t.wrap(raw, None), obj, source=source)


builds_subclasses(type)(build_known)
builds_subclasses(types.ModuleType)(build_known)
builds_subclasses(enum.Enum)(build_known)


@builds_subclasses(int)
@builds_subclasses(float)
@builds_subclasses(complex)
@builds_subclasses(str)
@builds_subclasses(bytes)
def build_payload(t: Tracer, real: Any, source: Source | None) -> Value:
    """An instance of a user's subclass of a number's or text's type; C's own are objects."""
    if type(real).__flags__ & IMMUTABLE_TYPE:
        return build_object(t, real, source)
    if source is not None:
        t.guard("IdIs", source, real)
    return PayloadValue(type(real), plain(real), real=real, source=source)


@builds(types.FunctionType)
def build_function(t: Tracer, real: Any, source: Source | None) -> Value:
    """A Python function; its code is guarded when it is called or looked at."""
    if source is not None:
        t.guard("TypeIs", source, types.FunctionType)
    return FunctionValue(original_code(real), real, source=source)


@builds(types.MethodType)
def build_method(t: Tracer, real: Any, source: Source | None) -> Value:
    """A bound method that was kept in a variable."""
    guard_type(t, real, source)
    func = t.wrap(real.__func__, Attr(source, "__func__") if source else None)
    obj = t.wrap(real.__self__, Attr(source, "__self__") if source else None)
    return BoundMethod(func, obj, source=source)


@builds(types.CellType)
def build_cell(t: Tracer, real: Any, source: Source | None) -> Value:
    """A closure cell."""
    guard_type(t, real, source)
    return CellValue(real=real, source=source)


def _items(t: Tracer, kind: type, real: Any, source: Source | None) -> list[Value]:
    guard_type(t, real, source)
    held = list(storage(kind, real))
    if source is None:
        return [Lazy(item) for item in held]
    t.guard("Length", source, len(held))
    step = DequeItem if kind is collections.deque else SeqItem
    return [Lazy(item, source=step(source, index)) for index, item in enumerate(held)]


@builds_subclasses(tuple)
def build_tuple(t: Tracer, real: Any, source: Source | None) -> Value:
    """A tuple or an instance of a subclass."""
    if source is None:
        items = [t.wrap(item, None) for item in tuple.__iter__(real)]
        return TupleValue(items, type(real), real=real)
    return TupleValue(_items(t, tuple, real, source), type(real), real=real, source=source)


@builds(slice)
def build_slice(t: Tracer, real: Any, source: Source | None) -> Value:
    """A slice whose bounds are not all constants."""
    guard_type(t, real, source)
    sources = [source and Attr(source, name) for name in ("start", "stop", "step")]
    bounds = tuple(map(t.wrap, (real.start, real.stop, real.step), sources))
    return SliceValue(bounds, real=real, source=source)


@builds_subclasses(list)
def build_list(t: Tracer, real: Any, source: Source | None) -> Value:
    """A list or an instance of a subclass; its length is guarded when its items are needed."""
    if real is SILENCE:  # Python's own are there when the step runs that reads them
        t.graph_break("warning", "the filters of warnings are read")
    guard_type(t, real, source)
    return ListValue(lambda: _items(t, list, real, source), type(real), real=real, source=source)


@builds_subclasses(collections.deque)
def build_deque(t: Tracer, real: Any, source: Source | None) -> Value:
    """A deque."""
    items = _items(t, collections.deque, real, source)
    if source is not None:
        t.guard("ConstEq", Attr(source, "maxlen"), real.maxlen)
    return ListValue(items, type(real), real.maxlen, real=real, source=source)


@builds_subclasses(dict)
def build_dict(t: Tracer, real: Any, source: Source | None) -> Value:
    """A dict; entries are guarded when they are read, the keys when they are walked."""
    guard_type(t, real, source)
    made = DictValue(type(real), real=real, source=source)
    if isinstance(real, collections.defaultdict):
        factory_source = Attr(source, "default_factory") if source is not None else None
        made.default = t.wrap(real.default_factory, factory_source)
    return made


def _is_itself(kind: type) -> bool:
    """Whether objects of a type are classes or functions that equal themselves alone."""
    plain = kind.__hash__ is object.__hash__ and kind.__eq__ is object.__eq__
    return plain and issubclass(kind, (type, types.FunctionType))


def _build_set(t: Tracer, real: Any, source: Source | None) -> Value:
    guard_type(t, real, source)
    kind = set if isinstance(real, set) else frozenset
    held = list(storage(kind, real))
    others = {type(item) for item in held} - CONST_TYPES
    if source is not None and not all(map(_is_itself, others)):
        t.graph_break("outside-set", "a set from outside that holds objects")
    values = [t.wrap(item, None) for item in held]
    t.meets(tuple(held))
    if source is not None:
        t.guard("IdIs" if others and type(real) is frozenset else "SetEq", source, real)
    items = {t.key_of(value, set): value for value in values}
    return SetValue(items, type(real), real=real, source=source)


builds_subclasses(set)(_build_set)
builds_subclasses(frozenset)(_build_set)


@builds_subclasses(BaseException)
def build_exception(t: Tracer, real: Any, source: Source | None) -> Value:
    """An exception object."""
    guard_type(t, real, source)
    args = t.wrap(real.args, Attr(source, "args") if source is not None else None)
    assert isinstance(args, TupleValue)
    made = ExceptionValue(type(real), args.items, real=real, source=source)
    made.shown = args
    return made
