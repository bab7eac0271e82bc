"""Warnings given in place of ``warnings.warn``, pointing at frames that are not on the stack."""

from __future__ import annotations

import operator
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

_FOLDER = str(Path(__file__).parents[1])
_TESTING = str(Path(_FOLDER, "testing"))
Place = tuple[str, int, dict[str, Any]]
"""File, line and globals of a frame."""


def warn_at(
    places: tuple[Place, ...], message: Any, category: Any = None, stacklevel: int = 1, *rest: Any,
    source: Any = None,
) -> None:  # fmt: skip
    """Warn as the innermost frame does, which stands at ``places[0]``; behind it are its callers;
    behind the last of them whoever runs this.
    """
    cls = type(message) if isinstance(message, Warning) else category or UserWarning
    level = max(operator.index(stacklevel), 1)
    near = level <= len(places)
    found = places[level - 1] if near else _place_of(_caller(level - len(places)))
    if found is None or not (isinstance(cls, type) and issubclass(cls, Warning)):
        warnings.warn(message, category, sys.maxsize, *rest)
    else:
        file, line, space = found
        registry = space.setdefault("__warningregistry__", {})
        name = space.get("__name__", "<string>")
        given = rest[0] if rest else source
        warnings.warn_explicit(message, cls, file, line, name, registry, None, given)


def _caller(level: int) -> FrameType | None:
    """The frame so many above the one that gives the warning, ours left out."""
    frame: FrameType | None = sys._getframe(2)
    while level and frame is not None:
        frame = frame.f_back
        level -= frame is not None and not _is_skipped(frame.f_code.co_filename)
    return frame


def _is_skipped(file: str) -> bool:
    imports = "importlib" in file and "_bootstrap" in file  # warnings.warn leaves these out
    return imports or (file.startswith((_FOLDER, "<dynacap")) and not file.startswith(_TESTING))


def _place_of(frame: FrameType | None) -> Place | None:
    return frame and (frame.f_code.co_filename, frame.f_lineno, frame.f_globals)
