"""Symbolic sizes and numbers of one capture, and the guards that they come to.

Torch's ``ShapeEnv`` keeps the symbols: it simplifies what operations make of them, and notes each
question about them that had to be answered for the capture to go on.  At the end those notes are
one guard on the inputs.

That algebra is exact for ints and their quotients.  For other floats it is not what Python
computes: each is a symbol of its own, which knows how Python computes it from its operands, and
what is asked about it is guarded by computing it again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    StatelessSymbolicContext,
    _advise_is_size,
    expect_true,
)
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.symbol import SymT, symbol_is_type

from dynacap.backends.fakes.shape_env import UnplacedShapeEnv
from dynacap.config import config
from dynacap.errors import UserError
from dynacap.guards import float_functions
from dynacap.guards.kinds import ConstEq
from dynacap.guards.number_text import Text, compared, filled, literal
from dynacap.guards.size_conditions import SizeConditions
from dynacap.guards.source import Source
from dynacap.guards.tensor_source import OFFSET, SIZE, STRIDE, TensorNumber
from dynacap.values.base import Const, NotConstant, Value
from dynacap.values.data_model.operators import truth
from dynacap.values.natives import native
from dynacap.values.symbol import SymbolValue
from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.backends.fakes.world import FakeWorld
    from dynacap.guards.guard_set import GuardSet

_INT_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_FLOAT_OPERATORS = _INT_OPERATORS | {"/": operator.truediv, "**": operator.pow}
_DIVIDES = frozenset({"/", "//", "%"})
_CACHED = [method for method in vars(ShapeEnv).values() if hasattr(method, "cache_clear")]


class Symbols:
    """The symbols of one capture; ``placeholder`` makes the graph's input for one of them.

    ``floats``: whether the backend takes floats that are no quotients of sizes.
    """

    def __init__(
        self, world: FakeWorld, placeholder: Callable[[SymbolValue, str], Any], floats: bool
    ) -> None:
        self._allows_floats = floats
        self._world = world
        self._placeholder = placeholder
        self._env = UnplacedShapeEnv(
            duck_shape=False,
            allow_scalar_outputs=config.capture_scalar_outputs,
            allow_dynamic_output_shape_ops=config.capture_dynamic_output_shape_ops,
        )
        world.use_symbols(self._env)
        self._by_expression: dict[Any, SymbolValue] = {}
        self._places: dict[Any, Source] = {}  # symbol -> where its value stands
        self._checks: list[tuple[Source, Any]] = []  # a number, and the same as a size
        self._floats: dict[Any, SymbolValue] = {}  # by their symbols
        self._fixed: dict[Source, float] = {}  # those from outside that were asked for
        self._marked: list[tuple[str, Any]] = []
        self._conditions = SizeConditions(self._places, PythonPrinter().doprint)
        self._texts: dict[SymbolValue, Text | None] = {}

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
        made = self._world.of_symbolic(real, self._env, self._where(source), context)
        self._register(made, source, dims)
        if not all(map(self._is_placed, self._env.var_to_range)):
            return self._world.of(real)  # a view: its base has sizes that no guard can reach
        self._keep_ranges(real, made, source)
        return made

    def _where(self, source: Source) -> Any:
        """A name for torch; one that two sources share would be one symbol."""
        return ConstantSource(f"{source.name()} ({len(self._env.var_to_range)})")

    def _is_placed(self, symbol: Any) -> bool:
        return symbol in self._places or symbol in self._floats or _is_unbacked(symbol)

    def _register(self, made: torch.Tensor, source: Source, dims: frozenset[int]) -> None:
        for dim in sorted(dims):
            if type(made.shape[dim]) is torch.SymInt:  # no view of what is known already
                self._enter(made.shape[dim], TensorNumber(source, SIZE, dim))
        strides = made.stride()
        for dim, stride in enumerate(strides):
            if type(stride) is not torch.SymInt:
                continue
            symbol = stride.node.expr
            if symbol.is_Symbol and symbol not in self._places:
                self._enter(stride, TensorNumber(source, STRIDE, dim))
            else:
                self._checks.append((TensorNumber(source, STRIDE, dim), stride))
        offset = made.storage_offset()
        if type(offset) is torch.SymInt and offset.node.expr.is_Symbol:
            self._places.setdefault(offset.node.expr, TensorNumber(source, OFFSET))

    def _enter(self, size: Any, source: Source) -> None:
        symbol = size.node.expr
        self._places[symbol] = source
        self._by_expression[symbol] = SymbolValue(
            size, self.settle, place=self._place, source=source
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
        where = self._where(source)
        symbol = self._env.create_unspecified_symbol(
            real, source=where, dynamic_dim=DimDynamic.DYNAMIC
        )
        sym: Any
        if type(real) is int:
            sym = self._env.create_symintnode(symbol, hint=real, source=where)
        else:
            sym = self._env.create_symfloatnode(symbol, hint=real, source=where)
        made = SymbolValue(sym, self.settle, place=self._place, source=source)
        self._by_expression[symbol] = made
        if type(real) is int:
            self._places[symbol] = source
        else:
            self._floats[symbol] = made
        return made

    def _place(self, value: SymbolValue) -> Any:
        assert value.source is not None
        return self._placeholder(value, value.source.name())

    def value(self, sym: Any, node: Callable[[], Any]) -> Value:
        """The value of a number that an operation gave; ``node`` makes the node that gives it."""
        expression = sym.node.expr
        if type(sym) is torch.SymFloat and _is_unbacked(expression):
            self._floats.setdefault(expression, SymbolValue(sym, self.settle, node=node()))
            return self._floats[expression]
        is_quotient = expression.func.__name__ == "IntTrueDiv"
        if type(sym) is torch.SymFloat and not is_quotient and expression not in self._floats:
            raise NotConstant(Const(None))  # rounded as torch's algebra would have it
        if expression.is_number:
            return Const(int(expression))
        known = self._by_expression.get(expression)
        if known is None:
            known = self._by_expression[expression] = SymbolValue(sym, self.settle, node=node())
        return known

    def settle(self, value: SymbolValue) -> Any:
        """Fix a number to what it is now."""
        if value.hint is None:
            raise NotConstant(value)
        if value.cls is float:
            for operand in value.operands:
                operand.constant()
            if value.source is not None:
                self._fixed[value.source] = value.hint
            return value.hint
        return int(value.sym)

    # -- operators -------------------------------------------------------------------------------
    def arithmetic(self, t: Tracer, symbol: str, left: Value, right: Value) -> Value | None:
        """``left symbol right`` with a symbol among them; None if it has to be fixed."""
        ints = left.cls is int and right.cls is int
        if not ints and not {left.cls, right.cls} <= {int, float}:
            return None
        if symbol in _DIVIDES and not self._differs(right, 0):
            return None
        if ints and symbol in _INT_OPERATORS:
            return t.tensors.call(t, _INT_OPERATORS[symbol], [left, right], {})
        if ints:
            return self._quotient(t, left, right) if symbol == "/" else None
        if symbol not in _FLOAT_OPERATORS or (symbol == "**" and not self._is_plain(left, right)):
            return None
        return self._float(t, _FLOAT_OPERATORS[symbol], f"({{}} {symbol} {{}})", [left, right])

    def function(self, t: Tracer, real: Callable[..., Any], value: Value) -> Value | None:
        """A function of ``FLOAT_FUNCTIONS`` of a symbol; None if it has to be fixed."""
        conditions = float_functions.FLOAT_FUNCTIONS[real]
        if value.cls is not float or not self._fulfils(value, conditions):
            return None
        return self._float(t, real, float_functions.written(real), [value])

    def _is_plain(self, base: Value, exponent: Value) -> bool:
        """Whether a power is a float for sure, for this capture and guarded."""
        for conditions in float_functions.POWERS:
            pairs = list(zip((base, exponent), conditions, strict=True))
            if all(float_functions.meets(_now(value), asked) for value, asked in pairs):
                return all(self._fulfils(value, asked) for value, asked in pairs)
        return False

    def _fulfils(self, value: Value, conditions: Iterable[float_functions.Condition]) -> bool:
        for real, number in conditions:
            answer = self._decide(real, value, Const(number))
            if answer is None or not answer.value:
                return False
        return True

    def _quotient(self, t: Tracer, left: Value, right: Value) -> Value | None:
        """An int by an int: rounded once, from the exact quotient, here as in Python."""
        try:
            made = t.tensors.call(t, operator.truediv, [left, right], {})
        except NotConstant:
            return None  # torch turned it into something else
        if isinstance(made, SymbolValue) and not made.operands:
            made.operands, made.pattern = (left, right), "({} / {})"
        return made

    def _float(
        self, t: Tracer, function: Callable[..., Any], pattern: str, operands: list[Value]
    ) -> Value | None:
        """The float that Python computes, as a symbol of its own."""
        sym = self._float_symbol(function, [_now(operand) for operand in operands])
        if sym is None:
            return None
        node = t.tensors.add_known(t, function, operands, sym)
        made = SymbolValue(sym, self.settle, node=node)
        made.operands, made.pattern = tuple(operands), pattern
        symbol = sym.node.expr
        self._floats[symbol] = self._by_expression[symbol] = made
        return made

    def _float_symbol(self, function: Callable[..., Any], operands: list[Any]) -> Any:
        """A symbol for a float; None for one that is not finite, or where floats are no inputs."""
        if not self._allows_floats:
            return None
        if None in operands:
            return self._env.create_unbacked_symfloat()
        hint = float_functions.computed(function, operands)
        if hint is None:
            return None
        where = ConstantSource(f"float ({len(self._env.var_to_range)})")
        symbol = self._env.create_unspecified_symbol(
            hint, source=where, dynamic_dim=DimDynamic.DYNAMIC
        )
        return self._env.create_symfloatnode(symbol, hint=hint, source=where)

    def compare(
        self, t: Tracer, real: Callable[..., Any], left: Value, right: Value
    ) -> Value | None:
        """A comparison, answered for this capture and guarded, or by the graph where a tensor gives
        the number; None if it has to be fixed."""
        if not {left.cls, right.cls} <= {int, float, bool}:
            return None
        unknown = None in (_now(left), _now(right))
        if not unknown and (left.cls is not int or right.cls is not int):
            return self._decide(real, left, right)
        if float in (left.cls, right.cls) and not _are_as_real(left, right):
            answer = self._env.create_unbacked_symbool()
        else:
            answer = real(_operand(left), _operand(right))
        try:
            return Const(bool(answer))
        except ValueError:  # a number of more digits than Python writes
            return None
        except GuardOnDataDependentSymNode:
            node = t.tensors.add_known(t, real, [left, right], answer)
            return SymbolValue(answer, self.settle, node=node)

    def _decide(self, real: Callable[..., Any], left: Value, right: Value) -> Const | None:
        """A comparison with floats, answered for this capture and guarded as Python answers it."""
        numbers = _now(left), _now(right)
        answer = None in numbers or real(*numbers)
        if SymbolValue in (type(left), type(right)):
            text = compared(real, answer, self._text(left), self._text(right))
            if text is None:
                return None
            self._conditions.add_text(text)
        return Const(answer)

    def _text(self, value: Value) -> Text | None:
        """How Python computes a number from the inputs; None where that is not known, or long."""
        if not isinstance(value, SymbolValue):
            return literal(value.constant())
        if value not in self._texts:
            self._texts[value] = self._written(value)
        return self._texts[value]

    def _written(self, value: SymbolValue) -> Text | None:
        if value.cls is int:
            return self._conditions.size_of(value.sym.node.expr)
        if value.source is not None:
            return self._conditions.float_of(value.source)
        return filled(value.pattern, map(self._text, value.operands))

    def _differs(self, value: Value, number: int) -> bool:
        """Whether a number is another one, for this capture and guarded; False if none can tell."""
        if value.cls is float:
            return _now(value) is not None and self._fulfils(value, [(operator.ne, number)])
        try:
            return bool(_operand(value) != number)
        except GuardOnDataDependentSymNode:
            return False

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
        self._fix_what_floats_decide()
        for source, number in self._fixed.items():
            guards.add(ConstEq(source, number, origin=None))
        for symbol, limits in self._env.var_to_range.items():
            if symbol in self._places:
                self._conditions.add_range(symbol, limits)
        for guard in self._env.guards:
            if self._floats.keys().isdisjoint(guard.expr.free_symbols):
                self._conditions.add(guard.expr)
        for source, size in self._checks:
            self._conditions.add_equal(source, size.node.expr)
        self._conditions.finish(guards)

    def _fix_what_floats_decide(self) -> None:
        """A question about a float was answered by torch's algebra: it holds for these numbers."""
        for guard in list(self._env.guards):
            symbols = guard.expr.free_symbols
            if not self._floats.keys().isdisjoint(symbols):
                for symbol in symbols:
                    self._by_expression[symbol].constant()


def _is_unbacked(expression: Any) -> bool:
    kinds = (SymT.UNBACKED_INT, SymT.UNBACKED_FLOAT)
    return bool(expression.is_Symbol and symbol_is_type(expression, kinds))


def _are_as_real(left: Value, right: Value) -> bool:
    """Whether torch's algebra, which knows no NaN, compares numbers as Python does."""
    known = (value.constant() for value in (left, right) if type(value) is not SymbolValue)
    return left is not right and all(map(float_functions.is_ordinary, known))


@native(expect_true)
def _expect_true(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What ``torch._check`` asks: of a number that a tensor gives, the graph asks it, and the rest
    of the capture may rely on it."""
    condition = args[0]
    if type(condition) is not SymbolValue or condition.hint is not None:
        return Const(truth(t, condition))
    t.tensors.call(t, torch._check, [condition], {})
    # The former tells a backend that traces the graph, this one stays in what it makes.
    t.tensors.call(t, torch.ops.aten._assert_scalar.default, [condition, Const("_check")], {})
    return Const(True)


@native(_advise_is_size)
def _is_size(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if type(args[0]) is SymbolValue:
        _advise_is_size(args[0].sym)
    return Const(None)


def _operand(value: Value) -> Any:
    return value.sym if isinstance(value, SymbolValue) else value.constant()


def _now(value: Value) -> Any:
    return value.hint if isinstance(value, SymbolValue) else value.constant()
