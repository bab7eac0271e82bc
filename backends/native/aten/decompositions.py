"""Operators that are taken apart before lowering sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten


def _dropout(x: torch.Tensor, p: Any, train: bool | None) -> Any:
    """One that leaves nothing: ``dropout``, which is traced as this, draws no random numbers."""
    if p != 1 or train is False:
        return NotImplemented
    return x * x.new_zeros(()), torch.zeros_like(x, dtype=torch.bool)


DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    # Loops read memory, and do not see a bit that says to negate what is there.
    aten._neg_view.default: lambda x: aten.neg.default(x),
    aten.native_dropout.default: _dropout,
}
