"""What code in the wild says to ``torch.compile`` means the same here.

``torch._dynamo`` takes a second to import, so its functions are only looked for at the start of a
capture, and only if someone else has imported it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from dynacap.values.base import Value
from dynacap.values.natives import find_native, native
from dynacap.values.tensor.family import AT_START
from dynacap.values.torch_library.questions import answers
from dynacap.values.tracer import Tracer


def _graph_break(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    said = [*args, *kwargs.values()]
    return t.graph_break(
        "explicit-break", said[0].describe() if said else "graph_break() is called"
    )


_compiling = functools.partial(answers, True)
_ignored = functools.partial(answers, None)  # hints about shapes and addresses change no result


def _breaks(function: Any) -> None:
    native(function)(_graph_break)


_LATE: dict[str, dict[str, Callable[[Any], None]]] = {
    "torch._dynamo": {
        "is_compiling": _compiling,
        "graph_break": _breaks,
        "mark_static": _ignored,
        "mark_static_address": _ignored,
        "mark_dynamic": _ignored,
        "maybe_mark_dynamic": _ignored,
    },
    "torch._dynamo.external_utils": {"is_compiling": _compiling},
}
_pending = dict(_LATE)


def register_late() -> None:
    """Know the functions of the modules that were imported meanwhile."""
    for name in tuple(_pending):
        module = sys.modules.get(name)
        if module is None or getattr(module.__spec__, "_initializing", False):
            continue
        for attribute, register in _pending.pop(name).items():
            function = getattr(module, attribute, None)
            if function is not None and find_native(function) is None:
                register(function)


AT_START.append(register_late)

_ignored(torch.compiler.cudagraph_mark_step_begin)
