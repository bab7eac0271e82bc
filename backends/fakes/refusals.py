"""Calls that eager PyTorch refuses and the stand-ins for its kernels take.

These do not ask whether a kernel knows a dtype, whether what an in-place operation computes can be
cast to the dtype of where it goes, or whether there is a dimension that a softmax is told of.  So
such calls run for real, on small tensors, and what these raise is what eager PyTorch raises: other
sizes would be in the message only where sizes are wrong, which the stand-ins do find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynacap.backends.fakes.in_place import as_function
from dynacap.backends.fakes.meta import CHECKED, SIZES_AT, OfAnyLayout, is_plain_state, name_of


def check(target: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
    """Raise what eager PyTorch raises for a call that fake tensors have taken."""
    name = name_of(target)
    found = as_function(target, args)
    if found is None and name in CHECKED:
        owner = getattr(target, "__self__", None)
        method = isinstance(owner, torch.Tensor)
        found = (getattr(torch.Tensor, name), (owner, *args)) if method else (target, args)
    if found is None or not is_plain_state():
        return
    twins = OfAnyLayout(SIZES_AT.get(name))
    try:
        operands = twins.operands(found[1])
        keywords = {word: twins.of(value) for word, value in kwargs.items()}
    except Exception:  # there are no such twins
        return
    with torch.no_grad():
        found[0](*operands, **keywords)
