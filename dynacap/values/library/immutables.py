"""Operators of numbers and text: run for real on constants; other operands may know better."""

from __future__ import annotations

import operator
from typing import Any

from dynacap.values.base import Const, Value
from dynacap.values.data_model import is_same
from dynacap.values.data_model.calls import fold
from dynacap.values.identity import IdentityValue
from dynacap.values.library.handlers import handles, index_of, not_implemented, slice_of
from dynacap.values.natives import find_native
from dynacap.values.tracer import Tracer

_NUMBERS = "add sub mul truediv floordiv mod pow divmod lshift rshift and or xor"
_COMPARISONS = "eq ne lt le gt ge"
# a type -> the types of operands on which its operators work
_ACCEPTS: dict[type, tuple[type, ...]] = {
    bool: (int,),
    int: (int,),
    float: (float, int),
    complex: (complex, float, int),
}
_COMPARES: dict[type, tuple[type, ...]] = {
    **_ACCEPTS,
    str: (str,),
    bytes: (bytes,),
    range: (range,),
    slice: (slice,),
}


def _register(kind: type, name: str, accepted: tuple[type, ...]) -> None:
    target: Any = kind.__dict__.get(name)
    if target is None or find_native(target) is not None:
        return

    @handles(target)
    def operate(t: Tracer, left: Value, right: Value, /, *more: Value) -> Value:
        done = fold(t, target, [left, right, *more], {})
        if done is not None:
            return done
        if not issubclass(right.cls, accepted):
            return not_implemented()
        if isinstance(left, IdentityValue) and isinstance(right, IdentityValue):
            if name in ("__eq__", "__ne__") and left.function is right.function:
                return Const(is_same(t, left.obj, right.obj) is (name == "__eq__"))
        return t.graph_break(
            "not-constant", f"{target.__qualname__} of {left.describe()} and {right.describe()}"
        )


for _kind, _accepted in _ACCEPTS.items():
    for _name in _NUMBERS.split():
        _register(_kind, f"__{_name}__", _accepted)
        _register(_kind, f"__r{_name}__", _accepted)
for _kind, _accepted in _COMPARES.items():
    for _name in _COMPARISONS.split():
        _register(_kind, f"__{_name}__", _accepted)


def _register_item(kind: Any) -> None:
    @handles(kind.__getitem__)
    def item(t: Tracer, self: Value, key: Value, /) -> Value:
        cut = slice_of(t, key)
        message = f"{kind.__name__} indices must be integers or slices, not {key.cls.__name__}"
        if kind is str:
            message = f"string indices must be integers, not {key.title!r}"
        found = cut if cut is not None else index_of(t, key, message)
        try:
            return t.wrap(self.constant()[found], None)
        except (IndexError, ValueError) as error:
            return t.raise_real(error)


for _sequence in (str, bytes, range):
    _register_item(_sequence)


def _register_repeat(kind: Any) -> None:
    @handles(kind.__mul__, kind.__rmul__)
    def repeat(t: Tracer, self: Value, count: Value, /) -> Value:
        if not hasattr(count.cls, "__index__"):
            return not_implemented()
        return t.wrap(operator.mul(self.constant(), index_of(t, count)), None)


for _text in (str, bytes):
    _register_repeat(_text)
