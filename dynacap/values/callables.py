"""Callable objects of ``functools`` and ``operator``: partial, cmp_to_key, getters."""

from __future__ import annotations

import functools
import operator
from dataclasses import field
from typing import Any, ClassVar

from dynacap.guards.source import Attr, Source
from dynacap.values.base import Const, Known, Value, fields
from dynacap.values.build import builds, builds_subclasses, guard_type
from dynacap.values.container import DictValue, Stored, TupleValue
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tracer import Tracer


@fields
class PartialValue(Stored, Rebuildable):
    """``functools.partial``: a function with arguments that come first."""

    cls: type
    func: Value
    args: TupleValue
    keywords: DictValue

    def recipe(self, t: Tracer) -> Recipe:
        """What to call, and on what, for the same object."""
        return make_partial, [Known(self.cls), self.func, self.args, self.keywords]


def make_partial(cls: Any, func: Any, args: Any, keywords: Any) -> Any:
    """A partial of the parts that one is read as."""
    return cls(func, *args, **keywords)


@builds_subclasses(functools.partial)
def build_partial(t: Tracer, real: Any, source: Source | None) -> Value:
    """A partial from outside."""
    guard_type(t, real, source)

    def part(name: str) -> Value:
        return t.wrap(getattr(real, name), Attr(source, name) if source is not None else None)

    args, keywords = part("args"), part("keywords")
    assert isinstance(args, TupleValue)
    assert isinstance(keywords, DictValue)
    return PartialValue(type(real), part("func"), args, keywords, real=real, source=source)


@fields
class GetterValue(Rebuildable):
    """``itemgetter``, ``attrgetter`` or ``methodcaller``: what they were made with."""

    cls: type
    parts: list[Value]
    keywords: dict[str, Value] = field(default_factory=dict)

    def recipe(self, t: Tracer) -> Recipe:
        """What to call, and on what, for the same object."""
        names: list[Value] = [Const(tuple(self.keywords))]
        return make_getter, [Known(self.cls), *names, *self.keywords.values(), *self.parts]


def make_getter(type_: Any, names: tuple[str, ...], *rest: Any) -> Any:
    """A getter of its parts, the keyword arguments' values first."""
    keywords = dict(zip(names, rest, strict=False))
    return type_(*rest[len(names) :], **keywords)


@builds(operator.itemgetter, operator.attrgetter, operator.methodcaller)
def build_getter(t: Tracer, real: Any, source: Source | None) -> Value:
    """A getter from outside is known by identity: it never changes."""
    if source is not None:
        t.guard("IdIs", source, real)
    _, parts = real.__reduce__()[:2]
    return GetterValue(type(real), [t.wrap(part, None) for part in parts], source=source)


@fields
class ComparisonKey(Rebuildable):
    """``functools.cmp_to_key(function)``, or the key that it makes of ``obj``."""

    cls: ClassVar[type] = type(functools.cmp_to_key(max))
    compare: Value
    obj: Value | None = None

    def recipe(self, t: Tracer) -> Recipe:
        """What to call, and on what, for the same object."""
        return make_key, [self.compare] if self.obj is None else [self.compare, self.obj]


def make_key(compare: Any, *obj: Any) -> Any:
    """A comparison key, or what makes one."""
    made = functools.cmp_to_key(compare)
    return made(*obj) if obj else made


@fields
class CacheHit(Value):
    """A call of a function under ``lru_cache`` whose result was in the cache, to be counted."""

    wrapper: Value
    args: list[Value]
    keywords: dict[str, Value]
    real: Any

    @property
    def cls(self) -> type:
        return type(self.real)
