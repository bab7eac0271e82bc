"""Guards, sources, constants and graphs as bytes, in words that another process understands.

Pickle does the work, for the few types that it is trusted with.  Of all other objects it keeps
names (:mod:`dynacap.kept.names`), or for what has no name the place where it is found from the
arguments: there may be another one in another process, which has to be like it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import pickle
import threading
import types
from abc import ABCMeta
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from dynacap.backends.recovery import Recovery
from dynacap.backends.torch_state import State
from dynacap.cache import Session
from dynacap.errors import UserFrame
from dynacap.executor.chain import Site
from dynacap.fxlite.pickling import Place, Record
from dynacap.guards import GuardSet
from dynacap.guards.constant import ConstKey
from dynacap.guards.kinds import KINDS
from dynacap.guards.plan import ROOT, Plan
from dynacap.guards.raw import MISSING, is_a
from dynacap.guards.ref import Ref, describe
from dynacap.guards.registrations import Registrations
from dynacap.guards.relations import Predicate, Sizes
from dynacap.guards.source import Attr, Held, Source, TypeOf
from dynacap.kept.circumstances import files_now
from dynacap.kept.names import FIELD, NoWordsError, digest, files_of, find, name_of
from dynacap.resume import Point
from dynacap.suspend import suspend_failed

_AS_THEY_ARE = frozenset({
    *KINDS.values(), UserFrame, ConstKey, Place, Point, Record, State, slice, range, complex,
    type(...), type(NotImplemented),
    torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format,
}) - {Predicate, Sizes}  # fmt: skip
_BY_PLACE = (
    *(torch.Tensor, type, types.CodeType, types.FunctionType),
    *(property, staticmethod, classmethod, FIELD),
)
_OWN_SLOTS = frozenset({"__weakref__", "_hash", "base", "key"})


class Places:
    """Where objects are found from the arguments of a call."""

    def __init__(
        self,
        guards: GuardSet,
        slots: Sequence[Source],
        flat: tuple[Any, ...],
        sites: Sequence[Site] | None,
    ) -> None:
        self._found: dict[int, Any] = {id(s.code): at for at, s in enumerate(sites or ())}
        plan = Plan(guards, slots)
        values: list[Any] = []
        for node in plan.nodes:
            base = flat if node.base == ROOT else values[node.base]
            value = MISSING if base is MISSING else node.source.step(base)
            values.append(value)
            self._found.setdefault(id(value), node.source)
            self._found.setdefault(id(type(value)), TypeOf(node.source))
            if type(value) is types.FunctionType:
                self._found.setdefault(id(value.__code__), Attr(node.source, "__code__"))
        self._alive = values

    def of(self, obj: object) -> Source | int | None:
        """The first source that leads to an object; a number for the code of one of the sites."""
        return self._found.get(id(obj))


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO, places: Places, files: dict[str, Any]) -> None:
        super().__init__(file, protocol=5)
        self._places = places
        self._files = files
        self._storages: dict[int, int] = {}

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in _AS_THEY_ARE or any(obj is each for each in _READERS):
            return NotImplemented
        if is_a(obj, tuple) and vars(torch.return_types).get(kind.__name__) is kind:
            return NotImplemented  # a tuple with names
        rule = _RULES.get(kind)
        if rule is not None:
            return rule(self, obj)
        if issubclass(kind, Source):
            return _make_source, (kind, obj.base, obj.key, _extras(obj))
        return self._named(obj) or self._placed(obj) or _refuse(obj)

    def _named(self, obj: Any) -> Any:
        words = name_of(obj)
        if words is None:
            return None
        self._files |= files_now(files_of(obj))
        return _found_again, (digest(obj), *words)

    def _placed(self, obj: Any) -> Any:
        source = self._places.of(obj) if issubclass(type(obj), _BY_PLACE) else None
        if source is None:
            return None
        self._files |= files_now(files_of(obj))
        return _found_there, (digest(obj), source)

    def fake(self, fake: FakeTensor) -> Any:
        """A fake tensor by its looks, and which others share its memory."""
        special = fake.is_conj() or fake.is_neg() or fake.is_inference()
        if special or fake.layout is not torch.strided or fake._has_symbolic_sizes_strides:
            _refuse(fake)
        storage = fake.untyped_storage()
        size = storage.nbytes()
        number = self._storages.setdefault(storage._cdata, len(self._storages))
        looks = (fake.dtype, tuple(fake.shape), fake.stride(), fake.storage_offset())
        return _make_fake, (*looks, fake.fake_device, fake.requires_grad, number, size)


def _refuse(obj: Any) -> Any:
    raise NoWordsError(f"a {type(obj).__name__}: {describe(obj)}")


def _ref(writer: _Writer, ref: Ref) -> Any:
    return (Ref, (ref.get(),)) if not ref.dead else _refuse(ref)


def _partial(writer: _Writer, partial: functools.partial[Any]) -> Any:
    return (_part, ("run_plain",)) if partial.func is suspend_failed else _refuse(partial)


def _predicate(writer: _Writer, guard: Predicate) -> Any:
    told = getattr(guard.test, "__self__", None)
    if type(told) is not Registrations:
        return _refuse(guard)
    return _registrations, (told.pairs, guard.text, guard.origin)


_RULES: dict[type, Callable[[_Writer, Any], Any]] = {
    FakeTensor: _Writer.fake,
    Ref: _ref,
    Predicate: _predicate,
    Held: lambda writer, held: (Held, (held.obj,)),
    Site: lambda writer, site: (_site, (site.code, site.point)),
    Recovery: lambda writer, recovery: (_part, ("recovery",)),
    functools.partial: _partial,
}


def _extras(source: Source) -> tuple[Any, ...]:
    kind: Any = type(source)
    return tuple(getattr(source, name) for name in _slots(kind))


@functools.cache
def _slots(kind: Any) -> tuple[str, ...]:
    """What a kind of source knows besides its key."""
    names = (name for cls in kind.__mro__ for name in cls.__dict__.get("__slots__", ()))
    return tuple(name for name in names if name not in _OWN_SLOTS)


# -- reading --------------------------------------------------------------------------------------
class Reading:
    """What is known while words are read: the arguments of the call, where its frames stand, and
    the parts of the entry."""

    def __init__(
        self, flat: tuple[Any, ...], sites: tuple[Site, ...] | None, session: Session
    ) -> None:
        self.flat = flat
        self.sites = sites
        self.session = session
        self.parts: dict[str, Any] = {}
        self.mode = FakeTensorMode()
        self.storages: dict[int, Any] = {}
        self._values: dict[Source, Any] = {}
        self._met: dict[int, tuple[Any, Any]] = {}

    def value(self, source: Source | int) -> Any:
        """The value that a source has now; the code of a site of that number."""
        if isinstance(source, int):
            return self.sites[source].code if self.sites else MISSING
        if source not in self._values:
            base = self.flat if source.base is None else self.value(source.base)
            self._values[source] = MISSING if base is MISSING else source.step(base)
        return self._values[source]

    def met(self, obj: Any, words: Any) -> Any:
        """The object; what were two objects once must not be one now."""
        if self._met.setdefault(id(obj), (words, obj))[0] != words:
            raise NoWordsError("one object in the place of two")
        return obj

    @contextlib.contextmanager
    def begun(self) -> Iterator[None]:
        """What is read inside is read by this one."""
        outer = getattr(_readings, "now", None)
        _readings.now = self
        try:
            yield
        finally:
            _readings.now = outer


_readings = threading.local()


def _now() -> Reading:
    now: Reading = _readings.now
    return now


def _make_source(kind: Any, base: Source | None, key: Any, extras: tuple[Any, ...]) -> Any:
    made = kind.__new__(kind)
    Source.__init__(made, base, key)
    for name, value in zip(_slots(kind), extras, strict=True):
        setattr(made, name, value)
    return made


def _found_again(wanted: str, way: str, *words: Any) -> Any:
    return _like(wanted, find(way, *words), (way, *words))


def _found_there(wanted: str, source: Source | int) -> Any:
    return _like(wanted, _now().value(source), source)


def _like(wanted: str, obj: Any, words: Any) -> Any:
    if digest(obj) != wanted:
        raise NoWordsError("something is not what it was")
    return _now().met(obj, words)


def _registrations(
    pairs: list[tuple[type, ABCMeta]], text: str, origin: UserFrame | None
) -> Predicate:
    found = Registrations()
    for cls, base in pairs:
        found.add(cls, base)
    if not found.ask():
        raise NoWordsError("a class was registered for an abstract one")
    return Predicate((), found.hold, text, origin)


def _site(code: types.CodeType, point: Point) -> Site:
    return _now().session.site(code, point)


def _part(name: str) -> Any:
    return _now().parts[name]


def _make_fake(
    dtype: torch.dtype,
    shape: tuple[int, ...],
    stride: tuple[int, ...],
    offset: int,
    device: torch.device,
    requires_grad: bool,
    storage: int,
    size: int,
) -> FakeTensor:
    now = _now()
    held = now.storages.get(storage)
    if held is None:
        held = now.storages[storage] = torch.UntypedStorage(size, device="meta")
    meta = torch.empty(0, dtype=dtype, device="meta")
    meta.set_(held, offset, shape, stride)
    made = FakeTensor(now.mode, meta, device)
    if requires_grad:
        made.requires_grad_()
    return made


_READERS = (_make_source, _found_again, _found_there, _registrations, _site, _part, _make_fake)


def write(values: Any, places: Places, files: dict[str, Any]) -> bytes:
    """The words for values; NoWordsError if there are none for something in them.

    ``files`` gains those that named objects are from.
    """
    file = io.BytesIO()
    _Writer(file, places, files).dump(values)
    return file.getvalue()


def read(words: bytes) -> Any:
    """The values again, as this process has them; NoWordsError if it has not."""
    return pickle.loads(words)  # the folder is the user's own, as for libraries
