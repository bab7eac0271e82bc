"""The world outside, mirrored: each object is read once, under a guard, and has one value."""

from __future__ import annotations

import importlib.util
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import dynacap.guards.source as sources
from dynacap.errors import UserFrame
from dynacap.executor.finalizers import has_finalizer
from dynacap.executor.hashed_key import HashedKey, check_again
from dynacap.guards import array_kind, caches, iterators, kinds, raw, relations, tensor_kind
from dynacap.guards.constant import is_constant, same_constant
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.source import Source
from dynacap.values.base import (
    DELETED,
    MISSING,
    Const,
    Known,
    Lazy,
    OfProcess,
    Sentinel,
    UnreadConst,
    UserRaise,
    Value,
    constant_or,
    is_const,
)
from dynacap.values.build import CONST_TYPES, build
from dynacap.values.container import DictValue, Key, TupleValue
from dynacap.values.data_model import iterate
from dynacap.values.function import BoundMethod, FunctionValue
from dynacap.values.identity import IdentityValue
from dynacap.values.object import CellValue, ClassChange, PayloadValue, WrittenAttribute
from dynacap.values.tracer import Tracer
from dynacap.values.wording import unhashable

_IMMUTABLE_TYPE = 1 << 8
GUARD = 5  # instructions that one is worth
_READ_LATE = frozenset({int, float, complex, str, bytes})
_LOW = 1 << 24  # no object is at a lower address
_KINDS: dict[str, Any] = {
    name: getattr(module, name)
    for module in (array_kind, caches, iterators, kinds, relations, tensor_kind)
    for name in dir(module)
    if name[0].isupper()
}


def _as_plain_key(value: Value, hasher: Any, equals: Any) -> Any:
    """The constant that hashes and compares as the value does, or MISSING."""
    if isinstance(value, PayloadValue):
        own = hasher is not value.base.__hash__ or equals is not value.base.__eq__
        return MISSING if own else value.payload
    return constant_or(value, MISSING)


def _kept_as_it_is(key: Key, mapping: Any) -> bool:
    """Whether guards can say of a dict that it has this very key, or none like it."""
    if isinstance(key, (Value, HashedKey)):
        return False
    if not is_constant(key):
        return type(key).__eq__ is object.__eq__
    if not dict.__contains__(mapping, key):
        return sources.lacks_constant(mapping, key)
    return any(
        type(found) is type(key) and same_constant(found, key)
        for found in raw.dict_keys(mapping) or ()
    )


class Outside(Tracer):
    """Mirrors of outside objects and the guards on what was read of them."""

    look: Callable[[], None]  # breaks if much was done without any operation

    def __init__(self) -> None:
        super().__init__()
        self.guards = GuardSet()
        self.mirrors: dict[int, Value] = {}
        self._alive: list[Any] = []  # what `mirrors` knows by id must not die meanwhile
        # classes by their ids: their metaclass may say what their hash and equality are
        self._lookups: dict[tuple[int, str], Any] = {}
        self._plain: dict[int, type] = {}  # those whose attributes are named by text
        self._class_sources: dict[int, tuple[type, Source]] = {}
        self._class_changes: dict[int, ClassChange] = {}
        self._touched: dict[Value, None] = {}
        self.identity_keys: dict[Value, None] = {}  # objects that stood for keys by what they are
        self.whole_steps = -1  # those of the chain before the original instruction that runs now
        self.user_keys = False  # whether keys ask the program for their hashes
        self._met = set[bool]()  # whether keys were addresses; whether numbers as large
        self.keys_differ = False  # whether one of them was looked for and was none of the others
        self.effects = 0  # how many changes there were, of the same value too
        self._numbers: dict[Source, Value] = {}  # those that vary
        self._met_before = OfProcess.met
        self.work = 0  # instructions, those of nested loops too, and guards

    @property
    def bound(self) -> bool:
        """Whether what was found may hold in this process alone."""
        return OfProcess.met > self._met_before

    # -- guards ----------------------------------------------------------------------------------
    def guard(self, kind: str, source: Source, *expected: Any) -> None:
        """Add a guard of that kind, blamed on the user's current line."""
        origin = self.user_frame()
        self.work += GUARD
        self.look()
        if kind == "NotAliased":
            self.guards.add(relations.NotAliased((source, *expected), origin=origin))
            return
        if kind == "TypeIs":
            self._class_sources.setdefault(id(expected[0]), (expected[0], sources.TypeOf(source)))
        self.guards.add(_KINDS[kind](source, *expected, origin=origin))

    def user_frame(self) -> UserFrame | None:
        """The user's line that runs now."""
        raise NotImplementedError

    # -- objects ---------------------------------------------------------------------------------
    def wrap(self, real: Any, source: Source | None) -> Value:
        """The value of an object; the same one each time for the same object."""
        if type(real) in CONST_TYPES and (type(real) is not slice or is_constant(real)):
            if source is None:
                return Const(real)
            if type(real) in _READ_LATE:
                return self._number(real, source) or UnreadConst(real, source, self.guard)
            self.guard("IdIs" if type(real) is types.CodeType else "ConstEq", source, real)
            return Const(real, source=source)
        found = self.mirrors.get(id(real))
        if found is not None:
            if source is not None and found.source is not source:
                self._guard_again(found, real, source)
            return found
        value = build(self, real, source)
        self.mirrors.setdefault(id(real), value)
        self._alive.append(real)
        if issubclass(type(real), type) and source is not None:
            self._class_sources.setdefault(id(real), (real, source))
        return value

    def _number(self, real: Any, source: Source) -> Value | None:
        """A number that varies from call to call; the same value each time."""
        if type(real) is not int and type(real) is not float:
            return None
        found = self._numbers.get(source)
        if found is None:
            found = self.tensors.wrap_number(real, source)
            if found is None:
                return None
            self.guard("TypeIs", source, type(real))
            self._numbers[source] = found
        return found

    def _guard_again(self, found: Value, real: Any, source: Source) -> None:
        """An object that is known already was met on another path."""
        if found.source is None or isinstance(found, Known):
            self.guard("IdIs", source, real)
            if found.source is None:
                found.source = source
        elif found.source != source:
            self.guards.add(relations.SameObject(found.source, source, origin=self.user_frame()))

    def force(self, value: Value) -> Value:
        """A lazy value becomes what it stands for."""
        return self.wrap(value.real, value.source) if type(value) is Lazy else value

    def force_item(self, items: list[Value], index: int) -> Value:
        """``items[index]``, forced in place."""
        value = items[index]
        if type(value) is Lazy:
            value = items[index] = self.wrap(value.real, value.source)
        return value

    # -- dicts -----------------------------------------------------------------------------------
    def read_outside_dict(self, mirror: DictValue, key: Key) -> Value | None:
        """What an outside dict holds under a key, under a guard."""
        real, source = mirror.real, mirror.source
        if type(key) is not str and not _kept_as_it_is(key, real):
            return self._read_by_object_key(mirror, key)
        if not dict.__contains__(real, key):
            if source is not None and mirror.outside is None:
                self.guard("LacksKey", source, key)
            return None
        item_source = sources.DictItem(source, key) if source is not None else None
        value = self.wrap(dict.__getitem__(real, key), item_source)
        if type(value) is UnreadConst and source is not None and mirror.outside is None:
            self.guard("HasKey", source, key)  # the value may never be asked for
        mirror.over[key] = value
        return value

    def _read_by_object_key(self, mirror: DictValue, key: Key) -> Value | None:
        """The key is like one of the dict's without being it: all the dict's keys are asked."""
        self.outside_keys(mirror)
        if isinstance(key, HashedKey) and issubclass(mirror.cls, OrderedDict):
            self.graph_break("user-hash", "an OrderedDict asks its keys for their hashes each time")
        for index, real_key in enumerate(raw.dict_keys(mirror.real) or ()):
            if self.key_of(self._outside_key(mirror, index, real_key)) == key:
                source = mirror.source
                item = sources.DictItem(source, real_key) if source is not None else None
                value = self.wrap(sources.value_at(mirror.real, real_key), item)
                mirror.over[key] = value
                return value
        return None

    def outside_keys(self, mirror: DictValue) -> list[Key]:
        """The keys of an outside dict, guarded as a whole."""
        if mirror.outside is not None:
            return mirror.outside
        real_keys = tuple(raw.dict_keys(mirror.real) or ())
        self.meets(real_keys)
        found = mirror.outside = []
        if set(map(id, dict.__iter__(mirror.real))) != set(map(id, real_keys)):
            self.graph_break(
                "foreign-storage",
                "an OrderedDict of methods of dict, or of user's keys",
            )
        if mirror.source is not None and real_keys:
            self.guard("DictKeys", mirror.source, real_keys)
        elif mirror.source is not None:
            self.guard("Length", mirror.source, 0)
        for index, real_key in enumerate(real_keys):
            key = real_key
            if type(real_key) not in CONST_TYPES:
                value = self._outside_key(mirror, index, real_key)
                key = self.key_of(value)
                mirror.keyvals[key] = value
            found.append(key)
        return found

    def _outside_key(self, mirror: DictValue, index: int, real_key: Any) -> Value:
        source = sources.DictKey(mirror.source, index) if mirror.source is not None else None
        return self.wrap(real_key, source)

    def outside_key_value(self, mirror: DictValue, key: Key) -> Value:
        """The value of a key object of an outside dict."""
        if isinstance(key, HashedKey):
            return mirror.keyvals.get(key, key.value)
        if isinstance(key, Value):
            return mirror.keyvals.get(key, key)
        return self.wrap(key, None)

    def key_of(self, value: Value, container: type = dict) -> Key:
        """What stands for a value as a key of a dict or set."""
        self.keys_differ = self.keys_differ or container is not dict
        try:
            return self._hashed(value)
        except UserRaise as raised:
            text = [str(arg.constant()) for arg in getattr(raised.exc, "args", ()) if is_const(arg)]
            if raised.exc.cls is not TypeError or len(text) != 1:
                raise
            self.raise_real(unhashable(value.cls, text[0], container))

    def meets(self, key: Any, address: bool = False) -> None:
        if address or (isinstance(key, int | float) and abs(key) > _LOW):
            self._met.add(address)
        elif type(key) is tuple:
            for part in key:
                self.meets(part)
        if len(self._met) > 1:
            self.graph_break("address", "id() of an object is a key, and so is a large number")

    def _hashed(self, value: Value) -> Key:
        if isinstance(value, (Const, Known)):
            if value.source is not None:
                self.meets(value.value)
            try:
                hash(value.value)
            except TypeError as error:
                self.raise_real(error)
            return value.value
        if type(value) is TupleValue and value.cls.__hash__ is tuple.__hash__:
            return tuple(self._hashed(self.force(item)) for item in value.items)
        if isinstance(value, (FunctionValue, BoundMethod)) and is_const(value):
            return value.constant()
        if isinstance(value, IdentityValue):
            self.meets(None, address=True)
            self.identity_keys[value.obj] = None
            return value.key()
        hasher = self.lookup(value.cls, "__hash__")
        if hasher is None:
            self.raise_error(TypeError, f"unhashable type: {value.title!r}")
        if hasher in (object.__hash__, types.FunctionType.__hash__) or self.tensors.owns(value):
            self.identity_keys[value] = None
            return value
        constant = _as_plain_key(value, hasher, self.lookup(value.cls, "__eq__"))
        return HashedKey(self, value) if constant is MISSING else constant

    check_keys = check_again

    def lacks(self, key: Key) -> None:
        """A key was looked for in a dict, and not found."""
        self.keys_differ = self.keys_differ or isinstance(key, (Value, tuple))

    def mapping_items(
        self, mapping: Value, called: Callable[[], str] | None = None
    ) -> list[tuple[Value, Value]]:
        """The items of a mapping that is spread into a dict, or into a call of what is named."""
        if isinstance(mapping, DictValue):
            return mapping.items(self)
        keys = self.find_attribute(mapping, "keys")
        if keys is None:
            kind = mapping.cls.__name__
            if called is not None:
                self.raise_error(
                    TypeError, f"{called()} argument after ** must be a mapping, not {kind}"
                )
            self.raise_error(TypeError, f"{kind!r} object is not a mapping")
        listed = self.unpack(iterate(self, self.call(keys, [])))
        return [(key, self.get_item(mapping, key)) for key in listed]

    # -- classes ---------------------------------------------------------------------------------
    def lookup(self, cls: type, name: str) -> Any:
        """The raw attribute of a class found through its MRO, or MISSING; guarded."""
        key = (id(cls), name)
        found = self._lookups.get(key, DELETED)
        if found is not DELETED:
            return found
        found = MISSING
        for base in self._mro(cls):
            change = self._class_changes.get(id(base))
            if change is not None and name in change.written:
                return WrittenAttribute(change.written[name])
            found = raw.type_dict(base).get(name, MISSING)
            if found is not MISSING:
                break
        self._lookups[key] = found
        if not raw.type_flags(cls) & _IMMUTABLE_TYPE:
            source = self.class_source(cls)
            if found is MISSING:
                self.guard("ClassLacks", source, name)
            elif isinstance(found, types.FunctionType):
                self.guard("IdIs", sources.ClassAttr(source, name), found)
            else:
                self.guard("TypeIs", sources.ClassAttr(source, name), type(found))
        return found

    def _mro(self, cls: type) -> tuple[type, ...]:
        """The MRO of a class whose dicts run none of the program's code where they are asked."""
        if id(cls) not in self._plain:
            if not raw.type_mro(cls):
                self.graph_break("class-creation", f"{cls.__name__} is half made")
            made = [
                base for base in raw.type_mro(cls) if not raw.type_flags(base) & _IMMUTABLE_TYPE
            ]
            if any(type(key) is not str for base in made for key in raw.type_dict(base)):
                self.graph_break("class-dict", f"{cls.__name__} has attributes that no text names")
            self._plain[id(cls)] = cls
        mro: tuple[type, ...] = raw.type_mro(cls)
        return mro

    def write_class(self, owner: Value, name: str, value: Value) -> None:
        """Set an attribute of a class; subclasses that inherit it see it too."""
        cls = owner.known()
        change = self._class_changes.get(id(cls))
        if change is None:
            change = self._class_changes[id(cls)] = ClassChange(owner, cls)
        change.written[name] = value
        self._lookups = {key: held for key, held in self._lookups.items() if key[1] != name}
        self.touch(change)

    def class_source(self, cls: type) -> Source:
        """Where a class can be found again."""
        found = self._class_sources.get(id(cls))
        if found is None:
            found = self._class_sources[id(cls)] = cls, self._find_class(cls)
        return found[1]

    def _find_class(self, cls: type) -> Source:
        """As a base of a class that is known already, else held by the entry."""
        for known, source in self._class_sources.values():
            for index, base in enumerate(raw.type_mro(known) or ()):
                if base is cls:
                    found = sources.SeqItem(sources.Attr(source, "__mro__"), index)
                    self.guard("IdIs", found, cls)
                    return found
        return sources.Const(cls, cls.__qualname__)

    def class_attribute(self, cls: type, name: str) -> Value:
        """The raw attribute as a value with a source."""
        found = self.lookup(cls, name)
        if type(found) is WrittenAttribute:
            return found.value
        if raw.type_flags(cls) & _IMMUTABLE_TYPE:
            return self.wrap(found, None)
        return self.wrap(found, sources.ClassAttr(self.class_source(cls), name))

    def class_value(self, cls: type) -> Value:
        """The class itself as a value."""
        if cls.__flags__ & _IMMUTABLE_TYPE:
            return self.wrap(cls, None)
        return self.wrap(cls, self.class_source(cls))

    # -- functions -------------------------------------------------------------------------------
    def globals_of(self, function: FunctionValue) -> tuple[DictValue, DictValue]:
        """The mirrors of the globals and builtins that a function reads."""
        owner = function.globals_of
        assert owner.real is not None
        real: Any = owner.real
        source = owner.source
        found = self.wrap(real.__globals__, sources.FunctionGlobals(source) if source else None)
        known = sources.FunctionBuiltins(source) if source else None
        builtins = self.wrap(real.__builtins__, known)
        assert isinstance(found, DictValue) and isinstance(builtins, DictValue)
        return found, builtins

    def closure(self, function: FunctionValue) -> list[CellValue]:
        """The cells of a function's free variables."""
        if function.cells is not None:
            return function.cells
        assert function.real is not None
        names = function.code.co_freevars
        cells = []
        for index, (name, cell) in enumerate(
            zip(names, function.real.__closure__ or (), strict=True)
        ):
            source = sources.ClosureCell(function.source, index, name) if function.source else None
            value = self.wrap(cell, source)
            assert isinstance(value, CellValue)
            cells.append(value)
        function.cells = cells
        return cells

    def cell_content(self, cell: CellValue) -> Value | None:
        """What a cell holds, or None if it is empty."""
        content = cell.content
        if content is DELETED:
            if cell.real is None or cell.dirty:
                return None
            content = cell.content = self._read_cell(cell)
        if type(content) is Lazy:
            content = cell.content = self.force(content)
        return content if isinstance(content, Value) else None

    def _read_cell(self, cell: CellValue) -> Value:
        name = cell.source.name() if cell.source is not None else "cell"
        try:
            content = cell.real.cell_contents
        except ValueError:
            self.graph_break("empty-cell", f"the closure variable {name} is not set")
        return self.wrap(content, sources.CellContents(cell.source, name) if cell.source else None)

    def set_cell(self, cell: CellValue, content: Value | Sentinel) -> None:
        """Write a cell; the outside cell sees it when the side effects are replayed."""
        cell.content = content
        cell.dirty = True
        self.touch(cell)

    # -- effects ---------------------------------------------------------------------------------
    def touch(self, value: Value) -> None:
        """Note that a mutable value changed."""
        self._touched[value] = None
        self.effects += 1

    def let_go(self, value: Value) -> None:
        """Something lets go of an object; breaks if its death can be seen."""
        real = getattr(value, "real", None)
        if real is not None and has_finalizer(real):
            self.graph_break("finalizer", f"a {type(real).__name__} may die here")

    @property
    def touched(self) -> list[Value]:
        """What changed, in the order of first changes."""
        return list(self._touched)

    # -- imports ---------------------------------------------------------------------------------
    def import_module(self, name: str, level: int, fromlist: Any, package: Any) -> Value:
        """``import`` of what is imported already; anything else breaks."""
        full = name
        if level:
            full = importlib.util.resolve_name("." * level + name, package)
        module = sys.modules.get(full)
        if module is None:
            self.graph_break("import", f"{full} is not imported yet")
        if not fromlist and not level:
            full = full.partition(".")[0]
            module = sys.modules[full]
        found = vars(module) if isinstance(module, types.ModuleType) else {}
        for sub in fromlist or ():
            if sub not in found:  # or what the module runs knows it
                self.graph_break("import", f"{full}.{sub} is not imported yet")
        return self.wrap(module, sources.SysModule(full))
