"""Symbolic sizes and numbers of one capture, and the guards that they come to.

Torch's ``ShapeEnv`` keeps the symbols: it simplifies what operations make of them, and notes each
question about them that had to be answered for the capture to go on.  At the end those notes are
one guard on the inputs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.utils._sympy.printers import PythonPrinter

from dynacap.errors import UserError
from dynacap.guards.relations import Sizes
from dynacap.guards.source import Source
from dynacap.values.base import Const, NotConstant, Value
from dynacap.values.symbol import SymbolValue

if TYPE_CHECKING:
    from dynacap.guards.guard_set import GuardSet
    from dynacap.values.tensor.fake import FakeWorld
    from dynacap.values.tracer import Tracer

SYMBOLS = (torch.SymInt, torch.SymFloat)
_INT_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}
# Not what a symbolic float would have to round as Python does it: its bounds, its comparisons.
_FLOAT_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_DIVIDES = frozenset({"/", "//", "%"})
_CACHED = [method for method in vars(ShapeEnv).values() if hasattr(method, "cache_clear")]


class Symbols:
    """The symbols of one capture; ``placeholder`` makes the graph's input for one of them."""

    def __init__(self, world: FakeWorld, placeholder: Callable[[SymbolValue, str], Any]) -> None:
        self._world = world
        self._placeholder = placeholder
        self._env = ShapeEnv(duck_shape=False)
        world.use_symbols(self._env)
        self._by_expression: dict[Any, SymbolValue] = {}
        self._places: dict[Any, tuple[Source, str]] = {}  # symbol -> where its value stands
        self._checks: list[tuple[Source, str, str, Any]] = []  # source, what, relation, a size
        self._marked: list[tuple[str, Any]] = []

    # -- making ----------------------------------------------------------------------------------
    def fake(self, real: torch.Tensor, source: Source, dims: frozenset[int]) -> torch.Tensor:
        """The fake of a tensor from outside, some of whose sizes are symbolic."""
        context: Any = StatelessSymbolicContext(
            dynamic_sizes=[
                DimDynamic.DYNAMIC if dim in dims else DimDynamic.STATIC
                for dim in range(real.dim())
            ],
            constraint_sizes=[None] * real.dim(),
        )
        made = self._world.of_symbolic(real, self._env, ConstantSource(source.name()), context)
        self._register(made, source, dims)
        self._keep_ranges(real, made, source)
        return made

    def _register(self, made: torch.Tensor, source: Source, dims: frozenset[int]) -> None:
        for dim in sorted(dims):
            self._enter(made.shape[dim], source, f".shape[{dim}]")
        strides = made.stride()
        for dim, stride in enumerate(strides):
            if type(stride) is not torch.SymInt:
                continue
            symbol = stride.node.expr
            if symbol.is_Symbol and symbol not in self._places:
                self._enter(stride, source, f".stride({dim})")
            else:
                self._checks.append((source, f".stride({dim})", "==", stride))
        offset = made.storage_offset()
        if type(offset) is torch.SymInt and offset.node.expr.is_Symbol:
            self._places.setdefault(offset.node.expr, (source, ".storage_offset()"))

    def _enter(self, size: Any, source: Source, text: str) -> None:
        symbol = size.node.expr
        self._places[symbol] = (source, text)
        self._by_expression[symbol] = SymbolValue(
            size, self.settle, place=self._place, text=(source, text)
        )

    def _keep_ranges(self, real: torch.Tensor, made: torch.Tensor, source: Source) -> None:
        for dim in sorted(getattr(real, "_dynamo_dynamic_indices", ())):
            self._marked.append((f"{source.name()}.shape[{dim}]", made.shape[dim]))
        for limits in getattr(real, "_dynamo_dynamic_range", ()):
            size = made.shape[limits.dim]
            for bound, holds in ((limits.min, operator.ge), (limits.max, operator.le)):
                if bound is not None and not holds(size, bound):
                    raise UserError(
                        f"{source.name()}.shape[{limits.dim}] was marked dynamic between"
                        f" {limits.min} and {limits.max}, and is {real.shape[limits.dim]}"
                    )

    def number(self, real: int | float, source: Source) -> SymbolValue:
        """The value of a number from outside that varies."""
        where = ConstantSource(source.name())
        symbol = self._env.create_unspecified_symbol(
            real, source=where, dynamic_dim=DimDynamic.DYNAMIC
        )
        sym: Any
        if type(real) is int:
            sym = self._env.create_symintnode(symbol, hint=real, source=where)
        else:
            sym = self._env.create_symfloatnode(symbol, hint=real, source=where)
        self._places[symbol] = (source, "")
        made = SymbolValue(sym, self.settle, place=self._place, source=source, text=(source, ""))
        self._by_expression[symbol] = made
        return made

    def _place(self, value: SymbolValue) -> Any:
        assert value.text is not None
        source, text = value.text
        return self._placeholder(value, source.name() + text)

    def value(self, sym: Any, node: Callable[[], Any]) -> Value:
        """The value of a number that an operation gave; ``node`` makes the node that gives it."""
        expression = sym.node.expr
        if expression.is_number:
            return Const(float(expression) if type(sym) is torch.SymFloat else int(expression))
        known = self._by_expression.get(expression)
        if known is None or type(known.sym) is not type(sym):
            known = SymbolValue(sym, self.settle, node=node())
            self._by_expression[expression] = known
        return known

    def settle(self, value: SymbolValue) -> Any:
        """Fix a number to what it is now."""
        try:
            return value.cls(value.sym)
        except GuardOnDataDependentSymNode:
            raise NotConstant(value) from None

    # -- operators -------------------------------------------------------------------------------
    def arithmetic(self, t: Tracer, symbol: str, left: Value, right: Value) -> Value | None:
        """``left symbol right`` with a symbol among them; None if it has to be fixed."""
        ints = left.cls is int and right.cls is int
        if not ints and not {left.cls, right.cls} <= {int, float}:
            return None
        function = (_INT_OPERATORS if ints else _FLOAT_OPERATORS).get(symbol)
        if function is None:
            return None
        if symbol in _DIVIDES and not self.compare(operator.ne, right, Const(0)):
            return None
        return t.tensors.call(t, function, [left, right], {})

    def compare(self, real: Callable[..., Any], left: Value, right: Value) -> bool | None:
        """A comparison, answered for this capture and guarded; None if it has to be fixed."""
        if left.cls is not int or right.cls is not int:
            return None
        try:
            return bool(real(_operand(left), _operand(right)))
        except GuardOnDataDependentSymNode:
            raise NotConstant(left if isinstance(left, SymbolValue) else right) from None

    def release(self) -> None:
        """Have torch forget the symbols, which it keeps as keys of what it has worked out."""
        for cached in _CACHED:
            cached.cache_clear()

    # -- guards ----------------------------------------------------------------------------------
    def add_guards(self, guards: GuardSet) -> None:
        """Add the guard on all that was found out about the symbols."""
        for name, size in self._marked:
            if size.node.expr.is_number:
                raise UserError(
                    f"{name} was marked dynamic, but the program works for {size.node.expr} alone;"
                    " mark it static, or see which operation or comparison fixes it"
                    " (DYNACAP_LOGS=guards)"
                )
        conditions = _Conditions(self._places)
        for symbol, limits in self._env.var_to_range.items():
            if symbol in self._places and symbol.name[0] != "z":
                conditions.add_range(symbol, limits)
        for guard in self._env.guards:
            conditions.add(guard.expr)
        for source, text, relation, size in self._checks:
            conditions.add_relation(source, text, relation, size.node.expr)
        conditions.finish(guards)


class _Conditions:
    """Conditions on symbols as Python text over the objects that they belong to."""

    def __init__(self, places: dict[Any, tuple[Source, str]]) -> None:
        self._places = places
        self._sources: dict[Source, str] = {}
        self._texts: dict[str, str] = {}  # what is checked -> the same in the user's words
        self._print = PythonPrinter().doprint

    def _variable(self, source: Source) -> str:
        return self._sources.setdefault(source, f"v{len(self._sources)}")

    def _write(self, expression: Any) -> tuple[str, str]:
        printed = self._print(expression)
        places = {symbol.name: self._places[symbol] for symbol in expression.free_symbols}

        def replaced(by: Callable[[Source], str]) -> str:
            def write(match: re.Match[str]) -> str:
                source, attribute = places.get(match[0], (None, ""))
                return match[0] if source is None else by(source) + attribute

            return re.sub(r"\w+", write, printed)

        return replaced(self._variable), replaced(lambda source: source.name())

    def _can_write(self, expression: Any) -> bool:
        return all(symbol in self._places for symbol in expression.free_symbols)

    def add(self, condition: Any) -> None:
        if condition.free_symbols and self._can_write(condition):
            text, told = self._write(condition)
            self._texts[text] = told

    def add_range(self, symbol: Any, limits: Any) -> None:
        if limits.lower == limits.upper:
            return  # a condition says so
        text, told = self._write(symbol)
        for bound, sign in ((limits.lower, ">="), (limits.upper, "<=")):
            if bound.is_finite and bound.is_Integer:
                self._texts[f"{text} {sign} {bound}"] = f"{told} {sign} {bound}"

    def add_relation(self, source: Source, attribute: str, relation: str, size: Any) -> None:
        text, told = self._write(size)
        left = self._variable(source) + attribute
        self._texts[f"{left} {relation} {text}"] = f"{source.name()}{attribute} {relation} {told}"

    def finish(self, guards: GuardSet) -> None:
        if self._texts:
            guards.add(Sizes(tuple(self._sources), tuple(self._texts.items()), origin=None))


def _operand(value: Value) -> Any:
    return value.sym if isinstance(value, SymbolValue) else value.constant()
