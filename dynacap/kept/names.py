"""Objects by names that hold in another process too, and digests of what they are like.

A name alone is not enough: a function is the same to a capture only if its code is.  What
cannot be named has no words, and no capture that relies on it is kept.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import hashlib
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dynacap import marks
from dynacap.guards.constant import is_constant, try_fingerprint
from dynacap.guards.raw import (
    MISSING,
    instance_dict,
    is_a,
    type_dict,
    type_flags,
    type_lookup,
    type_mro,
)

Words = tuple[Any, ...]
_Named = collections.namedtuple("_Named", "field")
FIELD: type = type(vars(_Named)["field"])
_DESCRIPTORS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)
# Where objects are looked for that do not say truly where they are.
_HOMES = (
    *("builtins", "types", "typing", "collections", "operator", "math", "functools"),
    *("torch", "torch._C", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft"),
    *("dynacap.codegen.runtime", "torch.amp.autocast_mode"),
)
_SPACES = {"torch._C._nn": torch._C._nn, "torch._C._VariableFunctions": torch._C._VariableFunctions}


class NoWordsError(Exception):
    """There is no name for an object, or none of that name here."""


def name_of(obj: Any) -> Words | None:
    """How to find an object again, by :func:`find`; None if that cannot be said."""
    for way, (kinds, describe) in _WAYS.items():
        if is_a(obj, kinds):
            words = describe(obj)
            if words is not None and _found(way, words) is obj:
                return (way, *words)
    words = _homes().get(id(obj))
    return None if words is None else ("home", *words)


def find(way: str, *words: Any) -> Any:
    """The object of that name; NoWordsError if there is none."""
    found = _found(way, words)
    if found is MISSING:
        raise NoWordsError(f"there is no {way} {words}")
    return found


def _found(way: str, words: Words) -> Any:
    try:
        return _FINDERS[way](*words)
    except (KeyError, AttributeError, TypeError):
        return MISSING


# -- ways -----------------------------------------------------------------------------------------
def _module_name(module: Any) -> Words | None:
    name = _dict_of(module).get("__name__")
    return (name,) if type(name) is str else None


def _dict_of(module: Any) -> dict[str, Any]:
    found: Any = instance_dict(module)
    return {} if found is MISSING else found


def _module(name: str) -> Any:
    return sys.modules.get(name, MISSING)


def _path(obj: Any) -> Words | None:
    module, qualname = _field(obj, "__module__"), _field(obj, "__qualname__")
    if not isinstance(module, str) or not isinstance(qualname, str) or "<" in qualname:
        return None
    return module, qualname


def _field(obj: Any, name: str) -> Any:
    if not is_a(obj, type):
        return getattr(obj, name, None)
    try:
        return type.__dict__[name].__get__(obj)
    except AttributeError:  # where it does not say so
        return None


def _member(module: str, qualname: str) -> Any:
    """What stands at the end of a path, each step read as it lies in a namespace."""
    space: Any = vars(sys.modules[module])
    *path, last = qualname.split(".")
    for part in path:
        space = type_dict(space[part])
    return space[last]


def _function(module: str, qualname: str) -> Any:
    found = _member(module, qualname)
    if isinstance(found, staticmethod | classmethod):
        return found.__func__
    return found.fget if isinstance(found, property) else found


def _c_function(function: Any) -> Words | None:
    home = function.__self__
    name = _module_name(home) if is_a(home, types.ModuleType) else None
    return None if name is None else (*name, function.__name__)


def _descriptor(obj: Any) -> Words | None:
    owner = _path(obj.__objclass__)
    return None if owner is None else (*owner, obj.__name__)


def _described(module: str, qualname: str, name: str) -> Any:
    return type_dict(_class(module, qualname))[name]


def _class(module: str, qualname: str) -> Any:
    try:
        return _member(module, qualname)
    except KeyError:
        return _named_by_home("types", qualname)


def _named_by_home(home: str, name: str) -> Any:
    return vars(sys.modules[home])[name]


def _enum_member(member: Any) -> Words | None:
    owner = _path(type(member))
    return None if owner is None else (*owner, _dict_of(member).get("_name_"))


def _operator(obj: Any) -> Words | None:
    words = tuple(str(obj).split("."))
    return words if words[0] in _OWN_OPERATORS else None  # others do what their program says


def _operators(space: Any) -> Words | None:
    return (space.name,) if space.name in _OWN_OPERATORS else None


def _torch_operator(space: str, name: str, overload: str = "") -> Any:
    packet = getattr(getattr(torch.ops, space), name)
    return getattr(packet, overload) if overload else packet


_OWN_OPERATORS = frozenset({"aten", "prims", "prim", "profiler"})
_OPERATORS = (torch._ops.OpOverload, torch._ops.OpOverloadPacket)
_WAYS: dict[str, tuple[Any, Callable[[Any], Words | None]]] = {
    "module": (types.ModuleType, _module_name),
    "class": (type, _path),
    "function": (types.FunctionType, _path),
    "builtin": (types.BuiltinFunctionType, _c_function),
    "descriptor": (_DESCRIPTORS, _descriptor),
    "member": (enum.Enum, _enum_member),
    "operator": (_OPERATORS, _operator),
    "operators": (torch._ops._OpNamespace, _operators),
}
_FINDERS: dict[str, Callable[..., Any]] = {
    "module": _module,
    "class": _class,
    "function": _function,
    "builtin": _named_by_home,
    "descriptor": _described,
    "member": lambda module, qualname, name: _members(_class(module, qualname))[name],
    "operator": _torch_operator,
    "operators": lambda name: vars(torch.ops)[name],
    "home": lambda home, name: _in_home(home, name),
}


def _in_home(home: str, name: str) -> Any:
    return getattr(_SPACES[home], name) if home in _SPACES else _named_by_home(home, name)


def _names_in(home: str) -> Any:
    return dir(_SPACES[home]) if home in _SPACES else list(vars(sys.modules[home]))


@functools.cache
def _homes() -> dict[int, Words]:
    """The names of what is found in certain modules, by identity."""
    found: dict[int, Words] = {}
    for home in (*_SPACES, *_HOMES):
        if home in _SPACES or home in sys.modules:
            for name in _names_in(home):
                value = _in_home(home, name)
                if callable(value):
                    found.setdefault(id(value), (home, name))
                    _alive.append(value)
    return found


_alive: list[Any] = []  # so that an identity stays that of what was named


# -- digests --------------------------------------------------------------------------------------
def digest(obj: Any) -> str:
    """What an object is like, as far as a capture may rely on it without a guard."""
    return hashlib.sha256(repr(tuple(_facts(obj))).encode()).hexdigest()[:24]


def _facts(obj: Any) -> Iterator[Any]:
    kind = type(obj)
    if kind is types.CodeType:
        yield from _of_code(obj)
    elif kind is types.FunctionType:
        yield from _of_function(obj)
    elif kind is property:
        yield tuple(digest(part) for part in (obj.fget, obj.fset, obj.fdel))
    elif kind in (staticmethod, classmethod):
        yield kind.__name__, digest(obj.__func__)
    elif kind is FIELD:
        yield obj.__reduce__()
    elif is_a(obj, enum.Enum):
        yield from _of_class(kind)
        yield _dict_of(obj).get("_name_")
    elif is_a(obj, type):
        yield from _of_class(obj)
    elif kind in (types.BuiltinFunctionType, *_DESCRIPTORS):
        yield _field(kind, "__qualname__"), obj.__name__, obj.__qualname__
    else:
        yield _field(kind, "__qualname__")


_VERSION_TAG = 1 << 19  # whether the class has a number in the cache of attributes
_LAYOUT = ("__basicsize__", "__itemsize__", "__dictoffset__", "__weakrefoffset__")


def _of_class(cls: type) -> Iterator[Any]:
    """Its bases and metaclasses; what attributes it has is guarded.  An enum never changes."""
    for base in (*(type_mro(cls) or ()), *(type_mro(type(cls)) or ())):
        yield (*(_path(base) or ()), type_flags(base) & ~_VERSION_TAG)
    yield [_field(cls, name) for name in _LAYOUT]
    if is_a(cls, enum.EnumType):
        for name, member in _members(cls).items():
            fields = _dict_of(member)
            yield name, sorted((key, _member_field(each)) for key, each in fields.items())
    told = type_lookup(cls, "__dataclass_fields__")
    if type(told) is dict:
        yield [_of_field(name, field) for name, field in told.items()]


def _of_field(name: str, field: Any) -> Any:
    """What ``dataclasses.fields`` tells of one."""
    if type(field) is not dataclasses.Field:
        _refuse(field)
    asked = ("name", "init", "repr", "hash", "compare", "kw_only", "default")
    told = [_default(getattr(field, each)) for each in asked]
    factory = field.default_factory
    made = digest(factory) if type(factory) is types.FunctionType else _field(factory, "__name__")
    extra = [(_member_field(key), _member_field(each)) for key, each in field.metadata.items()]
    return name, told, str(field._field_type), made, extra


def _members(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = type_dict(cls)["_member_map_"]
    return found


def _member_field(value: Any) -> Any:
    if is_a(value, type):
        return _path(value)
    if is_constant(value):
        return _constant(value)
    return _path(type(value))  # to read what may change keeps an entry off the disk


def _of_code(code: types.CodeType) -> Iterator[Any]:
    yield code.co_code
    yield [_constant(const) for const in code.co_consts]
    yield code.co_names, code.co_varnames, code.co_cellvars, code.co_freevars
    yield code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    yield code.co_filename, code.co_qualname, code.co_firstlineno, code.co_linetable
    yield code.co_exceptiontable


def _constant(const: Any) -> Any:
    """A constant of code; sets in the order in which they show their members here."""
    if isinstance(const, types.CodeType):
        return tuple(_of_code(const))
    if isinstance(const, tuple | frozenset):
        return type(const).__name__, [_constant(each) for each in const]
    return type(const).__name__, hex(const) if type(const) is int else repr(const)


def _of_function(function: types.FunctionType) -> Iterator[Any]:
    yield from _of_code(function.__code__)
    for values in (function.__defaults__ or (), (function.__kwdefaults__ or {}).values()):
        yield [_default(value) for value in values]
    yield sorted(vars(function)), marks.of(function), function.__name__, function.__qualname__


def _default(value: Any) -> Any:
    mark = try_fingerprint(value)
    return _field(type(value), "__qualname__") if mark is None else _constant(value)


def _refuse(obj: Any) -> Any:
    raise NoWordsError(f"a {type(obj).__name__}")


def files_of(obj: Any) -> Iterator[str]:
    """The file that an object is written in, if it says so."""
    if type(obj) in (types.FunctionType, types.CodeType):
        yield getattr(obj, "__code__", obj).co_filename
    module = sys.modules.get(str(_field(obj if is_a(obj, type) else type(obj), "__module__")))
    file = None if module is None else _dict_of(module).get("__file__")
    if type(file) is str:
        yield file
