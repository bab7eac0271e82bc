"""What code in the wild says to ``torch.compile`` means the same here.

``torch._dynamo`` takes a second to import, so its functions are known by their names.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from dynacap.values.base import Const, Value
from dynacap.values.natives import Native, native
from dynacap.values.tracer import Tracer


def _graph_break(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    said = [*args, *kwargs.values()]
    return t.graph_break(
        "explicit-break", said[0].describe() if said else "graph_break() is called"
    )


def _ignored(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Hints about shapes and addresses change no result."""
    return Const(None)


def _no_autograd_compiler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return t.call(t.wrap(contextlib.nullcontext, None), [])


_BY_NAME: dict[tuple[str, str], Native] = {
    ("torch._dynamo.external_utils", "is_compiling"): lambda t, args, kwargs: Const(True),
    ("torch._dynamo.decorators", "graph_break"): _graph_break,
    ("torch._dynamo.decorators", "mark_static"): _ignored,
    ("torch._dynamo.decorators", "mark_static_address"): _ignored,
    ("torch._dynamo.decorators", "mark_dynamic"): _ignored,
    ("torch._dynamo.decorators", "maybe_mark_dynamic"): _ignored,
    ("torch._dynamo.mutation_guard", "tag"): _ignored,  # notes the birth of each module
    ("torch._dynamo.compiled_autograd", "_disable"): _no_autograd_compiler,
}
native(torch.compiler.cudagraph_mark_step_begin)(_ignored)


def find_dynamo(function: Any) -> Native | None:
    """The handler of one of these functions."""
    return _BY_NAME.get((function.__module__, function.__name__))
