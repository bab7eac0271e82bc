"""Calls: special methods, bound methods, callables, and the making of instances."""

from __future__ import annotations

import enum
import functools
import inspect
import operator
import types
from collections.abc import Sequence
from typing import Any

from dynacap.backends.torch_surface import is_operation
from dynacap.guards.raw import IMMUTABLE_TYPE, derives, type_flags
from dynacap.guards.source import Attr
from dynacap.hook import field_of_function
from dynacap.values.base import MISSING, Alias, Const, Known, NotConstant, Value
from dynacap.values.container import (
    DictValue,
    ListValue,
    SetValue,
    TupleValue,
    fresh_dict,
)
from dynacap.values.data_model.exceptions import init_exception, new_exception
from dynacap.values.data_model.refusals import refuse
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.natives import find_native, find_polyfill, is_pure, native
from dynacap.values.object import ExceptionValue, ObjectValue, PayloadValue, PropertyValue, plain
from dynacap.values.stand_in import ASKED, StandIn, for_real, run, value_of
from dynacap.values.symbol import SymbolValue
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

Kwargs = dict[str, Value]
MAX_UNWRAPPED = 100  # callables in one another
_NO_INSTANCES = 1 << 7  # Py_TPFLAGS_DISALLOW_INSTANTIATION
C_METHODS = (types.WrapperDescriptorType, types.MethodDescriptorType)


def call_special(t: Tracer, obj: Value, name: str, args: list[Value]) -> Value:
    """``type(obj).name(obj, *args)``, as the interpreter calls special methods."""
    cls = obj.cls
    raw = t.lookup(cls, name)
    if raw is MISSING:
        t.raise_error(TypeError, f"{obj.title!r} object has no {name}")
    if isinstance(raw, C_METHODS):
        return call_c_function(t, raw, [obj, *args], {})
    value = t.class_attribute(cls, name)
    if isinstance(value, FunctionValue):
        return t.call(value, [obj, *args], {})
    if isinstance(raw, types.BuiltinFunctionType):
        return call_c_function(t, raw, args, {})
    bound = _bind_special(t, raw, value, obj, cls)
    return t.call(bound, args, {})


def _bind_special(t: Tracer, raw: Any, value: Value, obj: Value, cls: type) -> Value:
    if isinstance(raw, staticmethod):
        return part_of(t, raw.__func__, value, "__func__")
    if isinstance(raw, classmethod):
        return BoundMethod(part_of(t, raw.__func__, value, "__func__"), t.class_value(cls))
    if t.lookup(type(raw), "__get__") is MISSING:
        return value
    return call_special(t, value, "__get__", [obj, t.class_value(cls)])


def part_of(t: Tracer, real: Any, owner: Value, name: str) -> Value:
    """What an attribute of an object holds, as a value."""
    return t.wrap(real, Attr(owner.source, name) if owner.source is not None else None)


def resolve_call(t: Tracer, fn: Value, args: list[Value]) -> tuple[Value, list[Value]]:
    """Unwrap bound methods and objects with ``__call__``, down to a function or a C callable."""
    for _ in range(MAX_UNWRAPPED):
        if type(fn) is BoundMethod:
            method = fn
            fn, args = method.func, [method.obj, *args]
        elif type(fn) is PropertyValue and fn.cls is staticmethod:
            fn = fn.parts[0]
        elif isinstance(fn, (FunctionValue, Known)) and not _is_callable_object(t, fn):
            return fn, args
        elif (field := field_of_function(fn.cls)) is not None and isinstance(fn, ObjectValue):
            source = None if fn.source is None else Attr(fn.source, field)
            fn = t.wrap(fn.real.function, source)  # captured as what it was made from
        else:
            raw = t.lookup(fn.cls, "__call__")
            if raw is MISSING:
                refuse(t, operator.call, fn)
            if isinstance(raw, C_METHODS):
                return fn, args
            own = t.class_attribute(fn.cls, "__call__")
            if isinstance(own, FunctionValue) or field_of_function(own.cls) is not None:
                fn, args = own, [fn, *args]
            else:
                fn = _bind_special(t, raw, own, fn, fn.cls)
    t.graph_break("nesting", f"__call__ of {fn.cls.__name__} leads on and on")


def _is_callable_object(t: Tracer, fn: Value) -> bool:
    """A known object whose class has a ``__call__`` written in Python (an enum member, say)."""
    if type(fn) is not Known or isinstance(fn.value, type) or find_native(fn.value):
        return False
    if is_operation(fn.value):
        return False
    written = getattr(type(fn.value), "__call__", None)  # noqa: B004, what kind it is matters
    return isinstance(written, types.FunctionType)


def call_resolved(t: Tracer, fn: Value, args: list[Value], kwargs: Kwargs) -> Value:
    """Call what :func:`resolve_call` gave."""
    if isinstance(fn, FunctionValue):
        return t.inline(fn, args, kwargs)
    if isinstance(fn, Known):
        real = fn.value
        if isinstance(real, type) and find_native(real) is None and not is_pure(real):
            return construct(t, fn, args, kwargs)
        if type(real) is types.GenericAlias:
            return call_c_function(t, types.GenericAlias.__call__, [fn, *args], kwargs)
        return call_c_function(t, real, args, kwargs)
    raw = t.lookup(fn.cls, "__call__")
    return call_c_function(t, raw, [fn, *args], kwargs)


def call_c_function(t: Tracer, real: Any, args: list[Value], kwargs: Kwargs) -> Value:
    """Call a callable written in C: by its handler, as a graph node, or for real if pure."""
    asked = t.tensors.ask(t, real, args, kwargs) if is_operation(real) else None
    found = asked or call_known(t, real, args, kwargs)
    if found is not None:
        return found
    if is_pure(real):
        return compute(t, real, args, kwargs)
    name = getattr(real, "__qualname__", None) or repr(real)
    module = getattr(real, "__module__", None) or getattr(real, "__objclass__", None)
    return t.graph_break(
        "unsupported-call",
        f"call of {name} ({module}) with {', '.join(a.describe() for a in args) or 'nothing'}",
        "it is written in C or touches the world outside; call it outside the compiled function,"
        " or mark it with dynacap.allow_in_graph if it only computes on tensors",
    )


def call_known(t: Tracer, real: Any, args: list[Value], kwargs: Kwargs) -> Value | None:
    """Call a function by its handler, as an operation, or by its polyfill; None if it has none."""
    handler = find_native(real)
    if handler is not None:
        return handler(t, args, kwargs)
    if is_operation(real):
        return t.tensors.call(t, real, args, kwargs)
    function = find_polyfill(real)
    return None if function is None else t.call(t.wrap(function, None), args, kwargs)


def fold(t: Tracer, real: Any, args: list[Value], kwargs: Kwargs) -> Value | None:
    """Run a pure callable for real on constants; None if an operand is no constant."""
    for arg in args:
        if isinstance(arg, (TupleValue, ListValue)):
            _settle(t, arg)
    try:
        real_args = [constant_operand(arg) for arg in args]
        real_kwargs = {name: constant_operand(arg) for name, arg in kwargs.items()}
    except NotConstant as unknown:
        value = unknown.args[0]
        if type(value) is SymbolValue and value.hint is None and value in args:
            raise  # only a run of the graph tells: nothing else can be done about it
        return None
    return made(t, for_real(t, real, real_args, real_kwargs))


def fold_or_break(t: Tracer, real: Any, args: list[Value], kwargs: Kwargs) -> Value:
    """The same; breaks if an operand is no constant."""
    found = fold(t, real, args, kwargs)
    if found is None and fix_symbols(args):
        found = fold(t, real, args, kwargs)
    if found is None:
        described = ", ".join(arg.describe() for arg in [*args, *kwargs.values()])
        t.graph_break("not-constant", f"{real.__qualname__} of {described}")
    return found


def folds(*functions: Any) -> None:
    """Functions that are called for real, and whose calls break unless all operands are known."""
    for function in functions:
        native(function)(functools.partial(_folded, function))


def _folded(real: Any, t: Tracer, args: list[Value], kwargs: Kwargs) -> Value:
    return fold_or_break(t, real, args, kwargs)


def compute(
    t: Tracer,
    real: Any,
    args: list[Value],
    kwargs: Kwargs | None = None,
    asks: tuple[str, ...] = ASKED,
) -> Value:
    """Run a pure callable for real; operands that are no constants are stood for, and asked."""
    folded = fold(t, real, args, kwargs or {})
    return made(t, run(t, real, args, kwargs or {}, asks)) if folded is None else folded


def _settle(t: Tracer, value: TupleValue | ListValue) -> None:
    """Look at all that a sequence from outside holds, so that it may be a constant."""
    items = value.items
    for index in range(len(items)):
        item = t.force_item(items, index)
        if isinstance(item, TupleValue):
            _settle(t, item)


def made(t: Tracer, real: Any) -> Value:
    """What a call for real gave: containers are new objects each time, the rest constants."""
    kind = type(real)
    if kind is list:
        return ListValue([made(t, item) for item in real])
    if kind is tuple:
        return TupleValue([made(t, item) for item in real])
    if kind is dict:
        return fresh_dict(t, [(made(t, key), made(t, item)) for key, item in real.items()])
    if kind is set:
        items = [made(t, item) for item in real]
        return SetValue({t.key_of(item, set): item for item in items})
    # What a `__new__` of enums makes becomes a member later, by its name.
    unnamed = isinstance(real, enum.Enum) and hasattr(real, "_name_")
    if isinstance(real, StandIn | slice) or unnamed:
        return value_of(t, real)
    if kind in (types.GenericAlias, types.UnionType):  # Callable's copies forget their class
        return Alias(real)
    if kind.__flags__ & IMMUTABLE_TYPE == 0 and (payload := plain(real)) is not MISSING:
        return PayloadValue(kind, payload)
    return t.wrap(real, None)


def constant_operand(value: Value) -> Any:
    """An operand for a folded call: constants, and fresh copies of containers of constants."""
    if type(value) is ListValue and value.cls is list:
        return [_operand_inside(item) for item in value.items]
    if type(value) is TupleValue and value.cls is tuple:
        return tuple(_operand_inside(item) for item in value.items)
    if type(value) is SetValue and value.cls in (set, frozenset):
        for item in value.items.values():
            constant_operand(item)
        table = value.table()  # in the order that it shows
        return table if type(table) is value.cls else value.cls(table)
    if type(value) is DictValue and value.cls is dict and value.real is None:
        return {
            constant_operand(value.keyvals[key]): _operand_inside(value.over[key])  # type: ignore[arg-type]
            for key in value.fresh
        }
    return value.constant()


def fix_symbols(values: list[Value]) -> bool:
    """Fix the symbolic numbers that containers hold; whether there were any."""
    found = False
    for value in values:
        if type(value) is SymbolValue:
            found = value.value is not None
        elif isinstance(value, TupleValue | ListValue):
            found |= fix_symbols(value.items)
    return found


def _operand_inside(value: Value) -> Any:
    return value.inside() if type(value) is SymbolValue else constant_operand(value)


def construct(t: Tracer, cls_value: Value, args: list[Value], kwargs: Kwargs) -> Value:
    """``cls(*args, **kwargs)`` through the metaclass, ``__new__`` and ``__init__``."""
    cls = cls_value.known()
    meta_call = t.lookup(type(cls), "__call__")
    if meta_call is not type.__call__:
        if isinstance(meta_call, types.FunctionType) and not is_pure(meta_call):
            function = t.class_attribute(type(cls), "__call__")
            return t.call(function, [cls_value, *args], kwargs)
        folded = fold(t, cls, args, kwargs)
        if folded is not None:
            return folded
        t.graph_break("metaclass-call", f"{cls.__name__} is made by {type(cls).__name__}")
    return type_call(t, cls_value, args, kwargs)


def type_call(t: Tracer, cls_value: Value, args: list[Value], kwargs: Kwargs) -> Value:
    """``type.__call__``."""
    cls = cls_value.known()
    if cls.__flags__ & _NO_INSTANCES:
        t.raise_real(error_of(cls))
    _check_finalizer(t, cls)
    obj = _call_new(t, cls_value, args, kwargs)
    if not derives(obj.cls, cls):
        return obj
    init = t.lookup(obj.cls, "__init__")
    if init is object.__init__:
        return obj
    if isinstance(obj, ExceptionValue) and not isinstance(init, types.FunctionType):
        init_exception(t, obj, args, kwargs)
        return obj
    if isinstance(init, types.FunctionType):
        result = t.call(t.class_attribute(obj.cls, "__init__"), [obj, *args], kwargs)
        if not (type(result) is Const and result.value is None):
            t.raise_error(TypeError, f"__init__() should return None, not {result.title!r}")
        return obj
    call_c_function(t, init, [obj, *args], kwargs)
    return obj


def _check_finalizer(t: Tracer, cls: type) -> None:
    if not cls.__flags__ & IMMUTABLE_TYPE and t.lookup(cls, "__del__") is not MISSING:
        t.graph_break("finalizer", f"{cls.__name__} has a __del__, which runs when Python says so")


def _call_new(t: Tracer, cls_value: Value, args: list[Value], kwargs: Kwargs) -> Value:
    cls = cls_value.known()
    new = t.lookup(cls, "__new__")
    if new is object.__new__:
        return new_object(t, cls, args, kwargs)
    if isinstance(new, staticmethod):
        new = new.__func__
    if isinstance(new, types.FunctionType):
        fn = t.class_attribute(cls, "__new__")
        if not isinstance(fn, FunctionValue):
            fn = part_of(t, new, fn, "__func__")
        return t.call(fn, [cls_value, *args], kwargs)
    if not isinstance(new, types.BuiltinFunctionType) and (
        own := t.find_attribute(cls_value, "__new__")
    ):
        return t.call(own, [cls_value, *args], kwargs)
    if issubclass(cls, BaseException):
        return new_exception(t, cls, list(args))
    return call_c_function(t, new, [cls_value, *args], kwargs)


def new_object(t: Tracer, cls: type, args: Sequence[Value], kwargs: Kwargs) -> Value:
    """``object.__new__(cls, *args, **kwargs)``; Python itself says what it refuses."""
    _check_finalizer(t, cls)
    if args or kwargs or type_flags(cls) & inspect.TPFLAGS_IS_ABSTRACT:
        _ = t.lookup(cls, "__new__"), t.lookup(cls, "__init__")  # by which it decides
        try:
            object.__new__(cls, *args, **kwargs)
        except TypeError as error:
            t.raise_real(error)
    return ObjectValue(cls)
