"""Read-only views of mappings (``types.MappingProxyType``)."""

from __future__ import annotations

import gc
import types
from typing import Any, ClassVar

from dynacap.guards.source import Source
from dynacap.values.base import MISSING, Const, Value, fields
from dynacap.values.build import builds
from dynacap.values.data_model import compare, contains, get_attribute, get_item, iterate, length
from dynacap.values.library.handlers import Operation, handles, handles_each
from dynacap.values.library.text import to_repr
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tracer import Tracer

_PROXY: Any = types.MappingProxyType


@fields
class ProxyValue(Rebuildable):
    """A read-only view of a mapping."""

    cls: ClassVar[type] = types.MappingProxyType
    over: Value

    def recipe(self, t: Tracer) -> Recipe:
        return types.MappingProxyType, [self.over]


@builds(types.MappingProxyType)
def build_proxy(t: Tracer, real: Any, source: Source | None) -> Value:
    """A proxy that the entry holds; one from outside does not say where its mapping is."""
    if source is not None:
        t.graph_break("class-dict", "a mapping proxy from outside is read")
    return ProxyValue(t.wrap(gc.get_referents(real)[0], None))


@handles(_PROXY)
def _new(t: Tracer, mapping: Value) -> Value:
    kind = mapping.cls
    if issubclass(kind, (list, tuple)) or t.lookup(kind, "__getitem__") is MISSING:
        t.graph_break("bad-arguments", "a mapping proxy of what is no mapping")
    return ProxyValue(mapping)


_ROWS: dict[str, Operation] = {
    "__len__": lambda t, self, /: Const(length(t, self.over)),
    "__getitem__": lambda t, self, key, /: get_item(t, self.over, key),
    "__contains__": lambda t, self, key, /: Const(contains(t, self.over, key)),
    "__iter__": lambda t, self, /: iterate(t, self.over),
    "__repr__": lambda t, self, /: Const(f"mappingproxy({to_repr(t, self.over)})"),
}
handles_each(_ROWS, _PROXY)


@handles(_PROXY.__eq__)
def _eq(t: Tracer, self: ProxyValue, other: Value, /) -> Value:
    return compare(t, "==", self.over, other.over if isinstance(other, ProxyValue) else other)


def _register_method(name: str) -> None:
    @handles(_PROXY.__dict__[name])
    def method(t: Tracer, self: ProxyValue, /, *args: Value) -> Value:
        return t.call(get_attribute(t, self.over, name), list(args))


for _name in ("get", "keys", "values", "items", "copy", "__reversed__"):
    _register_method(_name)
