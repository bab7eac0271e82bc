"""Operators that are taken apart before lowering sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten

DECOMPOSITIONS: dict[torch._ops.OpOverload, Callable[..., Any]] = {
    # Loops read memory, and do not see a bit that says to negate what is there.
    aten._neg_view.default: lambda x: aten.neg.default(x),
}
