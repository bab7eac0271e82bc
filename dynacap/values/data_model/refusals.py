"""What Python says of an operation that its operands do not know: said by Python itself."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from dynacap.values.base import Value, constant_or

if TYPE_CHECKING:
    from dynacap.values.tracer import Tracer


def refuse(t: Tracer, operation: Callable[..., Any], *operands: Value) -> NoReturn:
    """Raise the TypeError of an operation whose first operand's class does not know it."""
    first, *others = operands
    try:
        operation(like(first), *[constant_or(one, None) or like(one) for one in others])
    except TypeError as error:
        t.raise_real(error)
    raise AssertionError(f"{operation} works on everything")


def like(value: Value) -> Any:
    """An object of a class of the same name that knows nothing."""
    return _ignorant(value.title)()


@functools.lru_cache(maxsize=1024)
def _ignorant(name: str) -> type:
    return type(name, (), {})
