"""Methods of NumPy's ufuncs that are Python in all but speed."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynacap.values.natives import polyfill


@polyfill(np.ufunc.outer)
def outer(ufunc: Any, a: Any, b: Any, /) -> Any:
    """Every element of one array with every element of the other."""
    left, right = np.asarray(a), np.asarray(b)
    return ufunc(left.reshape(left.shape + (1,) * right.ndim), right)
