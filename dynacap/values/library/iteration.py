"""Built-in functions that iterate."""

from __future__ import annotations

import functools
import types
from typing import Any

from dynacap.values import data_model as dm, iterator_builtins as its
from dynacap.values.base import MISSING, Const, Value, or_none
from dynacap.values.function import GeneratorValue
from dynacap.values.iterator import IteratorValue, ReversedSequenceIterator
from dynacap.values.library.handlers import handles, index_of, is_none, raise_with
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of


@handles(len)
def _len(t: Tracer, obj: Value, /) -> Value:
    if t.tensors.owns(obj):
        return dm.call_special(t, obj, "__len__", [])
    return Const(dm.length(t, obj))


@handles(iter)
def _iter(t: Tracer, obj: Value, sentinel: Value | None = None, /) -> Value:
    if sentinel is None:
        return dm.iterate(t, obj)
    if t.lookup(obj.cls, "__call__") is MISSING:
        t.raise_real(error_of(iter, None, None))
    return its.CallIterator(obj, sentinel)


@handles(next)
def next_(t: Tracer, iterator: Value, default: Value | None = None, /) -> Value:
    """``next``: a StopIteration of a generator or of a user's class keeps its value."""
    if default is None:
        return _next(t, iterator)
    return or_none(StopIteration, lambda: _next(t, iterator)) or default


def _next(t: Tracer, iterator: Value) -> Value:
    if isinstance(iterator, GeneratorValue) and iterator.cls is types.GeneratorType:
        return t.resume_generator(iterator, Const(None), None)
    if isinstance(iterator, IteratorValue):
        found = iterator.next(t)
        return raise_with(t, StopIteration) if found is None else found
    raw = t.lookup(iterator.cls, "__next__")
    if raw is MISSING:
        t.raise_error(TypeError, f"{iterator.title!r} object is not an iterator")
    if isinstance(raw, types.WrapperDescriptorType):
        t.graph_break("outside-iterator", f"a {iterator.cls.__name__} made elsewhere is advanced")
    return dm.call_special(t, iterator, "__next__", [])


@handles(enumerate)
def _enumerate(t: Tracer, iterable: Value, start: Value = Const(0)) -> Value:
    first = Const(index_of(t, start))
    return its.EnumerateIterator(dm.iterate(t, iterable), first)


@handles(zip)
def _zip(t: Tracer, /, *iterables: Value, strict: Value = Const(False)) -> Value:
    return its.ZipIterator([dm.iterate(t, one) for one in iterables], dm.truth(t, strict))


@handles(map)
def _map(t: Tracer, function: Value, /, *iterables: Value) -> Value:
    if not iterables:
        t.raise_error(TypeError, "map() must have at least two arguments.")
    return its.MapIterator(function, [dm.iterate(t, one) for one in iterables])


handles(filter)(
    lambda t, function, iterable, /: its.FilterIterator(function, dm.iterate(t, iterable))
)


@handles(reversed)
def _reversed(t: Tracer, obj: Value, /) -> Value:
    own = t.lookup(obj.cls, "__reversed__")
    if own is None:
        t.raise_error(TypeError, f"{obj.title!r} object is not reversible")
    if own is not MISSING:
        return dm.call_special(t, obj, "__reversed__", [])
    if t.lookup(obj.cls, "__getitem__") is MISSING or t.lookup(obj.cls, "__len__") is MISSING:
        t.raise_error(TypeError, f"{obj.title!r} object is not reversible")
    return ReversedSequenceIterator(obj, dm.length(t, obj) - 1)


@handles(sum)
def _sum(t: Tracer, iterable: Value, /, start: Value = Const(0)) -> Value:
    iterator = dm.iterate(t, iterable)
    if start.cls in (str, bytes):
        kind, empty = ("strings", "''") if start.cls is str else ("bytes", "b''")
        t.raise_error(TypeError, f"sum() can't sum {kind} [use {empty}.join(seq) instead]")
    numbers: list[Any] = []  # summed for real: from 3.12 on, sum() of floats compensates
    rest: Value | None = None
    while (item := dm.advance(t, iterator)) is not None:
        number = _plain_number(item)
        if number is None or _plain_number(start) is None:
            rest = item
            break
        numbers.append(number)
    total = start if not numbers else Const(sum(numbers, start.constant()))
    while rest is not None:
        total = dm.binary_op(t, "+", total, rest)
        rest = dm.advance(t, iterator)
    return total


def _plain_number(value: Value) -> Any:
    return (
        value.value
        if isinstance(value, Const) and type(value.value) in (int, float, bool)
        else None
    )


def _register_quantifier(function: Any, decisive: bool) -> None:
    @handles(function)
    def quantify(t: Tracer, iterable: Value, /) -> Value:
        found = any(dm.truth(t, item) is decisive for item in dm.walk(t, iterable))
        return Const(found is decisive)


_register_quantifier(any, True)
_register_quantifier(all, False)


def _register_extreme(function: Any, symbol: str) -> None:
    @handles(function)
    def extreme(
        t: Tracer,
        first: Value,
        /,
        *others: Value,
        key: Value = Const(None),
        default: Value | None = None,
    ) -> Value | None:
        if others and default is not None:
            name = function.__name__
            t.raise_error(
                TypeError,
                f"Cannot specify a default for {name}() with multiple positional arguments",
            )
        items = [first, *others] if others else its.elements(t, first)
        if not items and default is None:
            t.raise_real(error_of(function, ()))
        return _best(t, symbol, items, key) if items else default


def _best(t: Tracer, symbol: str, items: list[Value], key: Value) -> Value:
    best, best_rank = items[0], _rank(t, items[0], key)
    for item in items[1:]:
        rank = _rank(t, item, key)
        if dm.truth(t, dm.compare(t, symbol, rank, best_rank)):
            best, best_rank = item, rank
    return best


def _rank(t: Tracer, item: Value, key: Value) -> Value:
    return item if is_none(key) else t.call(key, [item])


_register_extreme(min, "<")
_register_extreme(max, ">")


@handles(functools.reduce)
def _reduce(t: Tracer, function: Value, iterable: Value, initial: Value | None = None, /) -> Value:
    iterator = dm.iterate(t, iterable)
    total = dm.advance(t, iterator) if initial is None else initial
    if total is None:
        t.raise_error(TypeError, "reduce() of empty iterable with no initial value")
    while (item := dm.advance(t, iterator)) is not None:
        total = t.call(function, [total, item])
    return total
