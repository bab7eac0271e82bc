"""Marks that users put on functions: disable, allow_in_graph, graph_break and their kin.

A mark is an attribute of the function, so it lives and dies with it.  Those that ``torch.compiler``
and ``torch._dynamo`` put on functions are understood too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
ATTRIBUTE = "_dynacap_mark"
WRAPPED_BY_TORCH = "_torchdynamo_orig_callable"
_TORCH_DISABLE = "_torchdynamo_disable"
_TORCH_WRAPPER = ("_fn", "torch/_dynamo/eval_frame.py")


@dataclass(frozen=True, slots=True)
class Mark:
    """What capture does with a function.

    ``kind``: ``allow`` puts calls into the graph as they are; ``constant`` calls it once, while
    capturing; ``graph_break`` breaks; ``skip_frame`` runs the frame as
    plain Python; ``forbid`` raises; ``disable`` breaks and runs it eagerly,
    all below it too if ``recursive``.
    """

    kind: str
    reason: str | None = None
    recursive: bool = True


def put(function: Function, mark: Mark) -> Function:
    """Mark a function."""
    try:
        setattr(function, ATTRIBUTE, mark)
    except AttributeError:
        raise TypeError(
            f"{function!r} cannot be marked: it takes no attributes; wrap it in a Python function"
        ) from None
    return function


def of(function: Any) -> Mark | None:
    """The mark of a function, or None."""
    found = getattr(function, "__dict__", None)
    if found:
        mark = found.get(ATTRIBUTE)
        if mark is not None:
            return mark  # type: ignore[no-any-return]
        if found.get(_TORCH_DISABLE):
            recursive = bool(found.get("_torchdynamo_disable_recursive", False))
            return Mark("disable", found.get("_torchdynamo_disable_msg"), recursive)
        if found.get("_dynamo_marked_constant"):
            return Mark("constant")
    return _of_torch(function)


def _of_torch(function: Any) -> Mark | None:
    """What ``torch._dynamo`` noted in tables of its own."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is None:
        return None
    if id(function) in getattr(rules, "_allowed_callable_ids", ()):
        return Mark("allow")
    if id(function) in getattr(rules, "_disallowed_callable_ids", ()):
        return Mark("disable", "torch._dynamo.disallow_in_graph", recursive=False)
    return None


def wrapped_by_torch(function: Any) -> Any:
    """What ``torch.compile`` made this of; None if it did not make it, or is told to disable it."""
    found = getattr(function, "__dict__", None)
    if not found or found.get(_TORCH_DISABLE):
        return None
    return found.get(WRAPPED_BY_TORCH)


def inside_disabled() -> bool:
    """Whether a function that ``torch.compiler.disable`` wraps is running further out."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name == _TORCH_WRAPPER[0] and code.co_filename.endswith(_TORCH_WRAPPER[1]):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def is_compiling() -> bool:
    """True while dynacap captures and in code that it compiled; plain Python gets False."""
    return False
