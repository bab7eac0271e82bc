"""``str``, ``repr``, ``format`` and the operations that call them on their operands.

Where text is made from values that are no constants, the real C function runs on stand-ins that
ask the traced program for the text of what they stand for.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections import OrderedDict, defaultdict, deque
from typing import Any

from dynacap.values.base import Const, Known, Value, constant_or
from dynacap.values.container import DictValue, ListValue, SetValue, TupleValue
from dynacap.values.data_model import call_special
from dynacap.values.data_model.refusals import refuse
from dynacap.values.function import FunctionValue
from dynacap.values.library.handlers import constant_of, folded, handles, methods
from dynacap.values.library.sets import ordered
from dynacap.values.natives import native_code
from dynacap.values.stand_in import shown
from dynacap.values.tracer import Tracer

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range)
_busy: list[Value] = []  # containers whose text is being made


def to_str(t: Tracer, value: Value) -> str:
    """``str(value)``."""
    if isinstance(value, Const) and type(value.value) in _PLAIN:
        return str(value.value)
    return _text(t, value, "__str__", [])


def to_repr(t: Tracer, value: Value) -> str:
    """``repr(value)``."""
    if isinstance(value, Const) and type(value.value) in _PLAIN:
        return repr(value.value)
    return _text(t, value, "__repr__", [])


def to_format(t: Tracer, value: Value, spec: str) -> str:
    """``format(value, spec)``."""
    if isinstance(value, Const) and type(value.value) in _PLAIN:
        return str(folded(t, format, [value, Const(spec)]).constant())
    return _text(t, value, "__format__", [Const(spec)])


def _text(t: Tracer, value: Value, name: str, args: list[Value]) -> str:
    result = call_special(t, value, name, args)
    text = constant_of(t, result, f"{name} of {value.describe()}")
    if not isinstance(text, str):
        t.raise_error(TypeError, f"{name} returned non-string (type {type(text).__name__})")
    return text


@handles(str)
def _str(
    t: Tracer, obj: Value = Const(""), encoding: Value | None = None, errors: Value | None = None
) -> Value:
    if encoding is not None or errors is not None:
        given = {"encoding": encoding, "errors": errors}
        return folded(t, str, [obj], {k: v for k, v in given.items() if v is not None})
    return Const(to_str(t, obj))


@handles(repr)
def _repr(t: Tracer, obj: Value, /) -> Value:
    return Const(to_repr(t, obj))


@handles(format)
def _format(t: Tracer, obj: Value, spec: Value = Const(""), /) -> Value:
    return Const(to_format(t, obj, constant_of(t, spec, "a format")))


@handles(object.__str__)
def _object_str(t: Tracer, self: Value, /) -> Value:
    return Const(to_repr(t, self))


@handles(object.__format__)
def _object_format(t: Tracer, self: Value, spec: Value, /) -> Value:
    if constant_or(spec, None) != "":
        refuse(t, object.__format__, self, spec)
    return Const(to_str(t, self))


def _container(t: Tracer, self: Value, again: str, make: Any) -> Value:
    """The text of a container, by that of a real one that holds stand-ins."""
    if any(value is self for value in _busy):
        return Const(again)
    _busy.append(self)
    try:
        return Const(make())
    finally:
        _busy.pop()


@handles(list.__repr__)
def _list_repr(t: Tracer, self: ListValue, /) -> Value:
    return _container(t, self, "[...]", lambda: repr([shown(t, item) for item in self.items]))


@handles(tuple.__repr__)
def _tuple_repr(t: Tracer, self: TupleValue, /) -> Value:
    def make() -> str:
        return repr(tuple(shown(t, item) for item in self.items))

    return _container(t, self, "(...)", make)


@handles(deque.__repr__)
def _deque_repr(t: Tracer, self: ListValue, /) -> Value:
    def make() -> str:
        text = repr(deque((shown(t, item) for item in self.items), self.maxlen))
        return self.cls.__name__ + text.removeprefix("deque")

    return _container(t, self, "[...]", make)


def _pairs(t: Tracer, self: DictValue) -> Any:
    return [(shown(t, key), shown(t, value)) for key, value in self.items(t)]


@handles(dict.__repr__)
def _dict_repr(t: Tracer, self: DictValue, /) -> Value:
    return _container(t, self, "{...}", lambda: repr(dict(_pairs(t, self))))


@handles(OrderedDict.__repr__)
def _ordered_repr(t: Tracer, self: DictValue, /) -> Value:
    def make() -> str:
        return self.cls.__name__ + repr(OrderedDict(_pairs(t, self))).removeprefix("OrderedDict")

    return _container(t, self, "...", make)


@handles(defaultdict.__repr__)
def _default_repr(t: Tracer, self: DictValue, /) -> Value:
    def make() -> str:
        factory = to_repr(t, self.default or Const(None))
        return f"{self.cls.__name__}({factory}, {dict(_pairs(t, self))!r})"

    return _container(t, self, "...", make)


@handles(*methods("__repr__", set, frozenset))
def _set_repr(t: Tracer, self: SetValue, /) -> Value:
    def make() -> str:
        items = ", ".join(to_repr(t, item) for item in ordered(t, self))
        if self.cls is set and items:
            return "{" + items + "}"
        return f"{self.cls.__name__}({{{items}}})" if items else f"{self.cls.__name__}()"

    return _container(t, self, f"{self.cls.__name__}(...)", make)


@handles(type.__repr__)
def _type_repr(t: Tracer, self: Known, /) -> Value:
    return Const(type.__repr__(self.value))


def _register_recursion_guard(wrapper: Any) -> None:
    @native_code(wrapper.__code__)
    def guarded(
        t: Tracer, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``...`` where the text of an object is asked for while it is being made."""
        index = function.code.co_freevars.index("user_function")
        inner = t.cell_content(t.closure(function)[index])
        assert inner is not None
        if any(value is args[0] for value in _busy):
            return Const("...")
        _busy.append(args[0])
        try:
            return t.call(inner, args)
        finally:
            _busy.pop()


@dataclasses.dataclass
class _Sample:
    field: int


for _wrapper in (reprlib.recursive_repr()(repr), _Sample.__repr__):
    _register_recursion_guard(_wrapper)
