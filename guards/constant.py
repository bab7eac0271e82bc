"""Which values are compared by value, and how: exactly, and without running any user code.

Only objects whose exact type is listed here count as constants.  ``==`` is not used on the way: it
takes ``1``, ``1.0`` and ``True`` for equal, ``0.0`` and ``-0.0`` too, and a nan for unequal to
itself.  Instead each constant has a *fingerprint*, a hashable value that tells all of these apart.
"""

import struct
from collections.abc import Callable
from typing import Any

Fingerprint = object

_float_bits = struct.Struct("=d").pack


def _by_value(value: object) -> Fingerprint:
    return (type(value), value)


def _by_bits(value: float) -> Fingerprint:
    return (float, _float_bits(value))


def _by_both_bits(value: complex) -> Fingerprint:
    return (complex, _float_bits(value.real), _float_bits(value.imag))


def _by_items(value: tuple[object, ...]) -> Fingerprint:
    return (type(value), *map(fingerprint, tuple.__iter__(value)))


def _by_members(value: frozenset[object]) -> Fingerprint:
    return (frozenset, frozenset(map(fingerprint, value)))


def _by_item(value: Any) -> Fingerprint:
    return (type(value), fingerprint(value.item()))


def _by_bounds(value: "slice | range") -> Fingerprint:
    bounds = (value.start, value.stop, value.step)
    return (type(value), *map(fingerprint, bounds))


_fingerprints: dict[type, Callable[..., Fingerprint]] = {
    type(None): _by_value,
    bool: _by_value,
    int: _by_value,
    str: _by_value,
    bytes: _by_value,
    type(...): _by_value,
    type(NotImplemented): _by_value,
    float: _by_bits,
    complex: _by_both_bits,
    tuple: _by_items,
    frozenset: _by_members,
    slice: _by_bounds,
    range: _by_bounds,
}

# By name, since neither torch nor NumPy is imported here.  All are implemented in C.
_foreign_constants: dict[tuple[str, str], Callable[..., Fingerprint]] = {
    ("torch", "dtype"): _by_value,
    ("torch", "device"): _by_value,
    ("torch", "layout"): _by_value,
    ("torch", "memory_format"): _by_value,
    ("torch", "Size"): _by_items,
    **{
        ("numpy", name): _by_item
        for name in (
            "bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
            "uint64", "float16", "float32", "float64", "complex64", "complex128",
        )
    },
}  # fmt: skip


def _find(cls: type) -> Callable[..., Fingerprint] | None:
    known = _fingerprints.get(cls)
    if known is not None:
        return known
    names = (_type_attribute(cls, "__module__"), _type_attribute(cls, "__name__"))
    found = _foreign_constants.get(names) if _is_builtin(cls) else None  # type: ignore[arg-type]
    if found is not None:
        _fingerprints[cls] = found
    return found


def _type_attribute(cls: type, name: str) -> object:
    return type.__dict__[name].__get__(cls)


def _is_builtin(cls: type) -> bool:
    """Whether no class statement made ``cls``, so that its name can be believed."""
    heap_type = 1 << 9
    return not type.__dict__["__flags__"].__get__(cls) & heap_type


class _NotConstant(Exception):
    """A part of the value is not a constant; never leaves this module."""


def fingerprint(value: object) -> Fingerprint:
    """A hashable value that two constants share only if they are alike in type and in value."""
    make = _find(type(value))
    if make is None:
        raise _NotConstant(type(value))
    return make(value)


def try_fingerprint(value: object) -> Fingerprint | None:
    """The fingerprint of a constant, or None for anything else."""
    try:
        return fingerprint(value)
    except _NotConstant:
        return None


def is_constant(value: object) -> bool:
    """Whether ``value`` can be compared by value: its type is listed, and its parts' types are."""
    return try_fingerprint(value) is not None


def same_constant(left: object, right: object) -> bool:
    """Whether both are constants and alike in type and value, floats to the last bit."""
    if type(left) is not type(right):
        return False
    mark = try_fingerprint(left)
    return mark is not None and mark == try_fingerprint(right)


class ConstKey:
    """A constant under its fingerprint, for use in hashed collections; strings stay themselves."""

    __slots__ = ("mark", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        self.mark = fingerprint(value)

    def __eq__(self, other: object) -> bool:
        return type(other) is ConstKey and self.mark == other.mark

    def __hash__(self) -> int:
        return hash(self.mark)

    def __repr__(self) -> str:
        return repr(self.value)
