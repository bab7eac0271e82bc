"""Reading objects as they lie in memory: no ``__getattr__``, property or ``__eq__`` ever runs.

These functions are the meaning of the steps that sources take; the C checker does the same.
What is not there is MISSING.
"""

import collections
import sys
import types
from collections.abc import Iterator
from typing import Any, Final

HEAP_TYPE: Final = 1 << 9  # Py_TPFLAGS_HEAPTYPE: made by a class statement, not in static memory
IMMUTABLE_TYPE: Final = 1 << 8  # Py_TPFLAGS_IMMUTABLETYPE: no attribute set, no __class__ assigned


class _Missing:
    """The type of MISSING."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()

_deque: Any = collections.deque
_FIELDS = (types.GetSetDescriptorType, types.MemberDescriptorType)
type_dict = type.__dict__["__dict__"].__get__
type_mro = type.__dict__["__mro__"].__get__
type_flags = type.__dict__["__flags__"].__get__


def is_a(obj: object, cls: type | tuple[type, ...]) -> bool:
    """``isinstance`` by the real type alone; isinstance also asks ``obj.__class__``."""
    return issubclass(type(obj), cls)


def derives(cls: type, base: type) -> bool:
    """``issubclass`` by the MRO alone; issubclass also asks the metaclass of ``base``."""
    return type.__subclasscheck__(base, cls)


def storage(kind: type, obj: object) -> Iterator[Any]:
    """The items of a built-in container, whatever its subclass says of iteration."""
    items: Iterator[Any] = kind.__iter__(obj)  # type: ignore[attr-defined]
    return items


def type_lookup(cls: type, name: str) -> object:
    """The attribute that the first class of the MRO to define it holds, unbound."""
    for base in type_mro(cls):
        found = type_dict(base).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def class_attribute(cls: object, name: str) -> object:
    """:func:`type_lookup` where ``cls`` is a class."""
    return type_lookup(cls, name) if is_a(cls, type) else MISSING  # type: ignore[arg-type]


def super_attribute(cls: object, after: object, name: str) -> object:
    """What ``super(after, ...)`` finds in the MRO of ``cls``, unbound."""
    if not is_a(cls, type):
        return MISSING
    mro = type_mro(cls)
    for position, base in enumerate(mro):
        if base is after:
            for later in mro[position + 1 :]:
                found = type_dict(later).get(name, MISSING)
                if found is not MISSING:
                    return found
    return MISSING


def field(obj: object, name: str) -> object:
    """An attribute that C code or ``__slots__`` defines: ``fn.__code__``, ``method.__self__``."""
    descriptor: Any = type_lookup(type(obj), name)
    if type(descriptor) not in _FIELDS:
        return MISSING
    try:
        return descriptor.__get__(obj, type(obj))
    except AttributeError:
        return MISSING  # a slot that has no value


def instance_dict(obj: object) -> object:
    """The dict of an instance, which ``__dict__`` as the class sees it may hide."""
    if is_a(obj, type):
        return MISSING  # what a class has is a read-only view; ClassAttr looks there
    for base in type_mro(type(obj)):
        descriptor = type_dict(base).get("__dict__", MISSING)
        if type(descriptor) in _FIELDS:
            return descriptor.__get__(obj, type(obj))
    return MISSING


def dict_item(obj: Any, key: str) -> object:
    """The value stored under a string, by hash, as ``dict`` itself looks it up."""
    return dict.get(obj, key, MISSING) if is_a(obj, dict) else MISSING


def dict_keys(obj: Any) -> "list[object] | None":
    """The keys in the order that iteration gives them, or None for what is no dict."""
    if is_a(obj, collections.OrderedDict):
        if any(map(_asks_program, dict.__iter__(obj))):
            return None
        try:
            return list(collections.OrderedDict.__iter__(obj))
        except Exception:  # it asks its keys for their hashes, which may be others now
            return None
    return list(dict.__iter__(obj)) if is_a(obj, dict) else None


def _asks_program(key: Any) -> bool:
    """Whether hashing or comparing a key runs code in Python."""
    if type(key) is tuple:
        return any(map(_asks_program, key))
    asked = (type_lookup(type(key), name) for name in ("__eq__", "__hash__"))
    return types.FunctionType in map(type, asked)


def is_computed(descriptor: Any, obj: object) -> bool:
    """Whether a field gives annotations which the program's ``__annotate__`` computes (from 3.14
    on), or which are kept when they are read.
    """
    annotate = vars(descriptor.__objclass__).get("__annotate__")
    if annotate is None or descriptor.__name__ not in ("__annotations__", "__annotate__"):
        return False
    if descriptor.__objclass__ in (classmethod, staticmethod):
        return True
    return descriptor is not annotate and annotate.__get__(obj) is not None


def sequence_item(obj: object, index: int) -> object:
    """An item of a list's or tuple's own storage."""
    kind: Any = list if is_a(obj, list) else tuple if is_a(obj, tuple) else None
    if kind is None or index >= kind.__len__(obj):
        return MISSING
    return kind.__getitem__(obj, index)


def deque_item(obj: Any, index: int) -> object:
    """An item of a deque's own storage."""
    if not is_a(obj, _deque) or index >= _deque.__len__(obj):
        return MISSING
    found: object = _deque.__getitem__(obj, index)
    return found


def function_field(obj: object, name: str) -> Any:
    """A field of a Python function; MISSING for any other callable."""
    if type(obj) is not types.FunctionType:
        return MISSING
    return getattr(obj, name)


def cell_contents(obj: object) -> object:
    """What a closure cell holds; an empty one holds nothing."""
    if type(obj) is not types.CellType:
        return MISSING
    try:
        return obj.cell_contents
    except ValueError:
        return MISSING


def sys_module(name: str) -> object:
    """A module that has been imported."""
    return dict_item(sys.modules, name)


_SIZED: tuple[Any, ...] = (
    dict,
    list,
    tuple,
    set,
    frozenset,
    str,
    bytes,
    bytearray,
    collections.deque,
)


def length(obj: object) -> int | None:
    """The number of items in a builtin container or a subclass of one, whatever its ``__len__``."""
    for kind in _SIZED:
        if is_a(obj, kind):
            count: int = kind.__len__(obj)
            return count
    return None
