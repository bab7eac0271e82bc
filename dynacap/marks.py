"""Marks that users put on functions: disable, allow_in_graph, graph_break.

A mark is an attribute of the function, so it lives and dies with it; the ones that
``torch.compiler`` puts on functions are understood too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
ATTRIBUTE = "_dynacap_mark"


@dataclass(frozen=True, slots=True)
class Mark:
    """What capture does with a function: ``allow``, ``disable`` or ``graph_break``."""

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
    if not found:
        return None
    mark = found.get(ATTRIBUTE)
    if mark is not None:
        return mark  # type: ignore[no-any-return]
    if "_torchdynamo_disable" in found:
        return (
            Mark("disable", found.get("_torchdynamo_disable_msg"))
            if found["_torchdynamo_disable"]
            else None
        )
    return None


def is_compiling() -> bool:
    """True while dynacap captures and in code that it compiled; plain Python gets False."""
    return False
