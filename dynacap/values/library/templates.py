"""Template strings: what ``t"..."`` makes, with the values in it as they are."""

from __future__ import annotations

import importlib
from typing import Any

from dynacap.values.base import Const, Value, constant_or
from dynacap.values.container import TupleValue
from dynacap.values.data_model.attributes import read_real_field
from dynacap.values.iterator import TupleIterator
from dynacap.values.library.handlers import NONE, handles
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tracer import Tracer

_LETTERS = {None: None, str: "s", repr: "r", ascii: "a"}

try:
    _library: Any = importlib.import_module("string.templatelib")
except ImportError:  # this Python has none, nor the instructions that make them
    _library = None


class InterpolationValue(Rebuildable):
    """One ``{...}`` of a template."""

    __slots__ = ("fields",)

    def __init__(self, value: Value, text: Value, conversion: Any, spec: Value) -> None:
        self.source = None
        letter = Const(_LETTERS[conversion])
        self.fields = dict(value=value, expression=text, conversion=letter, format_spec=spec)

    @property
    def cls(self) -> type:
        kind: type = _library.Interpolation
        return kind

    def recipe(self, t: Tracer) -> Recipe:
        return self.cls, list(self.fields.values())


class TemplateValue(Rebuildable):
    """A template: strings, and between each two of them an interpolation."""

    __slots__ = ("fields",)

    def __init__(self, strings: Value, interpolations: Value) -> None:
        self.source = None
        self.fields = dict(strings=strings, interpolations=interpolations)

    @property
    def cls(self) -> type:
        kind: type = _library.Template
        return kind

    def parts(self) -> list[Value]:
        """The strings and interpolations by turns."""
        strings, between = self.fields["strings"], self.fields["interpolations"]
        assert isinstance(strings, TupleValue)
        assert isinstance(between, TupleValue)
        found: list[Value] = [*strings.items[:1]]
        for interpolation, string in zip(between.items, strings.items[1:], strict=True):
            found += interpolation, string
        return found

    def recipe(self, t: Tracer) -> Recipe:
        return self.cls, self.parts()


def _register_field(owner: type, name: str) -> None:
    raw = owner.__dict__[name]

    @handles(raw)
    def read(t: Tracer, self: Any, /) -> Value:
        if isinstance(self, Rebuildable):
            found: Value = self.fields[name]  # type: ignore[attr-defined]
            return found
        return read_real_field(t, raw, self, self.real) or NONE


def _values(t: Tracer, self: Value, /) -> Value:
    if not isinstance(self, TemplateValue):
        return t.graph_break("foreign-storage", "the values of a template from outside")
    found = [each for each in self.parts() if isinstance(each, InterpolationValue)]
    return TupleValue([each.fields["value"] for each in found])


def _iter(t: Tracer, self: Value, /) -> Value:
    if not isinstance(self, TemplateValue):
        return t.graph_break("foreign-storage", "a loop over a template from outside")
    return TupleIterator(TupleValue([p for p in self.parts() if constant_or(p, None) != ""]))


if _library is not None:
    for _name in ("value", "expression", "conversion", "format_spec"):
        _register_field(_library.Interpolation, _name)
    for _name in ("strings", "interpolations"):
        _register_field(_library.Template, _name)
    handles(_library.Template.__dict__["values"])(_values)
    handles(_library.Template.__iter__)(_iter)
