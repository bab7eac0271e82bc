"""Products of matrices: what is added to one is left to the loop that reads it."""

from __future__ import annotations

from typing import Any

import torch

from dynacap.backends.native.lowering.field import Field, Scalar
from dynacap.backends.native.lowering.lower import RULES, Lowering, is_item_or_view, lowers

aten = torch.ops.aten


@lowers(aten.addmm.default)
def addmm(
    cx: Lowering, added: Field, a: Field, b: Field, *, beta: Scalar = 1, alpha: Scalar = 1
) -> Any:
    """The product, and an addition: halves are rounded only after both."""
    if not (_counts(alpha) and _counts(beta)) or not _feeds_loops(cx.node):
        return NotImplemented
    if a.dtype not in (torch.float32, torch.float64) or not added.dtype is a.dtype is b.dtype:
        return NotImplemented
    assert a.buffer is not None and b.buffer is not None
    product = cx.called(aten.mm.default, cx.result.shape, a.buffer, b.buffer)
    return _scaled(product, alpha) + _scaled(added, beta)


def _counts(factor: Scalar) -> bool:
    """Whether what is multiplied by it counts: beside a zero not even NaN does."""
    return isinstance(factor, int | float) and factor != 0


def _scaled(x: Field, factor: Scalar) -> Field:
    return x if factor == 1 else x * factor


def _feeds_loops(node: torch.fx.Node) -> bool:
    """Whether loops are all that reads what a node gives."""
    return all(map(_is_loops, node.users))


def _is_loops(user: torch.fx.Node) -> bool:
    if user.op == "output" or user.target is aten.addmm.default:
        return False
    return _feeds_loops(user) if is_item_or_view(user) else user.target in RULES
