"""The user's lines that a node came from, and how an exception is made to point at them.

A node's ``meta`` says where it came from in one of three ways, the first that is there counts:

- ``source_stack``: frames, outermost call first; each a ``dynacap.errors.UserFrame`` or a tuple
  ``(filename, line number, function name)``
- ``source_loc``: one such frame, the innermost
- ``stack_trace``: text as Python prints it, which is what ``torch.fx`` has
"""

import re
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any

from dynacap.errors import UserFrame, UserStack, format_stack

_TRACE_LINE = re.compile(r'^\s*File "(?P<file>.+)", line (?P<line>\d+)(, in (?P<name>.+))?$', re.M)
_NO_STACK: UserStack = ()

# A raw value of one of the three meta entries; kept where the node itself would keep too much
# alive, and read only when someone asks.
RawLocation = Any


def raw_location(meta: Mapping[str, Any]) -> RawLocation:
    """What ``meta`` says about the origin, not yet read."""
    get = meta.get
    return get("source_stack") or get("source_loc") or get("stack_trace")


def read_location(raw: RawLocation) -> UserStack:
    """The frames that a raw location stands for, outermost first; empty if it says nothing."""
    if not raw:
        return _NO_STACK
    if isinstance(raw, str):
        return tuple(
            UserFrame(found["file"], int(found["line"]), found["name"] or "<unknown>")
            for found in _TRACE_LINE.finditer(raw)
        )
    if isinstance(raw, UserFrame):
        return (raw,)
    if isinstance(raw[0], str):
        return (UserFrame(*raw),)
    return tuple(frame if isinstance(frame, UserFrame) else UserFrame(*frame) for frame in raw)


def user_stack(meta: Mapping[str, Any]) -> UserStack:
    """The user's frames that a node with this ``meta`` came from, outermost first."""
    return read_location(raw_location(meta))


def innermost(raw: RawLocation) -> UserFrame | None:
    """The last frame of a raw location, without reading the others where that can be avoided."""
    if isinstance(raw, (tuple, list)) and raw and not isinstance(raw[0], str):
        last = raw[-1]
        return last if isinstance(last, UserFrame) else UserFrame(*last)
    stack = read_location(raw)
    return stack[-1] if stack else None


class StackTraces:
    """Texts of stacks, each made once: the nodes of a graph share most of theirs."""

    def __init__(self) -> None:
        self._texts: dict[UserStack, str] = {}

    def text(self, meta: Mapping[str, Any]) -> str | None:
        """What ``meta["stack_trace"]`` is or should be."""
        known = meta.get("stack_trace")
        if known is not None:
            return str(known)
        stack = user_stack(meta)
        if not stack:
            return None
        if stack not in self._texts:
            self._texts[stack] = format_stack(stack)
        return self._texts[stack]


def point_at_user_line(
    error: BaseException, frame: FrameType, find: Callable[[int], RawLocation]
) -> None:
    """Put the user's frames into the traceback of ``error``, below the entry of ``frame``.

    ``find`` gives the location for a line number of the code that ``frame`` runs.
    """
    above: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None and entry.tb_frame is not frame:
        above.append(entry)
        entry = entry.tb_next
    if entry is None:
        return
    rest = with_frames(read_location(find(entry.tb_lineno)), entry.tb_next)
    for link in (entry, *reversed(above)):
        rest = TracebackType(rest, link.tb_frame, link.tb_lasti, link.tb_lineno)
    error.__traceback__ = rest


def with_frames(stack: UserStack, rest: TracebackType | None) -> TracebackType | None:
    """A traceback that shows ``stack`` and then ``rest``."""
    for place in reversed(stack):
        entry = _entry_at(place)
        rest = TracebackType(rest, entry.tb_frame, entry.tb_lasti, place.lineno)
    return rest


class _Here(Exception):
    """Raised and caught at once, for the sake of its traceback."""


_TEMPLATE = compile("raise here", "<template>", "exec")


def _entry_at(place: UserFrame) -> TracebackType:
    """A traceback entry whose frame has the user's file, line and function name."""
    code = _TEMPLATE.replace(
        co_filename=place.filename,
        co_name=place.function,
        co_qualname=place.function,
        co_firstlineno=max(place.lineno, 1),
        co_linetable=_one_line(_TEMPLATE),
    )
    try:
        exec(code, {"here": _Here})
    except _Here as error:
        inner = error.__traceback__ and error.__traceback__.tb_next
        assert inner is not None
        return inner
    raise AssertionError("the template always raises")


def _one_line(code: CodeType) -> bytes:
    """A line table which gives every instruction the first line and no columns.

    Each entry is a byte ``0x80 | kind << 3 | length - 1`` and, for kind 13 (line but no columns),
    the change of the line as a varint: CPython's Objects/locations.md.  Columns would draw
    markers under the wrong part of the user's line.
    """
    units = len(code.co_code) // 2
    table = bytearray()
    while units > 0:
        length = min(units, 8)
        table += bytes((0x80 | 13 << 3 | length - 1, 0))
        units -= length
    return bytes(table)
