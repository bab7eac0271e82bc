"""Death that can be seen: a generator put aside inside ``try`` or ``with`` runs on when it dies.

CPython counts references; capture looks whether a generator made inside can still be reached, but
only while there is one whose death would run code, and only after instructions that may have let
go of something.  Objects from outside that have a finalizer (a ``__del__``, a generator put aside)
cannot die inside a region, whose arguments hold them: what lets go of one runs eagerly.
"""

from __future__ import annotations

import itertools
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dynacap.executor.exceptions import handlers_around
from dynacap.executor.frame import Frame
from dynacap.guards.generators import KINDS, is_over
from dynacap.guards.raw import IMMUTABLE_TYPE, MISSING, derives, type_lookup
from dynacap.values.base import Known, Lazy, UserRaise, Value
from dynacap.values.container import ListValue, Stored, TupleValue
from dynacap.values.function import GeneratorValue
from dynacap.values.library.generators import close_generator
from dynacap.values.object import ExceptionValue
from dynacap.values.symbol import SymbolValue

if TYPE_CHECKING:
    from dynacap.executor.machine import Machine

_FEW = 64  # items of a container that are looked at
_KEEPERS = ("LOAD_", "COPY", "JUMP", "POP_JUMP", "PUSH_", "SWAP", "BUILD_", "RESUME", "MAKE_")


class Finalizers:
    """The generators whose death would run code, and what keeps them alive.

    ``open`` are the suspended ones with a handler around their ``yield``.  Each belongs to the
    nested loop that it was made in, or that it was handed out to (``GeneratorValue.level``); deeper
    loops let it be, for it may be held by a handler written in Python.
    """

    def __init__(self) -> None:
        self.open: dict[GeneratorValue, tuple[Any, ...]] = {}  # with the way on which it was found
        self.raised_through: dict[Value, list[Frame]] = {}  # frames that a traceback keeps
        self.outside: set[int] = set()  # ids of what cannot die inside
        self._inner: list[GeneratorValue] = []

    def made(self, gen: GeneratorValue, level: int) -> None:
        """Note where a generator was made."""
        gen.level = level
        if gen.cls is types.CoroutineType:
            self.open[gen] = ()  # Python warns if it is never awaited
        if level:
            self._inner.append(gen)

    def left(self, level: int) -> None:
        """A nested loop ended: what was made there belongs to the one above."""
        if self._inner:
            for gen in self._inner:
                gen.level = min(gen.level, level)
            self._inner = [gen for gen in self._inner if gen.level]

    def suspended(self, gen: GeneratorValue) -> None:
        """A generator was put aside; its death counts if a handler is around it."""
        frame: Frame = gen.frame
        if gen.real is None and any(handlers_around(frame)):
            self.open.setdefault(gen, ())

    def came_in(self, real: Any) -> None:
        """An object from outside belongs to a frame that goes on here, and what it holds."""
        noticed = not derives(type(real), type) and _is_noticed(real)  # a class holds itself
        if noticed or any(map(has_finalizer, _items(real))):
            self.outside.add(id(real))


def _items(real: Any) -> Sequence[Any]:
    return real[:_FEW] if type(real) in (tuple, list) else ()


def has_finalizer(real: Any) -> bool:
    """Whether code runs when an object dies."""
    kind = type(real)
    if kind in KINDS:
        return not is_over(real)
    return type_lookup(kind, "__del__") is not MISSING


def death_shows(value: Value | None) -> bool:
    """Whether a program may notice when an object dies that only a local still holds.

    An instance may have a finalizer or be the target of a weak reference, or be one; a suspended
    generator runs on; of tensors, containers and functions nobody is expected to notice.
    """
    if isinstance(value, (Lazy, Stored)):
        real = value.real
        held: list[Any] = []
        if real is None and isinstance(value, (ListValue, TupleValue)):
            held = [getattr(item, "real", None) for item in value.items[:_FEW]]
        if any(map(_is_noticed, (real, *_items(real), *held))):
            return True
        kind = type(real) if real is not None or type(value) is Lazy else value.cls
        plain = kind.__flags__ & IMMUTABLE_TYPE or hasattr(kind, "__torch_function__")
        refers = issubclass(kind, (weakref.ref, *weakref.ProxyTypes))
        return refers or (kind.__weakrefoffset__ != 0 and not plain)
    if type(value) is not GeneratorValue:
        return type(value) is Known and _is_noticed(value.value)  # a class: its bases know it
    if value.cls is types.CoroutineType or value.state in ("suspended", "outside"):
        return True
    return value.state == "new" and any(map(death_shows, value.frame.locals))


def _is_noticed(real: Any) -> bool:
    """Whether an object has a finalizer, or anybody refers to it weakly (but torch, for a fake)."""
    return has_finalizer(real) or any(
        type(ref).__module__ != "torch.utils.weak" for ref in weakref.getweakrefs(real)
    )


def keep_outside(m: Machine, frame: Frame) -> None:
    """Break before an instruction that lets go of an outside object which has a finalizer."""
    instruction = frame.instructions[frame.pc]
    op = instruction.op
    going: Sequence[object]
    if op in ("STORE_FAST", "DELETE_FAST"):
        going = [frame.locals[instruction.arg]]
    elif op == "POP_TOP":
        going = frame.stack[-1:]
    elif op == "RETURN_VALUE" and len(m.frames) > 1:
        going = frame.locals
    else:
        return
    made = [value for value in going if isinstance(value, Stored) and value.real is None]
    for value in (*going, *(held for each in made for held in children(m, each))):
        real = getattr(value, "real", None)
        if real is not None and id(real) in m.finalizers.outside and not _dies_quietly(value):
            m.graph_break("finalizer", f"a {type(real).__name__} may die here")


def generator_ended(m: Machine, frame: Frame) -> None:
    """Break where the frame of a generator held the last of an outside object with a finalizer."""
    for value in frame.locals:
        real = getattr(value, "real", None)
        if id(real) in m.finalizers.outside and has_finalizer(real):
            kept = (getattr(held, "real", None) for each in m.frames for _, held in _places(each))
            if not any(real is each for each in kept):
                m.graph_break("finalizer", f"a {type(real).__name__} may die here")


def _dies_quietly(value: object) -> bool:
    """Whether it is a generator that is over, or waits where no handler would run."""
    if not isinstance(value, GeneratorValue) or value.state == "outside":
        return False
    warned_of = value.state == "new" and value.cls is types.CoroutineType
    return value.state == "done" or not (warned_of or any(handlers_around(value.frame)))


def close_dropped(m: Machine, frame: Frame, result: Value | None) -> None:
    """Close the generators that the instruction just executed in a frame let go of.

    ``result`` is what a loop ends with, which nothing else may hold; nor what the frame of a
    generator holds that has yielded it.
    """
    op = frame.instructions[frame.index].op
    if op.startswith(_KEEPERS):
        return
    leaving: list[Value] = [] if result is None else [result]
    if op == "YIELD_VALUE" and frame.generator is not None:
        leaving.append(frame.generator)
    while (gen := _next_dropped(m, leaving)) is not None:
        if gen.state == "new":
            m.graph_break("finalizer", "a coroutine dies that was never awaited")
        del m.finalizers.open[gen]
        try:
            close_generator(m, gen)
        except UserRaise as raised:
            m.graph_break("finalizer", f"{raised.exc.describe()} in a generator that dies")


def _next_dropped(m: Machine, leaving: list[Value]) -> GeneratorValue | None:
    """A generator that nothing holds any more, not even another of which the same is true."""
    dropped: list[GeneratorValue] = []
    for gen, way in list(m.finalizers.open.items()):
        if gen.state not in ("suspended", "new"):
            del m.finalizers.open[gen]
        elif gen.level >= m.depth and not _still_there(m, way, gen):
            found = _find(m, gen, leaving)
            if found is None:
                dropped.append(gen)
            else:
                m.finalizers.open[gen] = found
    for gen in dropped:
        owners = (other for other in dropped if other is not gen)
        if all(_search(m, other, gen, {}) is None for other in owners):
            return gen
    return dropped[0] if dropped else None


def _still_there(m: Machine, way: tuple[Any, ...], gen: GeneratorValue) -> bool:
    """Whether the way on which a generator was last found still leads to it."""
    if not way:
        return False
    frame, place, first = way[0]
    if not any(frame is each for each in m.frames):
        return False
    held = frame.locals if place < 0 else frame.stack
    at = -1 - place if place < 0 else place
    if at >= len(held) or held[at] is not first:
        return False
    links = (*way[1:], gen)
    return all(
        any(child is link for child in children(m, holder))
        for holder, link in itertools.pairwise(links)
    )


def _find(m: Machine, gen: GeneratorValue, leaving: list[Value]) -> tuple[Any, ...] | None:
    """The way from a frame to a generator, or () if it leads from elsewhere, or None."""
    seen: dict[int, Any] = {}
    for frame in reversed(m.frames):
        for place, value in _places(frame):
            way = _search(m, value, gen, seen)
            if way is not None:
                return ((frame, place, value), *way)
    kept = [value for value in m.touched if getattr(value, "real", None) is not None]
    others: list[Value | None] = [
        *leaving,
        m.handled,
        *kept,
        *(cell for f in m.frames for cell in f.cells),
    ]
    for other in others:
        if other is not None and _search(m, other, gen, seen) is not None:
            return ()
    return None


def _places(frame: Frame) -> Iterator[tuple[int, Value]]:
    for at, item in enumerate(frame.stack):
        if isinstance(item, Value):
            yield at, item
    for at, local in enumerate(frame.locals):
        if local is not None:
            yield -1 - at, local


def _search(
    m: Machine, start: Value, gen: GeneratorValue, seen: dict[int, Any]
) -> list[Value] | None:
    """The values on the way from ``start`` to just before ``gen``."""
    if start is gen:
        return []
    if id(start) in seen:
        return None
    seen[id(start)] = start
    todo = [(start, [start])]
    for value, way in todo:
        for child in children(m, value):
            if child is gen:
                return way
            if id(child) not in seen:
                seen[id(child)] = child
                todo.append((child, [*way, child]))
    return None


def children(m: Machine, value: Value) -> list[Value]:
    """What an object holds: all that the slots of its value refer to."""
    found: list[Value] = []
    if isinstance(value, GeneratorValue) and value.state == "done":
        return found  # its frame is cleared
    if type(value) is SymbolValue:
        return found  # numbers; to be read would fix it
    for cls in type(value).__mro__:
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            _gather(getattr(value, name, None), found)
    if isinstance(value, ExceptionValue):
        _gather(m.finalizers.raised_through.get(value), found)
    return found


def _gather(held: Any, found: list[Value]) -> None:
    if isinstance(held, Value):
        found.append(held)
    elif type(held) in (list, tuple):
        for item in held:
            _gather(item, found)
    elif type(held) is dict:
        for key, item in held.items():
            if isinstance(key, Value):
                found.append(key)
            _gather(item, found)
    elif type(held) is Frame:
        _gather(held.locals, found)
        _gather(held.stack, found)
        _gather(held.cells, found)
        found.append(held.function)
