"""Items and iteration: subscription, length, containment, ``iter``, ``next`` and unpacking."""

from __future__ import annotations

import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

from dynacap.env import TUPLES_ASK_LENGTHS
from dynacap.values.base import MISSING, Const, Known, NotConstant, Value, or_none
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.data_model.attributes import get_attribute
from dynacap.values.data_model.calls import C_METHODS, call_special, compute, constant_operand, made
from dynacap.values.data_model.operators import compare, is_same, truth
from dynacap.values.data_model.refusals import refuse
from dynacap.values.function import GeneratorValue
from dynacap.values.iterator import IteratorValue, SequenceIterator
from dynacap.values.object import ExceptionValue
from dynacap.values.recipe import Made
from dynacap.values.tracer import Tracer


def get_item(t: Tracer, obj: Value, key: Value) -> Value:
    """``obj[key]``."""
    if t.tensors.owns(obj):
        return t.tensors.get_item(t, obj, key)
    if type(obj) is Known and isinstance(obj.value, type):
        return _class_item(t, obj, key)
    if t.lookup(obj.cls, "__getitem__") is MISSING:
        refuse(t, operator.getitem, obj, key)
    return call_special(t, obj, "__getitem__", [key])


_LENGTHS = ("__len__", "__length_hint__")
_MUTABLE = (list, dict, set)  # the very objects would have to be in it


def _class_item(t: Tracer, obj: Known, key: Value) -> Value:
    """``cls[key]``: the metaclass's ``__getitem__`` (enums), then ``__class_getitem__``."""
    if t.lookup(type(obj.value), "__getitem__") is not MISSING:
        return call_special(t, obj, "__getitem__", [key])
    own = t.lookup(obj.value, "__class_getitem__")
    if isinstance(own, classmethod) and _is_users(own.__func__):
        return t.call(get_attribute(t, obj, "__class_getitem__"), [key])
    try:
        real = obj.value[constant_operand(key)]
        if not any(type(arg) in _MUTABLE for arg in getattr(real, "__args__", ())):
            return made(t, real)
    except NotConstant:
        if type(own) is types.ClassMethodDescriptorType and _has_parameters(key):
            return Made(types.GenericAlias, operator.getitem, [obj, key])
    except Exception as error:
        t.raise_real(error)
    return t.graph_break("class-item", f"{obj.value.__name__}[{key.describe()}]")


def _has_parameters(key: Value) -> bool:
    """Whether an alias is of type parameters made inside, and of what is known."""
    parts = key.items if isinstance(key, TupleValue) else [key]
    opaque = [part for part in parts if not isinstance(part, (Const, Known))]
    return all(isinstance(part, Made) for part in opaque)


def _is_users(function: Any) -> bool:
    return isinstance(function, types.FunctionType) and function.__module__ != "typing"


def set_item(t: Tracer, obj: Value, key: Value, value: Value) -> None:
    """``obj[key] = value``."""
    if t.tensors.owns(obj):
        t.tensors.set_item(t, obj, key, value)
        return
    if t.lookup(obj.cls, "__setitem__") is MISSING:
        refuse(t, operator.setitem, obj, key, value)
    call_special(t, obj, "__setitem__", [key, value])


def delete_item(t: Tracer, obj: Value, key: Value) -> None:
    """``del obj[key]``."""
    if t.lookup(obj.cls, "__delitem__") is MISSING:
        refuse(t, operator.delitem, obj, key)
    call_special(t, obj, "__delitem__", [key])


def length(t: Tracer, obj: Value) -> int:
    """``len(obj)``."""
    if t.lookup(obj.cls, "__len__") is MISSING:
        refuse(t, len, obj)
    if isinstance(t.lookup(obj.cls, "__len__"), types.FunctionType):
        return int(compute(t, len, [obj], {}, ("__len__",)).constant())
    return int(call_special(t, obj, "__len__", []).constant())


def contains(t: Tracer, obj: Value, item: Value) -> bool:
    """``item in obj``."""
    own = t.lookup(obj.cls, "__contains__")
    if own is None:
        t.raise_error(TypeError, f"{obj.cls.__name__!r} object is not a container")
    if own is not MISSING:
        return truth(t, call_special(t, obj, "__contains__", [item]))
    if t.lookup(obj.cls, "__iter__") is None or not is_iterable(t, obj):
        refuse(t, operator.contains, obj, item)
    for found in walk(t, obj):
        if is_same(t, found, item) or truth(t, compare(t, "==", found, item)):
            return True
    return False


def iterate(t: Tracer, obj: Value) -> Value:
    """``iter(obj)``."""
    if isinstance(obj, IteratorValue) or obj.cls is types.GeneratorType:
        return obj
    if t.tensors.owns(obj):
        return t.tensors.iterate(t, obj)
    own = t.lookup(obj.cls, "__iter__")
    if own is None or not is_iterable(t, obj):
        refuse(t, iter, obj)
    if own is not MISSING:
        found = call_special(t, obj, "__iter__", [])
        if t.lookup(found.cls, "__next__") is MISSING:
            t.raise_error(TypeError, f"iter() returned non-iterator of type {found.title!r}")
        return found
    if isinstance(obj, Known) and not isinstance(
        t.lookup(obj.cls, "__getitem__"), types.FunctionType
    ):
        refuse(t, iter, obj)  # by a key of some kind
    return SequenceIterator(obj)


def is_iterable(t: Tracer, obj: Value) -> bool:
    """Whether ``iter(obj)`` has something to ask, be it None."""
    return any(t.lookup(obj.cls, name) is not MISSING for name in ("__iter__", "__getitem__"))


def advance(t: Tracer, iterator: Value) -> Value | None:
    """``next(iterator)``, or None where it is exhausted."""
    if isinstance(iterator, IteratorValue):
        return iterator.next(t)
    if isinstance(iterator, GeneratorValue):
        return or_none(StopIteration, lambda: t.resume_generator(iterator, Const(None), None))
    if t.lookup(iterator.cls, "__next__") is MISSING:
        refuse(t, next, iterator)
    return or_none(StopIteration, lambda: call_special(t, iterator, "__next__", []))


def walk(t: Tracer, obj: Value) -> Iterator[Value]:
    """Each element that iterating over an object gives, when it is asked for."""
    iterator = iterate(t, obj)
    while (found := advance(t, iterator)) is not None:
        yield found


def unpack(t: Tracer, obj: Value) -> list[Value]:
    """``[*obj]``: every element, by iterating."""
    if type(obj) in (TupleValue, ListValue) and obj.cls in (tuple, list):
        return [t.force(item) for item in obj.items]  # type: ignore[attr-defined]
    iterator = iterate(t, obj)
    ask_length(t, obj)
    return drain(t, iterator)


def as_tuple(t: Tracer, obj: Value) -> list[Value]:
    """``tuple(obj)``: the same, but some Pythons do not ask how much there will be."""
    shown = TUPLES_ASK_LENGTHS or obj.cls in (tuple, list)
    return unpack(t, obj) if shown else drain(t, iterate(t, obj))


def as_sequence(t: Tracer, obj: Value) -> list[Value]:
    """What C lists that wants a sequence: the iterator is asked, for itself and its length."""
    return unpack(t, obj if obj.cls in (tuple, list) else iterate(t, obj))


def drain(t: Tracer, iterator: Value, most: int = sys.maxsize) -> list[Value]:
    """What an iterator has left, but not more than so many."""
    found: list[Value] = []
    while len(found) < most and (item := advance(t, iterator)) is not None:
        found.append(item)
    return found


def ask_length(t: Tracer, obj: Value) -> None:
    """What fills a list or tuple asks how much there will be; C's answer shows nothing."""
    asked = [t.lookup(obj.cls, name) for name in _LENGTHS]
    if any(raw is not MISSING and not isinstance(raw, C_METHODS) for raw in asked):
        compute(t, operator.length_hint, [obj], {}, _LENGTHS)


def stop_value(exc: Value) -> Value:
    """The value that a StopIteration carries."""
    if isinstance(exc, ExceptionValue) and exc.args:
        return exc.args[0]
    return Const(None)
