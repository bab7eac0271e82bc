"""Pointwise operators: broadcast, bring to one dtype, apply the formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Expression, op, where
from dynacap.backends.native.lowering import formulas
from dynacap.backends.native.lowering.creation import filled
from dynacap.backends.native.lowering.field import Field, lift
from dynacap.backends.native.lowering.formulas import Formula
from dynacap.backends.native.lowering.lower import DTYPES, Lowering, lowers
from dynacap.backends.native.lowering.promotion import promoted

aten = torch.ops.aten
DtypeOf = Callable[..., torch.dtype]


def _overload(name: str) -> torch._ops.OpOverload:
    packet, _, overload = name.partition(".")
    found: torch._ops.OpOverload = getattr(getattr(aten, packet), overload or "default")
    return found


def _register(table: Mapping[str, Formula], dtype_of: DtypeOf) -> None:
    for name, formula in table.items():
        lowers(_overload(name))(partial(_pointwise, formula, dtype_of))


def _pointwise(
    formula: Formula, dtype_of: DtypeOf, cx: Lowering, *operands: Any, **options: Any
) -> Any:
    dtype = dtype_of(cx, *operands)
    if dtype not in DTYPES or not cx.plain(operands):
        return NotImplemented
    return applied(partial(formula, **options), dtype, *operands)


def applied(formula: Formula, dtype: torch.dtype, *operands: Any) -> Any:
    """A formula on operands that are brought to a dtype first."""
    field = lift(formula, *(x.to(dtype) if isinstance(x, Field) else x for x in operands))
    return NotImplemented if field.sample() is NotImplemented else field


def _of_result(cx: Lowering, *operands: Any) -> torch.dtype:
    dtype: torch.dtype = cx.result.dtype
    return dtype


def _of_operands(cx: Lowering, *operands: Any) -> torch.dtype:
    return promoted(*operands)


def _bool(cx: Lowering, *operands: Any) -> torch.dtype:
    return torch.bool


_register(formulas.IN_RESULT, _of_result)
_register(formulas.IN_OPERANDS, _of_operands)
_register(formulas.IN_BOOL, _bool)


@lowers(aten.where.self, aten.where.ScalarSelf, aten.where.ScalarOther)
def where_(cx: Lowering, condition: Field, yes: Any, no: Any) -> Any:
    """The condition keeps its dtype."""
    dtype = cx.result.dtype
    branches = [x.to(dtype) if isinstance(x, Field) else x for x in (yes, no)]
    return lift(where, condition.to(torch.bool), *branches)


@lowers(aten.masked_fill.Scalar, aten.masked_fill.Tensor)
def masked_fill(cx: Lowering, x: Field, mask: Field, value: Any) -> Any:
    """A number where the mask is set."""
    if isinstance(value, Field):
        value = value.to(x.dtype)
    return lift(lambda m, v, a: where(m, v, a), mask, value, x)


@lowers(
    aten._to_copy.default, aten.clone.default, aten.alias_copy.default, aten.lift_fresh_copy.default
)
def copied(cx: Lowering, x: Any, **options: Any) -> Any:
    """The same values, perhaps in another dtype or order of memory; never on another device."""
    device = options.get("device")
    if (device is not None and torch.device(device).type != "cpu") or not cx.plain([x]):
        return NotImplemented
    if not isinstance(x, Field):  # a number, which vmap makes a tensor of
        return filled(cx, x)
    return Field(x.shape, x.dtype, x.at)


@lowers(aten.copy.default)
def copy(cx: Lowering, x: Field, source: Field, non_blocking: bool = False) -> Any:
    """``source`` in the shape and dtype of ``x``."""
    return lift(lambda _, value: value, x, source)


@lowers(aten.log_sigmoid_forward.default)
def log_sigmoid_forward(cx: Lowering, x: Field) -> Any:
    """The result, and what its gradient wants to know."""

    def result(a: Expression) -> Expression:
        return op("minimum", a, 0) - op("log1p", near(a))

    def near(a: Expression) -> Expression:
        return op("exp", -op("abs", a))

    if cx.result[1].shape != cx.result[0].shape:
        return NotImplemented
    return lift(result, x), lift(near, x)
