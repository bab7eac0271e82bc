"""Callables without side effects, run for real when all operands are constants."""

from __future__ import annotations

import cmath
import functools
import math
import operator
import os
import types
from typing import Any

from dynacap.values.base import Const, Value
from dynacap.values.data_model.calls import fold, fold_or_break
from dynacap.values.library.handlers import handles
from dynacap.values.natives import find_native, native, pure
from dynacap.values.stand_in import run
from dynacap.values.tracer import Tracer

_TYPES = (int, float, complex, bool, str, bytes, range, slice, types.CodeType, type(None),
          type(Ellipsis), type(NotImplemented))  # fmt: skip
_KINDS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
    types.BuiltinMethodType,
    staticmethod,
)
# what shows an address, depends on more than its operands, or makes a mutable object
_NOT = {"__reduce__", "__reduce_ex__", "__sizeof__", "__init__", "__iter__"}


def _members(owner: Any) -> list[Any]:
    members = (m for name, m in vars(owner).items() if name not in _NOT and isinstance(m, _KINDS))
    targets = (m.__func__ if isinstance(m, staticmethod) else m for m in members)
    return [target for target in targets if find_native(target) is None]


for _owner in (*_TYPES, math, cmath):
    pure(_members(_owner))

pure((complex, bytes, range, str.maketrans))
pure((ascii, bin, chr, hex, oct, ord, operator.abs, operator.index))
pure((os.fspath,))
_ALIASES = (types.GenericAlias, types.UnionType)


def _union(real: Any, t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A union holds its members: they are known, or refused."""
    found = fold(t, real, args, kwargs)
    if found is None and run(t, real, args, kwargs) is NotImplemented:
        return Const(NotImplemented)
    return found or fold_or_break(t, real, args, kwargs)


for _name in ("__or__", "__ror__"):
    for _or in (type.__dict__[_name], *(vars(alias)[_name] for alias in _ALIASES)):
        native(_or)(functools.partial(_union, _or))


@handles(*(owner.__getitem__ for owner in _ALIASES))
def _substitute(t: Tracer, alias: Value, key: Value, /) -> Value:
    real = alias.known()
    if _holds_others(real):
        t.graph_break("class-item", f"{real} is subscripted, which asks objects of the program's")
    return fold_or_break(t, type(real).__getitem__, [alias, key], {})


def _holds_others(alias: Any) -> bool:
    """Whether objects that may change are among what an alias is made of."""
    return type(alias) in _ALIASES and any(
        type(each).__module__ not in ("builtins", "types", "typing") or _holds_others(each)
        for each in alias.__args__
    )
