"""Dtypes and numbers that an operator's kernel refuses, although its meta kernel takes them.

A graph that computed with them would go on where eager raises.  Those operators are called.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.fx import Node

from dynacap import fxlite
from dynacap.fxlite.printer import example_value
from dynacap.fxlite.risks import plain_name

_OF_ANY_KIND = ("Tensor", "number", "float")  # parts of the types of arguments that may be numbers
_FLOATS_ONLY = frozenset(
    """addcdiv elu gelu hardsigmoid hardswish hypot leaky_relu lerp logaddexp mish silu
    softplus""".split()
)
_NO_TRUTH = frozenset(
    """abs addcmul argmax argmin ceil clamp clamp_max clamp_min floor relu round rsub sub threshold
    trunc""".split()
)
_INDEX_OF_64_BITS = frozenset(
    """index_copy nll_loss2d_backward nll_loss2d_forward nll_loss_backward
    nll_loss_forward""".split()
)


def may_be_refused(node: Node) -> bool:
    """Whether eager may refuse what an operator of a graph is given."""
    assert isinstance(node.target, torch._ops.OpOverload)
    operator = node.target.overloadpacket.__name__
    dtypes = {value.dtype for value in _tensors(node)}
    if operator in _NO_TRUTH and torch.bool in dtypes:
        return True
    if operator in _INDEX_OF_64_BITS and torch.int32 in dtypes:
        return True
    result = node.meta["val"]
    whole = isinstance(result, torch.Tensor) and not is_float(result.dtype)
    if whole and operator in _FLOATS_ONLY:
        return True
    dtypes -= {torch.bool}
    for name, value in _numbers(node):
        if type(value) is bool and dtypes:
            return True
        if whole and name == "alpha" and isinstance(value, float | torch.SymFloat):
            return True
        if isinstance(value, int | float) and not all(fits(value, dtype) for dtype in dtypes):
            return True
    return False


def is_taken_apart_wrongly(node: fxlite.Node) -> bool:
    """Whether torch's tracing takes a call apart into others that give something else: elements
    behind the first -1 of a target count, and a recurrent network drops nothing between layers."""
    name = plain_name(node.target)
    if name in ("gru", "lstm", "rnn_relu", "rnn_tanh"):
        biases = next(at for at, arg in enumerate(node.args) if isinstance(arg, bool))
        layers, drop, trains = node.args[biases + 1 : biases + 4]
        return bool(trains) and not (layers == 1 or drop == 0)
    return name in ("multilabel_margin_loss", "multilabel_margin_loss_forward")


def refuses_whole_numbers(node: fxlite.Node) -> bool:
    """Whether a call of the captured graph has its own kernel in eager, which takes floats only;
    what it comes to on fake tensors takes all."""
    result = example_value(node)
    whole = isinstance(result, torch.Tensor) and not is_float(result.dtype)
    return whole and plain_name(node.target) == "max_pool1d"


def fits(value: float, dtype: torch.dtype) -> bool:
    """Whether a number lies in the range of a dtype, which for floats has infinities and NaN."""
    return abs(value) <= largest(dtype) or (is_float(dtype) and not math.isfinite(value))


def largest(dtype: torch.dtype) -> float:
    """The largest number of a dtype that is finite."""
    return torch.finfo(dtype).max if is_float(dtype) else torch.iinfo(dtype).max


def is_float(dtype: torch.dtype) -> bool:
    """Whether numbers of a dtype, or the parts of such, are floats."""
    return dtype.is_floating_point or dtype.is_complex


def _tensors(node: Node) -> Iterator[torch.Tensor]:
    for each in (node, *node.all_input_nodes):
        value = each.meta.get("val")
        yield from (value,) if isinstance(value, torch.Tensor) else ()


def _numbers(node: Node) -> Iterator[tuple[str, Any]]:
    """The numbers among the operands, by the names of their arguments; no sizes, no flags."""
    assert isinstance(node.target, torch._ops.OpOverload)
    arguments = node.target._schema.arguments
    given = {each.name: value for each, value in zip(arguments, node.args, strict=False)}
    given |= node.kwargs
    for each in arguments:
        value = given.get(each.name)
        value = value.meta.get("val") if isinstance(value, Node) else value
        if isinstance(value, int | float | torch.SymFloat):
            if any(part in str(each.type) for part in _OF_ANY_KIND):
                yield each.name, value
