"""Callables without side effects, run for real when all operands are constants."""

from __future__ import annotations

import cmath
import math
import operator
import os
import types
from typing import Any

from dynacap.values.natives import find_native, pure

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
pure(
    vars(owner)[name]
    for owner in (type, types.GenericAlias, types.UnionType)
    for name in ("__or__", "__ror__")
)
pure((types.GenericAlias.__getitem__, types.UnionType.__getitem__))
