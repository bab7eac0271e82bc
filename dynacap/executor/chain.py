"""The chain of frames at the start of a region, and what is left of it at a graph break."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass
from typing import Any

from dynacap.executor.finalizers import death_shows
from dynacap.executor.frame import Frame, PreviousException
from dynacap.executor.inline import guard_code
from dynacap.executor.machine import Machine
from dynacap.guards.source import Local
from dynacap.hook.bodies import is_body
from dynacap.opcodes.analysis import LOOKS_AT_LOCALS, Kind, live_locals
from dynacap.resume import Point
from dynacap.resume.point import name_of_temporary, stack_kinds
from dynacap.values.base import NULL, Const, Lazy, Value
from dynacap.values.function import FunctionValue
from dynacap.values.object import CellValue

NAMESPACE = "namespace"


@dataclass(frozen=True, eq=False)
class Site:
    """A place in a code object where a frame stands between instructions.

    Compared by identity; a session keeps one for each code object and point.
    """

    code: types.CodeType
    point: Point

    @functools.cached_property
    def count(self) -> int:
        """How many values of the flat vector belong to a frame here (a frame that waits for the
        result of a call has one less)."""
        point = self.point
        return self.first_local + len(point.bound) + point.depth - len(point.nulls)

    @functools.cached_property
    def first_local(self) -> int:
        """How many come before the locals: the function, the namespace of a body, the cells."""
        cells = len(self.code.co_cellvars) + len(self.code.co_freevars)
        return 1 + is_body(self.code) + cells


def start_function(m: Machine, code: types.CodeType, flat: tuple[Any, ...]) -> None:
    """A frame at the start of the function ``flat[0]``, its arguments lazy; or of a body."""
    function = flat[0]
    value = m.wrap(function, Local(0, code.co_name))
    assert isinstance(value, FunctionValue)
    locals_: list[Value | None] = [None] * code.co_nlocals
    if is_body(code):
        frame = _push(m, value, locals_)
        frame.namespace = m.wrap(flat[1], Local(1, NAMESPACE)) if flat[1:] else frame.globals
        return
    names_of = getattr(function, "names_of_args", None)
    for index, real in enumerate(flat[1:]):
        is_star = index and type(real) is tuple and index == code.co_argcount
        items = names_of(flat[1]) if names_of is not None and is_star else ()
        locals_[index] = Lazy(real, source=Local(index + 1, code.co_varnames[index], items))
    _push(m, value, locals_)


def _push(m: Machine, function: FunctionValue, locals_: list[Value | None]) -> Frame:
    guard_code(m, function)
    globals_, builtins = m.globals_of(function)
    frame = Frame(function, globals_, builtins, locals_)
    m.frames.append(frame)
    return frame


def start_piece(m: Machine, sites: tuple[Site, ...], flat: tuple[Any, ...]) -> None:
    """Frames that stand at the sites, outermost first, with the values of the flat vector."""
    at = 0
    last = len(sites) - 1
    for number, site in enumerate(sites):
        waiting = number < last
        _resume_frame(m, site, flat, at, waiting)
        at += site.count - waiting


def _resume_frame(m: Machine, site: Site, flat: tuple[Any, ...], at: int, waiting: bool) -> None:
    """``waiting``: the result of the call that the frame waits for is not there yet."""
    code, point = site.code, site.point
    value = m.wrap(flat[at], Local(at, code.co_name))
    assert isinstance(value, FunctionValue)
    frame = _push(m, value, [None] * code.co_nlocals)
    at += 1
    if is_body(code):
        frame.namespace = m.wrap(flat[at], Local(at, NAMESPACE))
        at += 1
    names = code.co_cellvars + code.co_freevars
    for index, name in enumerate(names):
        frame.cells[index] = m.wrap(flat[at], Local(at, name))
        at += 1
    for local in point.bound:
        m.finalizers.came_in(flat[at])
        frame.locals[local] = Lazy(flat[at], source=Local(at, code.co_varnames[local]))
        at += 1
    for position in range(point.depth - waiting):
        if position in point.nulls:
            frame.stack.append(NULL)
            continue
        m.finalizers.came_in(flat[at])
        held = m.wrap(flat[at], Local(at, name_of_temporary(code, point.index, position)))
        if position in point.excs:
            frame.stack.append(PreviousException(m.handled, held))
            m.handled = held
        else:
            frame.stack.append(held)
        at += 1
    frame.pc = point.index
    frame.index = point.index - waiting  # the call that it waits for may raise


def leave(m: Machine, whole: bool = False) -> tuple[tuple[Site, ...], list[Value]]:
    """The sites at which the chain's frames stand now, and the values they need; all that they have
    if ``whole``, since someone looks at them.
    """
    sites, values = [], []
    last = len(m.frames) - 1
    for number, frame in enumerate(m.frames):
        site, own = _site(frame, number < last, whole)
        sites.append(site)
        values += own
    return tuple(sites), values


def _site(frame: Frame, waiting: bool, whole: bool) -> tuple[Site, list[Value]]:
    """``waiting``: the frame waits for a call's result, which will lie on its stack."""
    point, values = frame_state(frame, frame.pc, waiting, whole)
    space = [frame.namespace] if frame.namespace is not None else []
    return Site(frame.function.code, point), [frame.function, *space, *values]


def frame_state(
    frame: Frame, index: int, waiting: bool, whole: bool = False
) -> tuple[Point, list[Value]]:
    """The point at which a frame stands before an instruction, and its values there."""
    bound = _bound(frame, index, waiting, whole)
    nulls = tuple(p for p, item in enumerate(frame.stack) if item is NULL)
    kinds = stack_kinds(frame.function.code, index)
    excs = tuple(p for p in range(len(frame.stack)) if kinds[p] is Kind.SAVED)
    point = Point(index, len(frame.stack) + waiting, nulls, excs, bound)
    values: list[Value] = [cell if cell is not None else CellValue() for cell in frame.cells]
    values += [frame.locals[local] or Const(None) for local in bound]
    for position, item in enumerate(frame.stack):
        if type(item) is PreviousException:
            held = item.current if position in excs else item.exc
            values.append(held if held is not None else Const(None))
        elif isinstance(item, Value):
            values.append(item)
    return point, values


def _bound(frame: Frame, index: int, waiting: bool, whole: bool) -> tuple[int, ...]:
    code = frame.function.code
    held = [local for local, value in enumerate(frame.locals) if value is not None]
    if whole or not LOOKS_AT_LOCALS.isdisjoint(code.co_names):
        return tuple(held)
    live = live_locals(code, index)
    handler = frame.code.handlers[index - 1] if waiting else None
    if handler is not None:  # the call may raise
        live = live | live_locals(code, handler.target)
    first = {0} if "__class__" in code.co_freevars else set()
    # What is handed to the instruction that runs now may be referred to weakly there.
    handed = [value for value in frame.stack if type(value) is FunctionValue]
    return tuple(
        local
        for local in held
        if local in live
        or local in first
        or frame.locals[local] in handed
        or death_shows(frame.locals[local])
    )
