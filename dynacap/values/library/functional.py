"""``functools`` and the getters of ``operator``."""

from __future__ import annotations

import functools
import operator
import weakref
from typing import Any

from dynacap.values.base import MISSING, Const, Known, Value
from dynacap.values.callables import ComparisonKey, GetterValue, PartialValue
from dynacap.values.container import DictValue, TupleValue, fresh_dict
from dynacap.values.data_model import compare, get_attribute, get_item, instance_dict
from dynacap.values.data_model.operators import COMPARE
from dynacap.values.data_model.refusals import refuse
from dynacap.values.function import FunctionValue
from dynacap.values.library.handlers import (
    NONE,
    constant_of,
    handles,
    handles_rows,
    is_none,
    real_of_known,
)
from dynacap.values.natives import native_code
from dynacap.values.stand_in import for_real
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of

_PARTIAL = functools.partial.__dict__
_KEY_TYPE: Any = ComparisonKey.cls


@handles(_PARTIAL["__new__"])
def _partial_new(t: Tracer, cls: Known, func: Value, /, *args: Value, **kwargs: Value) -> Value:
    if t.lookup(func.cls, "__call__") is MISSING:
        t.raise_error(TypeError, "the first argument must be callable")
    before: list[Value] = []
    keywords = fresh_dict(t, [])
    if isinstance(func, PartialValue) and func.cls is cls.value and not func.attrs:
        before = [t.force(arg) for arg in func.args.items]
        for key, value in func.keywords.items(t):
            keywords.set(t, t.key_of(key), key, value)
        func = func.func
    for name, value in kwargs.items():
        keywords.set(t, name, Const(name), value)
    return PartialValue(cls.value, func, TupleValue([*before, *args]), keywords)


@handles(_PARTIAL["__call__"])
def _partial_call(t: Tracer, self: PartialValue, /, *args: Value, **kwargs: Value) -> Value:
    merged = {key.constant(): value for key, value in self.keywords.items(t)}
    merged.update(kwargs)
    given = [t.force(arg) for arg in self.args.items]
    return t.call(self.func, [*given, *args], merged)


handles(_PARTIAL["func"])(lambda t, self, /: self.func)
handles(_PARTIAL["args"])(lambda t, self, /: self.args)
handles(_PARTIAL["keywords"])(lambda t, self, /: self.keywords)


@handles(functools.cached_property.__get__)
def _cached_property(t: Tracer, self: Value, instance: Value, owner: Value = NONE) -> Value:
    """Without the lock that 3.11 takes: nothing else runs in the middle of a capture."""
    if is_none(instance):
        return self
    name = constant_of(t, get_attribute(t, self, "attrname"), "a cached property's name")
    cache = instance_dict(t, instance)
    if cache is None or name is None:
        return t.graph_break("unsupported-call", "cached_property on an object without __dict__")
    found = cache.get(t, name)
    if found is None:
        found = t.call(get_attribute(t, self, "func"), [instance])
        cache.set(t, name, Const(name), found)
    return found


handles_rows(
    {
        functools.cmp_to_key: lambda t, mycmp: ComparisonKey(mycmp),
        _KEY_TYPE.__call__: lambda t, self, obj: ComparisonKey(self.compare, obj),
        operator.itemgetter: lambda t, item, /, *items: GetterValue(
            operator.itemgetter, [item, *items]
        ),
    }
)


def _register_key_comparison(name: str, symbol: str) -> None:
    @handles(_KEY_TYPE.__dict__[name])
    def compare_keys(t: Tracer, self: ComparisonKey, other: Value, /) -> Value:
        if not isinstance(other, ComparisonKey) or self.obj is None or other.obj is None:
            bare = functools.cmp_to_key(max)
            other_kind = bare if isinstance(other, ComparisonKey) else None
            t.raise_real(error_of(vars(_KEY_TYPE)[name], bare, other_kind))
        return compare(t, symbol, t.call(self.compare, [self.obj, other.obj]), Const(0))


for _symbol, (_name, *_) in COMPARE.items():
    _register_key_comparison(_name, _symbol)


@handles(operator.attrgetter)
def _attrgetter(t: Tracer, name: Value, /, *names: Value) -> Value:
    _check_names(t, operator.attrgetter, name, *names)
    return GetterValue(operator.attrgetter, [name, *names])


def _check_names(t: Tracer, kind: Any, *names: Value) -> None:
    for name in names:
        if not issubclass(name.cls, str):
            refuse(t, kind, name)


@handles(operator.methodcaller)
def _methodcaller(t: Tracer, name: Value, /, *args: Value, **kwargs: Value) -> Value:
    _check_names(t, operator.methodcaller, name)
    return GetterValue(operator.methodcaller, [name, *args], kwargs)


@handles(operator.itemgetter.__call__)
def _get_items(t: Tracer, self: GetterValue, obj: Value, /) -> Value:
    found = [get_item(t, obj, key) for key in self.parts]
    return found[0] if len(found) == 1 else TupleValue(found)


@handles(operator.attrgetter.__call__)
def _get_attributes(t: Tracer, self: GetterValue, obj: Value, /) -> Value:
    found = []
    for part in self.parts:
        value = obj
        for name in str(part.constant()).split("."):
            value = get_attribute(t, value, name)
        found.append(value)
    return found[0] if len(found) == 1 else TupleValue(found)


@handles(operator.methodcaller.__call__)
def _call_method(t: Tracer, self: GetterValue, obj: Value, /) -> Value:
    name, *args = self.parts
    return t.call(get_attribute(t, obj, str(name.constant())), args, self.keywords)


_DISPATCH: Any = functools.singledispatch(len)


@native_code(_DISPATCH.dispatch.__code__)
def _dispatch(
    t: Tracer, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Which implementation of a single-dispatch function takes a class: by its registry."""
    cells = dict(zip(function.code.co_freevars, t.closure(function), strict=True))
    registry, cache = t.cell_content(cells["registry"]), t.cell_content(cells["dispatch_cache"])
    cls, real = real_of_known(args[0]), function.real
    plain = cache is not None and cache.cls is weakref.WeakKeyDictionary
    known = plain and isinstance(cls, type) and real is not None and registry not in t.touched
    if not known or not isinstance(registry, DictValue):
        return t.graph_break("not-constant", "the class on which a function dispatches")
    chosen = for_real(t, real, [cls], {})
    for _, implementation in registry.items(t):
        if getattr(implementation, "real", None) is chosen:
            return implementation
    return t.graph_break("unsupported-call", f"the implementation for {cls.__name__}")
