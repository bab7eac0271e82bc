"""Calls that eager PyTorch refuses and the stand-ins for its kernels take.

These do not ask whether a kernel knows a dtype, whether what an in-place operation computes can be
cast to the dtype of where it goes, or whether there is a dimension that a softmax is told of.  So
such calls run for real, on small tensors, and what these raise is what eager PyTorch raises: other
sizes would be in the message only where sizes are wrong, which the stand-ins do find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacap.backends.fakes.in_place import is_in_place
from dynacap.backends.fakes.meta import as_function, is_checked, is_plain_state, refusal


def check(target: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> None:
    """Raise what eager PyTorch raises for a call that fake tensors have taken."""
    if (is_in_place(target) or is_checked(target)) and is_plain_state():
        error = refusal(*as_function(target, args), kwargs)
        if error is not None:
            raise error
