"""What Python says of an operation that its operands do not know: said by Python itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from dynacap.values.base import Const, Value
from dynacap.values.tracer import Tracer
from dynacap.values.wording import error_of, instance_named


def refuse(t: Tracer, operation: Callable[..., Any], *operands: Value) -> NoReturn:
    """Raise the TypeError of an operation whose first operand's class does not know it."""
    t.raise_real(error_of(operation, *map(_given, operands)))


def _given(value: Value) -> Any:
    return value.value if isinstance(value, Const) else like(value)


def like(value: Value) -> Any:
    """An object of a class of the same name that knows nothing."""
    return instance_named(value.title)
