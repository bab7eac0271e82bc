"""Describe a value as it is now, so that two runs can be compared after the fact.

A description is a tree of `Branch` and `Leaf`. An object that was met before becomes `Again`,
which names the place where it was first met: that is how aliasing shows. Tensors and arrays also
say which earlier one they share memory with.
"""

from __future__ import annotations

import array as arrays
import collections
import io
import random
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

__all__ = ["Again", "Branch", "Leaf", "Node", "Snapshot", "snapshot"]

# An address differs between two runs of one program and means nothing.
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
# Module hooks are kept under numbers from a counter of the whole process.
HOOK_TABLE = re.compile(r"^_.*hooks\w*$")
# Marks that torch.compile leaves, some with ids in them; and the way to what was decorated.
MARKS = re.compile(r"^(_torch_?dynamo|_dynamo|_is_torch_compile$|__wrapped__$)")
# Owned by one side only, or a cache that no program can see the use of.
HIDDEN_ATTRIBUTES = frozenset(
    {"_compiled_call_impl", "__weakref__", "__orig_class__", "__vectorcalloffset__"}
)
# What the interpreter keeps in a class, and members that only stand for an instance's storage.
CLASS_MACHINERY = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__slotnames__", "_abc_impl"}
)
MEMBERS = (types.MemberDescriptorType, types.GetSetDescriptorType)
FOREIGN = frozenset({"torch", "numpy", "transformers", "dynacap", "attr", "hypothesis", "pytest"})
# How the state of each kind of random generator is read.
STREAMS: dict[type, Callable[[Any], Any]] = {
    random.Random: lambda one: one.getstate(),
    np.random.Generator: lambda one: repr(one.bit_generator.state),
    np.random.RandomState: lambda one: (
        repr(one.get_state()[2:]) + one.get_state()[1].tobytes().hex()
    ),
    torch.Generator: lambda one: one.get_state().numpy().tobytes(),
}
ITERATOR_TYPES: tuple[type, ...] = (
    type(iter([])),
    type(iter(())),
    type(iter("a")),
    type(iter(b"")),
    type(iter(bytearray())),
    type(iter(range(1))),
    type(iter(range(2**70))),
    type(iter({})),
    type(iter({}.values())),
    type(iter({}.items())),
    type(iter(set())),
    type(reversed([])),
    type(reversed({})),
    type(reversed({}.values())),
    type(reversed({}.items())),
    enumerate,
    zip,
    map,
    filter,
)


@dataclass(frozen=True)
class Leaf:
    """A value that is compared as a whole: a number, a text, a tensor's numbers."""

    value: Any


@dataclass(frozen=True)
class Again:
    """The object that was first met at `path`."""

    path: str


@dataclass(frozen=True)
class Branch:
    """A value with parts; `kind` names its type, the keys of `parts` extend the path."""

    kind: str
    parts: dict[str, Node] = field(default_factory=dict)


Node = Leaf | Again | Branch
Describe = Callable[["Snapshot", Any, str], Node]


def _is_plain(value: object) -> bool:
    """Whether it makes no difference that an object is the same as another like it."""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, (*ATOMS, type, frozenset, np.generic))


class Snapshot:
    """Describes values one after the other, remembering objects and memory already met."""

    def __init__(self) -> None:
        self.tensors: list[tuple[str, torch.Tensor]] = []
        self._objects: dict[int, str] = {}
        self._memory: dict[int, str] = {}
        self._alive: list[object] = []  # ids stay unique only while the objects live

    def describe(self, value: object, path: str) -> Node:
        """Describe `value`, which stands at `path`."""
        if isinstance(value, ATOMS):
            return Leaf(without_addresses(value) if isinstance(value, str) else value)
        first = self._objects.get(id(value))
        if first is not None and not _is_plain(value):
            return Again(first)
        self._objects[id(value)] = path
        self._alive.append(value)
        return find_describer(type(value))(self, value, path)

    def memory_of(self, address: int, path: str) -> str:
        """Where the memory at `address` was first met, or "own" when that is here."""
        if address == 0:
            return "none"
        first = self._memory.setdefault(address, path)
        return "own" if first == path else first

    def parts(self, items: Iterable[tuple[str, object]], path: str) -> dict[str, Node]:
        """Describe labelled parts of the value at `path`."""
        return {label: self.describe(value, path + label) for label, value in items}


def snapshot(**values: object) -> dict[str, Node]:
    """Describe named values together: aliasing between them is seen."""
    taken = Snapshot()
    with deep_recursion():
        return {name: taken.describe(value, name) for name, value in values.items()}


@contextmanager
def deep_recursion(limit: int = 20_000) -> Iterator[None]:
    """Let nested data be walked by recursion, however little stack the program was given."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, limit))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def without_addresses(text: str) -> str:
    """`text` with memory addresses blanked."""
    return ADDRESS.sub("0x...", text)


ATOMS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    type(...),
    type(NotImplemented),
    range,
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)


def type_name(value: object) -> str:
    """What a type is called in a description."""
    return type(value).__qualname__


def tensor(taken: Snapshot, value: torch.Tensor, path: str) -> Node:
    """A tensor: its facts, its numbers, and whose memory it shares.  No subclass is asked."""
    with torch._C.DisableTorchFunctionSubclass():
        return _tensor(taken, value, path)


def _tensor(taken: Snapshot, value: torch.Tensor, path: str) -> Node:
    if torch.nn.parameter.is_lazy(value):
        return Branch(f"uninitialized {type_name(value)}")
    if value.is_nested:
        return Branch(f"nested {type_name(value)}", taken.parts(numbered(value.unbind()), path))
    taken.tensors.append((path, value))
    facts: dict[str, Node] = {
        "dtype": Leaf(str(value.dtype)),
        "shape": Leaf(tuple(value.shape)),
        "device": Leaf(str(value.device)),
        "layout": Leaf(str(value.layout)),
        "requires_grad": Leaf(value.requires_grad),
        "is_leaf": Leaf(value.is_leaf),
    }
    if value.layout is torch.strided and value.device.type != "meta":
        try:
            facts |= strided_facts(taken, value, path)
        except RuntimeError as error:  # a tensor without data of its own: fake, functional
            facts["unreadable"] = Leaf(type(error).__name__)
    elif value.device.type != "meta":
        facts["numbers"] = Leaf(value.detach().to_dense().clone())
    extra = vars(value) if type(value).__dictoffset__ else {}
    facts |= taken.parts(((f".{k}", v) for k, v in extra.items() if not MARKS.match(k)), path)
    return Branch(type_name(value), facts)


def strided_facts(taken: Snapshot, value: torch.Tensor, path: str) -> dict[str, Node]:
    """What only a tensor with data of its own can tell."""
    with torch.no_grad():
        raw = value.detach()
        # What a wrapper computes has new memory each time, perhaps that of the last one.
        if type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
            memory = "own"
        else:
            memory = taken.memory_of(raw.untyped_storage().data_ptr(), path)
        numbers = raw.resolve_conj().resolve_neg().clone()
    return {
        "stride": Leaf(value.stride()),
        "offset": Leaf(value.storage_offset()),
        "shares memory with": Leaf(memory),
        "conj": Leaf(value.is_conj()),
        "neg": Leaf(value.is_neg()),
        "numbers": Leaf(numbers),
    }


def array(taken: Snapshot, value: np.ndarray[Any, Any], path: str) -> Node:
    """A NumPy array, as a tensor is described."""
    owner: object = value
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    address = owner.ctypes.data if isinstance(owner, np.ndarray) else value.ctypes.data
    numbers: Node = Leaf(value.copy())
    if value.dtype == object:
        numbers = Branch("objects", taken.parts(numbered(value.ravel().tolist()), path))
    return Branch(
        type_name(value),
        {
            "dtype": Leaf(str(value.dtype)),
            "shape": Leaf(value.shape),
            "stride": Leaf(value.strides),
            "shares memory with": Leaf(taken.memory_of(address, path)),
            "writeable": Leaf(value.flags.writeable),
            "numbers": numbers,
        },
    )


def array_scalar(taken: Snapshot, value: np.generic, path: str) -> Node:
    """A NumPy scalar by its Python value."""
    held = np.asarray(value) if value.dtype.kind in "fc" else value.item()
    return Branch(type_name(value), {"value": Leaf(held)})


def numbered(values: Iterable[object]) -> Iterator[tuple[str, object]]:
    """Items labelled as subscripts."""
    return ((f"[{index}]", value) for index, value in enumerate(values))


def sequence(taken: Snapshot, value: Iterable[object], path: str) -> Node:
    """A sequence: its items in order, whatever its own `__iter__` would say."""
    items = value
    if isinstance(value, (list, tuple, collections.deque)):
        # A subclass may have an __iter__ of its own, which is the program's business.
        items = [
            type_base(value).__getitem__(value, i) for i in range(type_base(value).__len__(value))
        ]
    return with_attributes(taken, value, path, taken.parts(numbered(items), path))


def type_base(value: object) -> Any:
    """The built-in sequence type that a value is an instance of."""
    return next(base for base in (list, tuple, collections.deque) if isinstance(value, base))


def unordered(taken: Snapshot, value: Iterable[object], path: str) -> Node:
    """A set, in an order that does not depend on hashes."""
    inside = sorted(value, key=lambda item: (type_name(item), without_addresses(repr(item))))
    return with_attributes(taken, value, path, taken.parts(numbered(inside), path))


def mapping(taken: Snapshot, value: dict[Any, Any], path: str) -> Node:
    """A dict: its keys in order, and what each holds."""
    kind = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
    pairs = list(kind.items(value))
    keys = Branch("keys", taken.parts(numbered(key for key, _ in pairs), path + ".keys"))
    named = ((f"[{key_text(key)}]", item) for key, item in pairs)
    return with_attributes(taken, value, path, {"keys": keys, **taken.parts(named, path)})


def key_text(key: object) -> str:
    """A dict's key in a label."""
    return without_addresses(repr(key)) if isinstance(key, ATOMS) else f"<{type_name(key)}>"


def with_attributes(taken: Snapshot, value: object, path: str, parts: dict[str, Node]) -> Branch:
    """The parts, and the instance attributes that a subclass may have."""
    own = attributes(value) if not isinstance(value, collections.defaultdict) else []
    return Branch(type_name(value), parts | taken.parts(own, path))


def attributes(value: object) -> list[tuple[str, object]]:
    """Instance attributes, from `__dict__` and from slots."""
    found: dict[str, object] = {}
    for owner in reversed(type(value).__mro__):
        for name, member in vars(owner).items():
            if isinstance(member, types.MemberDescriptorType) and owner.__module__ != "builtins":
                try:
                    found[name] = member.__get__(value, owner)
                except AttributeError:
                    continue
    found.update(getattr(value, "__dict__", {}))
    return [
        (f".{name}", item)
        for name, item in found.items()
        if name not in HIDDEN_ATTRIBUTES and not MARKS.match(name)
    ]


def exception(taken: Snapshot, value: BaseException, path: str) -> Node:
    """An exception: its text, arguments, cause, context and attributes."""
    parts = {
        "text": Leaf(without_addresses(str(value))),
        "suppress_context": Leaf(value.__suppress_context__),
    }
    linked = [
        (".args", value.args),
        (".__cause__", value.__cause__),
        (".__context__", value.__context__),
    ]
    return Branch(type_name(value), parts | taken.parts([*linked, *attributes(value)], path))


def function(taken: Snapshot, value: types.FunctionType, path: str) -> Node:
    """A Python function: what it closes over, its defaults and attributes."""
    cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
    inside: list[tuple[str, object]] = [(f".<{name}>", cell) for name, cell in cells]
    inside += [(".__defaults__", value.__defaults__), (".__kwdefaults__", value.__kwdefaults__)]
    inside += [(f".{k}", v) for k, v in vars(value).items() if not MARKS.match(k)]
    return Branch(f"function {value.__qualname__}", taken.parts(inside, path))


def cell(taken: Snapshot, value: types.CellType, path: str) -> Node:
    """A closure cell and what it holds."""
    try:
        return Branch("cell", taken.parts([("", value.cell_contents)], path))
    except ValueError:
        return Branch("empty cell")


def method(taken: Snapshot, value: types.MethodType, path: str) -> Node:
    """A bound method: the object and the function."""
    inside = [(".__self__", value.__self__), (".__func__", value.__func__)]
    return Branch("method", taken.parts(inside, path))


def named(taken: Snapshot, value: Any, path: str) -> Node:
    """A function, class or module by its name."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", "?")
    return Leaf(f"{type_name(value)} {name}")


def generator(taken: Snapshot, value: types.GeneratorType[Any, Any, Any], path: str) -> Node:
    """A generator, without moving it."""
    return Branch("generator", {"name": Leaf(value.__name__), "over": Leaf(value.gi_frame is None)})


def iterator(taken: Snapshot, value: Any, path: str) -> Node:
    """Iterators of the language tell where they stand through `__reduce__`, without moving."""
    try:
        state = value.__reduce__()[1:]
    except RuntimeError as error:  # what it walks has another size by now
        return Leaf(f"{type_name(value)}: {error}")
    return Branch(type_name(value), taken.parts(numbered(state), path))


def module(taken: Snapshot, value: torch.nn.Module, path: str) -> Node:
    """An nn.Module by its attributes; hooks without their ids, which count up for ever."""
    inside = [
        (
            name,
            list(item.values()) if HOOK_TABLE.match(name[1:]) and isinstance(item, dict) else item,
        )
        for name, item in attributes(value)
    ]
    return Branch(type_name(value), taken.parts(inside, path))


def cut(taken: Snapshot, value: slice, path: str) -> Node:
    """A slice by its bounds."""
    bounds = {".start": value.start, ".stop": value.stop, ".step": value.step}
    return Branch("slice", taken.parts(bounds.items(), path))


def numbers(taken: Snapshot, value: Any, path: str) -> Node:
    """An array of numbers or bytes."""
    return Branch(type_name(value), {"items": Leaf(repr(list(value)))})


def user_class(taken: Snapshot, value: type, path: str) -> Node:
    """A class: one of the program's own by what it holds, any other by its name."""
    root = value.__module__.partition(".")[0]
    if root in sys.stdlib_module_names or root in FOREIGN:
        return named(taken, value, path)
    held = [
        (f".{name}", item)
        for name, item in vars(value).items()
        if name not in CLASS_MACHINERY and not isinstance(item, MEMBERS)
    ]
    return Branch(f"class {value.__qualname__}", taken.parts(held, path))


def stream(taken: Snapshot, value: Any, path: str) -> Node:
    """A generator of random numbers by its state."""
    state = next(read(value) for kind, read in STREAMS.items() if isinstance(value, kind))
    return Branch(type_name(value), {"state": Leaf(hash(state))})


def text_buffer(taken: Snapshot, value: Any, path: str) -> Node:
    """A buffer in memory by what was written to it."""
    return Branch(type_name(value), {"text": Leaf(value.getvalue())})


def as_it_is(taken: Snapshot, value: Node, path: str) -> Node:
    """A description that was taken before."""
    return value


def instance(taken: Snapshot, value: object, path: str) -> Node:
    """Any other object by its attributes."""
    return Branch(type_name(value), taken.parts(attributes(value), path))


DESCRIBERS: dict[type, Describe] = {
    torch.Tensor: tensor,
    np.ndarray: array,
    np.generic: array_scalar,
    list: sequence,
    tuple: sequence,
    collections.deque: sequence,
    set: unordered,
    frozenset: unordered,
    dict: mapping,
    BaseException: exception,
    types.FunctionType: function,
    types.CellType: cell,
    types.MethodType: method,
    types.BuiltinFunctionType: named,
    types.ModuleType: named,
    type: user_class,
    Branch: as_it_is,
    arrays.array: numbers,
    bytearray: numbers,
    memoryview: numbers,
    io.StringIO: text_buffer,
    slice: cut,
    types.GeneratorType: generator,
    torch.nn.Module: module,
    object: instance,
    **dict.fromkeys(ITERATOR_TYPES, iterator),
    **dict.fromkeys(STREAMS, stream),
}


def find_describer(kind: type) -> Describe:
    """The describer of the nearest base class that has one."""
    return next(DESCRIBERS[base] for base in kind.__mro__ if base in DESCRIBERS)
