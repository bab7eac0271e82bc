"""Callables without side effects, run for real when all operands are constants."""

from __future__ import annotations

import cmath
import math
import operator
import os
import types
from typing import Any

from dynacap.values.base import Value
from dynacap.values.data_model.calls import fold_or_break, folds
from dynacap.values.library.handlers import handles
from dynacap.values.natives import find_native, pure
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
    found = []
    for name, member in vars(owner).items():
        if name in _NOT or not isinstance(member, _KINDS):
            continue
        target = member.__func__ if isinstance(member, staticmethod) else member
        if find_native(target) is None:
            found.append(target)
    return found


for _owner in (*_TYPES, math, cmath):
    pure(_members(_owner))

pure((complex, bytes, range, str.maketrans))
pure((ascii, bin, chr, hex, oct, ord, operator.abs, operator.index))
pure((os.fspath,))
_ALIASES = (types.GenericAlias, types.UnionType)
folds(*(vars(owner)[name] for owner in (type, *_ALIASES) for name in ("__or__", "__ror__")))


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
