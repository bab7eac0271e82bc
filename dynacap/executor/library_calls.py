"""Python functions that are not inlined: torch operations, handlers, polyfills, marked ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynacap import marks
from dynacap.backends.torch_surface import is_operation
from dynacap.errors import SkipFrame, UserError
from dynacap.executor.inline import Kwargs
from dynacap.values.base import NotConstant, OfProcess, Value, constant_or
from dynacap.values.data_model.calls import call_known
from dynacap.values.natives import find_native
from dynacap.values.tensor.overrides import is_asked
from dynacap.values.torch_library.dynamo import find_dynamo

if TYPE_CHECKING:
    from dynacap.executor.machine import Machine


def library_call(m: Machine, real: Any, args: list[Value], kwargs: Kwargs) -> Value | None:
    """What the tables say of a Python function; None to inline it."""
    if is_operation(real) and is_asked([*args, *kwargs.values()]):
        return None  # it says itself whom it asks
    handler = find_native(real) or find_dynamo(real)
    if handler is not None:
        return handler(m, args, kwargs)
    mark = marks.of(real)
    if mark is not None:
        return _marked(m, mark, real, args, kwargs)
    return call_known(m, real, args, kwargs)


def _marked(m: Machine, mark: marks.Mark, real: Any, args: list[Value], kwargs: Kwargs) -> Value:
    if mark.kind == "allow":
        return m.tensors.call(m, real, args, kwargs)
    if mark.kind == "graph_break":
        return m.graph_break("explicit-break", _said(args, kwargs) or "graph_break() is called")
    if mark.kind == "skip_frame":
        if len(m.frames) == 1 and m.depth == 0:
            raise SkipFrame("skip-frame", _said(args, kwargs))
        return m.graph_break("skip-frame", _said(args, kwargs))
    if mark.kind == "forbid":
        raise UserError(f"{real.__qualname__}, which forbid_in_graph() marks, is captured")
    if mark.kind == "constant":
        return _constant_call(m, real, args, kwargs)
    return m.graph_break(
        "disabled",
        f"{real.__qualname__} is marked with disable" + (f": {mark.reason}" if mark.reason else ""),
    )


def _said(args: list[Value], kwargs: Kwargs) -> str:
    """The reason that a mark of the user's was given."""
    return str(next((constant_or(value, "") for value in (*args, *kwargs.values())), ""))


def _constant_call(m: Machine, real: Any, args: list[Value], kwargs: Kwargs) -> Value:
    """The user's promise: the result stays the same."""
    OfProcess.met += 1
    try:
        given = [arg.constant() for arg in args]
        named = {name: arg.constant() for name, arg in kwargs.items()}
    except NotConstant:
        return m.graph_break("not-constant", f"an argument of {real.__qualname__}")
    return m.wrap(real(*given, **named), None)
