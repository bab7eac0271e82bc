"""Items and iteration: subscription, length, containment, ``iter``, ``next`` and unpacking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynacap.values.base import MISSING, Const, Known, NotConstant, UserRaise, Value
from dynacap.values.container import ListValue, TupleValue
from dynacap.values.data_model.calls import call_special, constant_operand
from dynacap.values.data_model.operators import compare, is_same, truth
from dynacap.values.function import GeneratorValue
from dynacap.values.iterator import IteratorValue, SequenceIterator
from dynacap.values.object import ExceptionValue

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer


def get_item(t: Tracer, obj: Value, key: Value) -> Value:
    """``obj[key]``."""
    if t.tensors.owns(obj):
        return t.tensors.get_item(t, obj, key)
    if type(obj) is Known and isinstance(obj.value, type):
        return _class_item(t, obj, key)
    if t.lookup(obj.cls, "__getitem__") is MISSING:
        t.raise_error(TypeError, f"{obj.title!r} object is not subscriptable")
    return call_special(t, obj, "__getitem__", [key])


def _class_item(t: Tracer, obj: Known, key: Value) -> Value:
    """``cls[key]``: the metaclass's ``__getitem__`` (enums), then ``__class_getitem__``."""
    if t.lookup(type(obj.value), "__getitem__") is not MISSING:
        return call_special(t, obj, "__getitem__", [key])
    try:
        return t.wrap(obj.value[constant_operand(key)], None)
    except NotConstant:
        t.graph_break("class-item", f"{obj.value.__name__}[{key.describe()}]")
    except TypeError as error:
        return t.raise_real(error)


def set_item(t: Tracer, obj: Value, key: Value, value: Value) -> None:
    """``obj[key] = value``."""
    if t.tensors.owns(obj):
        t.tensors.set_item(t, obj, key, value)
        return
    if t.lookup(obj.cls, "__setitem__") is MISSING:
        t.raise_error(TypeError, f"{obj.title!r} object does not support item assignment")
    call_special(t, obj, "__setitem__", [key, value])


def delete_item(t: Tracer, obj: Value, key: Value) -> None:
    """``del obj[key]``."""
    if t.lookup(obj.cls, "__delitem__") is MISSING:
        sequence = any(t.lookup(obj.cls, name) is not MISSING for name in ("__len__", "__dict__"))
        by_index = sequence and t.lookup(key.cls, "__index__") is not MISSING
        cannot = "doesn't" if by_index else "does not"  # CPython has two words for it
        t.raise_error(TypeError, f"{obj.title!r} object {cannot} support item deletion")
    call_special(t, obj, "__delitem__", [key])


def length(t: Tracer, obj: Value) -> int:
    """``len(obj)``."""
    if t.lookup(obj.cls, "__len__") is MISSING:
        t.raise_error(TypeError, f"object of type {obj.title!r} has no len()")
    found = call_special(t, obj, "__len__", []).constant()
    return int(found)


def contains(t: Tracer, obj: Value, item: Value) -> bool:
    """``item in obj``."""
    if t.lookup(obj.cls, "__contains__") is not MISSING:
        return truth(t, call_special(t, obj, "__contains__", [item]))
    iterator = iterate(t, obj)
    while (found := advance(t, iterator)) is not None:
        if is_same(t, found, item) or truth(t, compare(t, "==", found, item)):
            return True
    return False


def iterate(t: Tracer, obj: Value) -> Value:
    """``iter(obj)``."""
    if isinstance(obj, (IteratorValue, GeneratorValue)):
        return obj
    if t.tensors.owns(obj):
        return t.tensors.iterate(t, obj)
    if t.lookup(obj.cls, "__iter__") is not MISSING:
        found = call_special(t, obj, "__iter__", [])
        if t.lookup(found.cls, "__next__") is MISSING:
            t.raise_error(TypeError, f"iter() returned non-iterator of type {found.title!r}")
        return found
    if t.lookup(obj.cls, "__getitem__") is not MISSING:
        return SequenceIterator(obj)
    return t.raise_error(TypeError, f"{obj.title!r} object is not iterable")


def advance(t: Tracer, iterator: Value) -> Value | None:
    """``next(iterator)``, or None where it is exhausted."""
    if isinstance(iterator, IteratorValue):
        return iterator.next(t)
    try:
        if isinstance(iterator, GeneratorValue):
            return t.resume_generator(iterator, Const(None), None)
        if t.lookup(iterator.cls, "__next__") is MISSING:
            t.raise_error(TypeError, f"{iterator.title!r} object is not an iterator")
        return call_special(t, iterator, "__next__", [])
    except UserRaise as raised:
        if issubclass(raised.exc.cls, StopIteration):
            return None
        raise


def unpack(t: Tracer, obj: Value) -> list[Value]:
    """``[*obj]``: every element, by iterating."""
    if type(obj) in (TupleValue, ListValue) and obj.cls in (tuple, list):
        return [t.force(item) for item in obj.items]  # type: ignore[attr-defined]
    iterator = iterate(t, obj)
    found = []
    while (item := advance(t, iterator)) is not None:
        found.append(item)
    return found


def stop_value(exc: Value) -> Value:
    """The value that a StopIteration carries."""
    if isinstance(exc, ExceptionValue) and exc.args:
        return exc.args[0]
    return Const(None)
