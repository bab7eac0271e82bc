"""Template strings: what ``t"..."`` makes, with the values in it as they are."""

from __future__ import annotations

import importlib
from typing import Any

from dynacap.values.base import Const, Value, constant_or, fields
from dynacap.values.container import TupleValue
from dynacap.values.data_model.attributes import read_real_field
from dynacap.values.iterator import ListIterator
from dynacap.values.library.handlers import NONE, handles
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tracer import Tracer

_LETTERS = {None: None, str: "s", repr: "r", ascii: "a"}

try:
    _library: Any = importlib.import_module("string.templatelib")
except ImportError:  # this Python has none, nor the instructions that make them
    _library = None


@fields
class TemplateValue(Rebuildable):
    """A template, or an interpolation in one: its fields, and what it is made of."""

    cls: type
    parts: list[Value]
    fields: dict[str, Value]

    def recipe(self, t: Tracer) -> Recipe:
        return self.cls, self.parts


def interpolation(value: Value, text: Value, conversion: Any, spec: Value) -> Value:
    """One ``{...}``."""
    letter = Const(_LETTERS[conversion])
    fields = dict(value=value, expression=text, conversion=letter, format_spec=spec)
    return TemplateValue(_library.Interpolation, list(fields.values()), fields)


def template(strings: TupleValue, between: TupleValue) -> Value:
    """Strings, and between each two of them an interpolation."""
    parts: list[Value] = [*strings.items, *between.items]
    parts[::2], parts[1::2] = strings.items, between.items
    values = TupleValue([each.fields["value"] for each in between.items])  # type: ignore[attr-defined]
    fields: dict[str, Value] = dict(strings=strings, interpolations=between, values=values)
    return TemplateValue(_library.Template, parts, fields)


def _register_field(raw: Any) -> None:
    @handles(raw)
    def read(t: Tracer, self: Any, /) -> Value:
        if isinstance(self, TemplateValue):
            return self.fields[raw.__name__]
        return read_real_field(t, raw, self, self.real) or NONE


def _iter(t: Tracer, self: Value, /) -> Value:
    if not isinstance(self, TemplateValue):
        return t.graph_break("foreign-storage", "a loop over a template from outside")
    return ListIterator(TupleValue([each for each in self.parts if constant_or(each, None) != ""]))


if _library is not None:
    for _name in ("value", "expression", "conversion", "format_spec"):
        _register_field(_library.Interpolation.__dict__[_name])
    for _name in ("strings", "interpolations", "values"):
        _register_field(_library.Template.__dict__[_name])
    handles(_library.Template.__iter__)(_iter)
