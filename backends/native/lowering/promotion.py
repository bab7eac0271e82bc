"""The dtype that an operation computes in."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from dynacap.backends.native.loops.program import Number
from dynacap.backends.native.lowering.field import Field

HALVES = (torch.bfloat16, torch.float16)


def promoted(*operands: Any) -> torch.dtype:
    """The dtype to which torch brings fields and numbers before it compares or adds them."""
    return _promoted(
        tuple(
            (x.dtype, not x.shape)
            if isinstance(x, Field)
            else float
            if isinstance(x, Number)
            else type(x)
            for x in operands
            if isinstance(x, Field | Number | bool | int | float)
        )
    )


@cache
def _promoted(kinds: tuple[Any, ...]) -> torch.dtype:
    samples = [
        kind() if isinstance(kind, type)
        else torch.empty(() if kind[1] else (1,), dtype=kind[0], device="meta")
        for kind in kinds
    ]  # fmt: skip
    default = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    dtype: torch.dtype = elementwise_dtypes(*samples, type_promotion_kind=default)[1]
    return dtype


def wide(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which a reduction of such numbers adds up."""
    return torch.float32 if dtype in HALVES else dtype
