"""``inspect.signature``: worked out once from the real function, under guards on what it reads."""

from __future__ import annotations

import inspect
import types
from typing import Any

from dynacap.guards.source import Attr
from dynacap.values.base import Known, OfProcess, Value
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.library.attributes import attribute_or_none
from dynacap.values.library.handlers import handles
from dynacap.values.tracer import Tracer


@handles(inspect.signature)
def _signature(t: Tracer, obj: Value, /) -> Value:
    """Of a Python function or method from outside; anything else breaks."""
    bound = isinstance(obj, BoundMethod)
    inner = obj.func if isinstance(obj, BoundMethod) else obj
    if not isinstance(inner, FunctionValue) or inner.real is None:
        return t.graph_break("signature", f"inspect.signature of {obj.describe()}")
    _guard_parameters(t, inner)
    real: Any = types.MethodType(inner.real, object()) if bound else inner.real
    try:
        found = inspect.signature(real)
    except (TypeError, ValueError) as error:
        return t.raise_real(error)
    said = (*(each.annotation for each in found.parameters.values()), found.return_annotation)
    OfProcess.met += any(each is not inspect.Signature.empty for each in said)  # not guarded
    return t.wrap(found, None)


def _guard_parameters(t: Tracer, function: FunctionValue) -> None:
    """What the signature is made of, along the chain of wrapped functions."""
    at: Value | None = function
    while isinstance(at, FunctionValue) and at.real is not None:
        if attribute_or_none(t, at, "__signature__") is not None:
            t.graph_break("signature", f"{at.qualname} has a __signature__ of its own")
        if at.source is not None:
            for name in ("__code__", "__defaults__", "__kwdefaults__"):
                t.guard("IdIs", Attr(at.source, name), getattr(at.real, name))
        at = attribute_or_none(t, at, "__wrapped__")
    if at is not None and not isinstance(at, Known):
        t.graph_break("signature", f"{function.qualname} wraps {at.describe()}")
