"""Operators of numbers and text: run for real; where the operand is another, it may know better."""

from __future__ import annotations

from typing import Any

from dynacap.values.base import Const, Value
from dynacap.values.data_model import is_same
from dynacap.values.data_model.calls import compute
from dynacap.values.identity import IdentityValue
from dynacap.values.library.handlers import handles
from dynacap.values.natives import find_native
from dynacap.values.stand_in import ASKED
from dynacap.values.tracer import Tracer

_NUMBERS = "add sub mul truediv floordiv mod divmod lshift rshift and or xor"
_COMPARISONS = "eq ne lt le gt ge"


def _register(kind: type, name: str) -> None:
    target: Any = kind.__dict__.get(name)
    if target is None or find_native(target) is not None:
        return
    asks = ASKED if kind is slice else ()

    @handles(target)
    def operate(t: Tracer, left: Value, right: Value, /) -> Value:
        if isinstance(left, IdentityValue) and isinstance(right, IdentityValue):
            if name in ("__eq__", "__ne__") and left.function is right.function:
                return Const(is_same(t, left.obj, right.obj) is (name == "__eq__"))
        return compute(t, target, [left, right], {}, asks)


_kind: type
for _kind in (bool, int, float, complex):
    for _name in _NUMBERS.split():
        _register(_kind, f"__{_name}__")
        _register(_kind, f"__r{_name}__")
for _kind in (bool, int, float, complex, str, bytes, range, slice):
    for _name in _COMPARISONS.split():
        _register(_kind, f"__{_name}__")
