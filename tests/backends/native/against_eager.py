"""Functions compiled by the native backend, beside the same functions run plain."""

from typing import Any

import dynacap
from dynacap.testing import check_same


def compiled(function: Any) -> Any:
    """The function under the native backend."""
    return dynacap.compile(function, backend="native")


def same(function: Any, *args: Any) -> None:
    """The compiled function does what the plain one does, the second time too."""
    for _ in range(2):
        check_same(function, args, compile=compiled)
