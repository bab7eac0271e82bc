"""``copy.copy`` and ``copy.deepcopy`` of built-in containers and plain objects.

Where an object has its own way of being copied the graph breaks, and the real function does it.
"""

import copy
import enum
import types
from typing import Any

import torch

from dynacap.values.base import Value
from dynacap.values.natives import native, polyfill
from dynacap.values.tracer import Tracer

_ATOMS = frozenset(
    {
        type(None), int, float, bool, complex, bytes, str, type(Ellipsis), type(NotImplemented),
        type, range, property, types.FunctionType, types.BuiltinFunctionType, torch.dtype,
    }
)  # fmt: skip


def _own_way(obj: Any) -> Any:
    """Stands where the copy has to be made by the object's own means."""
    raise NotImplementedError


@native(_own_way)
def _leave(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return t.graph_break("own-copy", f"a copy of a {args[0].cls.__name__}")


def _is_atom(obj: Any) -> bool:
    return type(obj) in _ATOMS or isinstance(obj, (type, enum.Enum))


def _is_plain(cls: Any) -> bool:
    """Whether instances of a class are nothing but their ``__dict__`` and slots."""
    return (
        (cls is object or cls.__flags__ & 1 << 9)  # written in Python
        and cls.__reduce_ex__ is object.__reduce_ex__
        and cls.__reduce__ is object.__reduce__
        and cls.__new__ is object.__new__
        and cls.__getattribute__ is object.__getattribute__
        and getattr(cls, "__getstate__", None) is getattr(object, "__getstate__", None)
        and not hasattr(cls, "__setstate__")
        and not hasattr(cls, "__getnewargs__")
        and not hasattr(cls, "__getnewargs_ex__")
    )


@polyfill(copy.copy)
def shallow(x: Any) -> Any:
    """A new object that holds the same things."""
    cls = type(x)
    if _is_atom(x) or cls in (tuple, frozenset, slice):
        return x
    if cls is list or cls is dict or cls is set:
        return x.copy()
    own = getattr(cls, "__copy__", None)
    if own is not None:
        return own(x)
    if _is_named_tuple(cls):
        return cls.__new__(cls, *x)
    if not _is_plain(cls):
        return _own_way(x)
    made = object.__new__(cls)
    if hasattr(made, "__dict__"):
        made.__dict__.update(x.__dict__)
    for name in _slots(x, cls):
        setattr(made, name, getattr(x, name))
    return made


def _is_named_tuple(cls: Any) -> bool:
    return (
        issubclass(cls, tuple)
        and hasattr(cls, "_fields")
        and cls.__reduce_ex__ is object.__reduce_ex__
        and cls.__getnewargs__.__qualname__.endswith("__getnewargs__")
    )


def _slots(x: Any, cls: Any) -> list[str]:
    """The names of the slots that are set."""
    names = []
    for base in cls.__mro__:
        slots = getattr(base, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name in ("__dict__", "__weakref__") or name in names or not hasattr(x, name):
                continue
            names.append(name)
    return names


@polyfill(copy.deepcopy)
def deep(x: Any, memo: Any = None) -> Any:
    """A new object that holds copies of the same things."""
    if memo is not None:
        return _own_way(x)
    return _deep(x, [])


def _deep(x: Any, seen: list[tuple[Any, Any]]) -> Any:
    """``seen`` holds what was copied already, with its copy."""
    cls = type(x)
    if _is_atom(x):
        return x
    for original, made in seen:
        if original is x:
            return made
    if cls is list:
        return _deep_list(x, seen)
    if cls is tuple:
        return _deep_tuple(x, seen)
    if cls is dict:
        return _deep_dict(x, seen)
    if hasattr(cls, "__deepcopy__"):
        return _own_way(x)
    if _is_named_tuple(cls):
        made = cls.__new__(cls, *[_deep(item, seen) for item in x])
        seen.append((x, made))
        return made
    if not _is_plain(cls):
        return _own_way(x)
    new = object.__new__(cls)
    seen.append((x, new))
    if hasattr(new, "__dict__"):
        new.__dict__.update(_deep(x.__dict__, seen))
    for name in _slots(x, cls):
        setattr(new, name, _deep(getattr(x, name), seen))
    return new


def _deep_list(x: list[Any], seen: list[tuple[Any, Any]]) -> list[Any]:
    made: list[Any] = []
    seen.append((x, made))
    for item in x:
        made.append(_deep(item, seen))
    return made


def _deep_tuple(x: tuple[Any, ...], seen: list[tuple[Any, Any]]) -> tuple[Any, ...]:
    """A tuple whose elements are their own copies is its own copy."""
    items = [_deep(item, seen) for item in x]
    for original, made in seen:
        if original is x:
            return made  # type: ignore[no-any-return]
    for old, new in zip(x, items, strict=True):
        if old is not new:
            copied = tuple(items)
            seen.append((x, copied))
            return copied
    return x


def _deep_dict(x: dict[Any, Any], seen: list[tuple[Any, Any]]) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    seen.append((x, made))
    for key, value in x.items():
        made[_deep(key, seen)] = _deep(value, seen)
    return made
