"""Views of dicts: ``keys()``, ``values()``, ``items()``; the first and last act as sets."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from dynacap.guards.iterators import VIEWS, Container, container
from dynacap.guards.source import Source
from dynacap.values.base import Const, Value
from dynacap.values.build import builds, guard_type
from dynacap.values.container import DictValue, DictView, SetValue, TupleValue
from dynacap.values.iterator import walks
from dynacap.values.iterator_builtins import elements
from dynacap.values.library import sets
from dynacap.values.library.handlers import (
    Operation,
    handles,
    handles_both,
    handles_each,
    methods,
    not_implemented,
)
from dynacap.values.library.sequences import same_or_equal
from dynacap.values.tracer import Tracer


@builds(*VIEWS)
def build_view(t: Tracer, real: Any, source: Source | None) -> Value:
    """A view from outside."""
    guard_type(t, real, source)
    over: Any = t.wrap(container(real), source and Container(source))
    return DictView(over, type(real).__name__.partition("_")[2], source=source)


def _register(kind: str) -> None:
    @handles(*methods(kind, dict, OrderedDict))
    def view(t: Tracer, self: DictValue, /) -> Value:
        return DictView(self, kind)


for _kind in ("keys", "values", "items"):
    _register(_kind)


def view_contains(t: Tracer, self: DictView, item: Value) -> bool:
    """``item in view`` for keys and items."""
    if self.kind == "keys":
        return self.over.get(t, t.key_of(item)) is not None
    if not isinstance(item, TupleValue) or len(item.items) != 2:
        return False
    found = self.over.get(t, t.key_of(t.force_item(item.items, 0)))
    return found is not None and same_or_equal(t, found, t.force_item(item.items, 1))


def _register_set_operation(
    operation: Callable[..., Any], combine: Callable[[sets.Keyed, sets.Keyed], sets.Keyed]
) -> None:
    def combined(t: Tracer, left: Value, right: Value, /) -> Value:
        """What a real set operation gives for views, and for other iterables beside them."""
        operands = [sets.walked_once(t, left), sets.walked_once(t, right)]
        keyed = combine(*(sets.keyed_of(t, each) for each in operands))
        return sets.made_by(t, operation, operands, keyed)

    handles_both(operation.__name__.strip("_"), combined, *VIEWS)


_register_set_operation(operator.and_, sets.intersect)
_register_set_operation(operator.sub, sets.subtract)
_register_set_operation(operator.or_, sets.unite)
_register_set_operation(operator.xor, sets.differ)


_ROWS: dict[str, Operation] = {
    "__len__": lambda t, self, /: Const(len(self.over.keys(t))),
    "__iter__": lambda t, self, /: walks(t, self.over, self.kind),
    "__reversed__": lambda t, self, /: walks(t, self.over, self.kind, backwards=True),
    "__contains__": lambda t, self, item, /: Const(view_contains(t, self, item)),
    "isdisjoint": lambda t, self, other, /: Const(
        not any(view_contains(t, self, item) for item in elements(t, other))
    ),
}
handles_each(_ROWS, *VIEWS)


def _register_relation(name: str) -> None:
    @handles(*methods(name, *VIEWS))
    def relate(t: Tracer, self: DictView, other: Value, /) -> Value:
        if isinstance(other, DictView) and other.kind != "values":
            right = sets.keyed_of(t, other)
        elif isinstance(other, SetValue):
            right = other.items
        else:
            return not_implemented()
        return Const(sets.RELATIONS[name](set(sets.keyed_of(t, self)), set(right)))


for _name in sets.RELATIONS:
    if _name.startswith("__"):
        _register_relation(_name)
