"""Fields of functions and methods, and making methods."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from dynacap.values.base import MISSING, Const, Known, Value
from dynacap.values.container import DictValue, TupleValue
from dynacap.values.data_model import attributes, get_attribute, is_same
from dynacap.values.data_model.calls import part_of
from dynacap.values.data_model.operators import inverted_eq
from dynacap.values.data_model.refusals import like
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.library.handlers import NONE, constant_of, handles, is_none, methods
from dynacap.values.natives import setter
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

_FUNCTION = types.FunctionType.__dict__
_VALUES = 1  # the format in which annotations are asked for
Read = Callable[[FunctionValue], Value]


def _register_field(name: str, slot: str, made: Read) -> None:
    """A field of a function: what was set here, else the outside function's, else what the
    code object says.
    """
    raw = _FUNCTION[name]

    @handles(raw)
    def read(t: Tracer, self: FunctionValue, /) -> Value:
        held = self.fields.get(slot)
        if held is not None:
            return held
        if self.real is not None:
            return attributes.read_real_field(t, raw, self, self.real) or NONE
        return made(self)

    @setter(raw)
    def write(t: Tracer, self: Value, value: Value) -> None:
        if not isinstance(self, FunctionValue) or self.real is not None:
            t.graph_break("function-write", f"{name} of a function from outside is set")
        self.fields[slot] = value
        if name == "__annotate__" and not is_none(value):
            self.annotations = None
        if name in ("__name__", "__qualname__"):
            setattr(self, name.strip("_"), constant_of(t, value, name))


def _doc(function: FunctionValue) -> Value:
    cells = tuple(types.CellType() for _ in function.code.co_freevars)
    return Const(types.FunctionType(function.code, {}, None, None, cells).__doc__)


def _module(function: FunctionValue) -> Value:
    owner = function.globals_of.real
    return Const(owner.__globals__.get("__name__") if owner is not None else None)


_register_field("__module__", "module", _module)
_register_field("__name__", "name", lambda f: Const(f.name))
_register_field("__qualname__", "qualname", lambda f: Const(f.qualname))
_register_field("__doc__", "doc", _doc)
if "__type_params__" in _FUNCTION:
    _register_field("__type_params__", "type_params", lambda f: TupleValue([]))
if "__annotate__" in _FUNCTION:
    _register_field("__annotate__", "annotate", lambda f: NONE)


@handles(_FUNCTION["__code__"])
def _code(t: Tracer, self: FunctionValue, /) -> Value:
    if self.real is not None:
        return attributes.read_real_field(t, _FUNCTION["__code__"], self, self.real) or NONE
    return Const(self.code)


def _argument_field(t: Tracer, self: FunctionValue, name: str, held: Value | None) -> Value:
    if held is not None or self.real is None:
        return held or NONE
    return part_of(t, getattr(self.real, name), self, name)


handles(_FUNCTION["__defaults__"])(
    lambda t, self, /: _argument_field(t, self, "__defaults__", self.defaults)
)
handles(_FUNCTION["__kwdefaults__"])(
    lambda t, self, /: _argument_field(t, self, "__kwdefaults__", self.kwdefaults)
)


@handles(_FUNCTION["__closure__"])
def _closure(t: Tracer, self: FunctionValue, /) -> Value:
    if self.real is None and self.cells is not None:
        return TupleValue(list(self.cells)) if self.cells else NONE
    return t.graph_break("function-closure", "the closure of a function from outside is read")


@handles(_FUNCTION["__annotations__"])
def _annotations(t: Tracer, self: FunctionValue, /) -> Value:
    if self.real is not None:
        attributes.check_annotations(t, types.FunctionType, self.real)
        return attributes.read_real_field(t, _FUNCTION["__annotations__"], self, self.real) or NONE
    annotate = self.fields.get("annotate", NONE)
    if self.annotations is None and not is_none(annotate):
        self.annotations = t.call(annotate, [Const(_VALUES)])
    self.annotations = self.annotations or DictValue()
    return self.annotations


@setter(_FUNCTION["__annotations__"])
def _set_annotations(t: Tracer, self: Value, value: Value) -> None:
    if not isinstance(self, FunctionValue) or self.real is not None:
        t.graph_break("function-write", "annotations of a function from outside are set")
    self.annotations = value
    self.fields.pop("annotate", None)


@handles(types.MethodType)
def _make_method(t: Tracer, function: Value, obj: Value, /) -> Value:
    if t.lookup(function.cls, "__call__") is MISSING:
        t.raise_error(TypeError, "first argument must be callable")
    if is_none(obj):
        t.raise_error(TypeError, "instance must not be None")
    return BoundMethod(function, obj)


@handles(types.MethodType.__dict__["__func__"])
def _method_func(t: Tracer, self: Value, /) -> Value:
    return self.func if isinstance(self, BoundMethod) else _foreign(t, self)


_BOUND = (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType)


@handles(*methods("__self__", *_BOUND))
def _method_self(t: Tracer, self: Value, /) -> Value:
    if isinstance(self, BoundMethod):
        return self.obj
    if isinstance(self, Known):
        return t.wrap(self.value.__self__, None)
    return _foreign(t, self)


def _foreign(t: Tracer, obj: Value) -> Value:
    return t.graph_break("foreign-storage", f"{obj.describe()} as a bound method")


def _register_method_field(name: str) -> None:
    @handles(*methods(name, *_BOUND))
    def read(t: Tracer, self: Value, /) -> Value:
        if isinstance(self, BoundMethod):
            return get_attribute(t, self.func, name)
        return Const(getattr(self.known(), name))


for _name in ("__name__", "__qualname__", "__doc__"):
    _register_method_field(_name)


@handles(*methods("__eq__", *_BOUND))
def _same_method(t: Tracer, self: Value, other: Value, /) -> Value:
    if isinstance(self, BoundMethod) and isinstance(other, BoundMethod):
        return Const(is_same(t, self.func, other.func) and is_same(t, self.obj, other.obj))
    if isinstance(self, Known) and isinstance(other, Known):
        return Const(self.value.__eq__(other.value))
    return Const(NotImplemented)


@handles(types.WrapperDescriptorType.__get__, types.MethodDescriptorType.__get__)
@handles(*(kind.__get__ for kind in attributes.C_FIELDS))
def _bind_c(t: Tracer, self: Value, obj: Value, owner: Value = NONE, /) -> Value:
    if is_none(obj):
        return self
    if not issubclass(obj.cls, self.known().__objclass__):
        t.raise_real(error_of(self.known().__get__, like(obj)))
    if not issubclass(owner.cls, (type, type(None))):
        t.graph_break("bad-arguments", f"{self.describe()} is asked for a {owner.title}")
    found = attributes.bind(t, self.known(), self, obj, obj.cls)
    return found or t.graph_break("unsupported-field", f"{self.describe()} is not set")


handles(types.BuiltinFunctionType.__ne__, types.MethodWrapperType.__ne__)(inverted_eq)


@handles(types.MethodType.__call__, types.FunctionType.__call__, types.BuiltinFunctionType.__call__)
def _call(t: Tracer, self: Value, /, *args: Value, **kwargs: Value) -> Value:
    return t.call(self, list(args), kwargs)


@handles(types.CellType.__dict__["cell_contents"])
def _cell_contents(t: Tracer, self: Any, /) -> Value:
    content = t.cell_content(self)
    if content is None:
        t.raise_error(ValueError, "Cell is empty")
    return content


handles(globals)(lambda t, /: t.globals_of(t.running())[0])
