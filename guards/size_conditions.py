"""Conditions on symbolic sizes and numbers, from torch's algebra to one guard on the inputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynacap.errors import SkipFrame
from dynacap.guards.number_text import Text
from dynacap.guards.relations import Sizes
from dynacap.guards.source import Source
from dynacap.guards.tensor_source import TensorNumber

if TYPE_CHECKING:
    from dynacap.guards.guard_set import GuardSet


class SizeConditions:
    """Conditions on symbols as Python text over the objects that they belong to.

    ``places`` says where each symbol's value stands, ``write`` writes an expression as Python.
    """

    def __init__(self, places: dict[Any, Source], write: Callable[[Any], str]) -> None:
        self._places = places
        self._sources: dict[Source, str] = {}
        self._texts: dict[str, str] = {}  # what is checked -> the same in the user's words
        self._print = write

    def _variable(self, source: Source) -> str:
        """How the condition writes what a source gives."""
        if isinstance(source, TensorNumber):
            return self._variable(source.base) + source.text
        return self._sources.setdefault(source, f"v{len(self._sources)}")

    def float_of(self, source: Source) -> Text:
        """What stands at a source that gives a float; as such it is marked for ``size_program``."""
        return f"{self._variable(source)}.real", source.name()

    def size_of(self, expression: Any) -> Text | None:
        """A size or int as torch's algebra has it; None if no source gives a symbol in it."""
        if not expression.free_symbols <= self._places.keys():
            return None
        checked, told = self._write(expression)
        return f"({checked})", f"({told})" if " " in told else told

    def _write(self, expression: Any) -> Text:
        printed = self._print(expression)
        places = {symbol.name: self._places[symbol] for symbol in expression.free_symbols}

        def replaced(by: Callable[[Source], str]) -> str:
            def write(match: re.Match[str]) -> str:
                source = places.get(match[0])
                return match[0] if source is None else by(source)

            return re.sub(r"\w+", write, printed)

        return replaced(self._variable), replaced(lambda source: source.name())

    def add_text(self, condition: Text) -> None:
        """A condition on floats."""
        checked, told = condition
        self._texts[checked] = told

    def add(self, condition: Any) -> None:
        """A condition that has to hold."""
        for symbol in condition.free_symbols:
            if symbol not in self._places:
                raise SkipFrame("symbol", f"no guard can say {condition}")
        if condition.free_symbols:
            self.add_text(self._write(condition))

    def add_range(self, symbol: Any, limits: Any) -> None:
        """The range that a symbol lies in."""
        if limits.lower == limits.upper:
            return  # a condition says so
        text, told = self._write(symbol)
        for bound, sign in ((limits.lower, ">="), (limits.upper, "<=")):
            if bound.is_finite and bound.is_Integer:
                self._texts[f"{text} {sign} {bound}"] = f"{told} {sign} {bound}"

    def add_equal(self, source: Source, size: Any) -> None:
        """What stands at a source is this size."""
        text, told = self._write(size)
        self._texts[f"{self._variable(source)} == {text}"] = f"{source.name()} == {told}"

    def finish(self, guards: GuardSet) -> None:
        """Add the guard that all of them come to."""
        if self._texts:
            guards.add(Sizes(tuple(self._sources), tuple(self._texts.items()), origin=None))
