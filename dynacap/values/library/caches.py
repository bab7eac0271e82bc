"""Functions under ``functools.lru_cache``: results that are there are handed out, and counted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dynacap.guards import caches
from dynacap.guards.raw import MISSING
from dynacap.guards.source import Const as ConstSource
from dynacap.values.base import Alias, Const, Known, UnreadConst, Value
from dynacap.values.callables import CacheHit
from dynacap.values.container import TupleValue
from dynacap.values.data_model.calls import fold
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.library.handlers import NONE, handles, is_none
from dynacap.values.object import ObjectValue
from dynacap.values.tracer import Tracer


@handles(caches.WRAPPER.__call__)
def _call(t: Tracer, self: Value, /, *args: Value, **kwargs: Value) -> Value:
    real = getattr(self, "real", None)
    if _only_asks(real):
        done = fold(t, real, list(args), kwargs)
        if done is not None:
            return Known(done.value) if type(done) is Alias else done  # the cache keeps one
    found = _remembered(t, self, real, args, kwargs) if real is not None else None
    if found is None:
        name = getattr(real, "__qualname__", "a function")
        return t.graph_break("lru-cache", f"{name} keeps its results in a cache of its own")
    t.touch(CacheHit(self, [*args], kwargs, real))
    return found


@handles(caches.WRAPPER.__get__)
def _bind(t: Tracer, self: Value, obj: Value, owner: Value = NONE, /) -> Value:
    return self if is_none(obj) else BoundMethod(self, obj)


def _only_asks(real: Any) -> bool:
    """Whether a cached function only makes an annotation, or says which packages there are."""
    name = getattr(real, "__name__", "")
    home = getattr(real, "__module__", "")
    if home == "transformers.utils.import_utils":
        return name.startswith(("is_", "get_"))
    return home == "typing"


def _remembered(
    t: Tracer, self: Value, real: Any, args: tuple[Value, ...], kwargs: dict[str, Value]
) -> Value | None:
    """The result that a cache has for operands; None if it has none, or that cannot be told.

    A call that is not in the cache breaks, and is captured anew once it is there.  Where many keys
    are asked for, no more are looked at.
    """
    if t.tensors.history.crowded:
        return None
    given, named = _parts(t, args), _parts(t, kwargs.values())
    if given is None or named is None:
        return None
    key = caches.key_for(real, given, dict(zip(kwargs, named, strict=True)))
    found, kept = caches.look_up(real, key), caches.kept(key)
    source = self.source or ConstSource(real)
    if found is MISSING:
        t.until = (caches.Remembers(source, kept, False),)
    if found is MISSING or found is caches.UNTOLD:
        return None
    t.guard("IdIs", source, real)
    value = t.wrap(found, caches.Remembered(source, kept))
    if type(value) is UnreadConst:
        t.guard("Remembers", source, kept, True)  # the value may never be asked for
    return value


def _parts(t: Tracer, values: Iterable[Value]) -> tuple[Any, ...] | None:
    """What operands are in a key: constants, objects that are equal to themselves alone."""
    forced = list(map(t.force, values))
    if not all(
        isinstance(v, (Const, Known, TupleValue, ObjectValue, FunctionValue)) for v in forced
    ):
        return None
    found = [_part(t, value) for value in forced]
    return None if any(part is MISSING for part in found) else tuple(found)


def _part(t: Tracer, value: Any) -> Any:
    if isinstance(value, (Const, Known)):
        is_nan = value.cls in (float, complex) and value.value != value.value
        return MISSING if is_nan else value.value
    if value.cls is tuple:
        parts = _parts(t, value.items)
        return MISSING if parts is None else parts
    by_identity = value.cls.__hash__ is object.__hash__ and value.cls.__eq__ is object.__eq__
    if value.real is None or not by_identity:
        return MISSING
    if value.source is not None:
        t.guard("IdIs", value.source, value.real)
    return value.real
