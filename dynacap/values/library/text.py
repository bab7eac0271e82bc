"""``str``, ``repr``, ``format`` and the operations that call them on their operands.

Where text is made from values that are no constants, the real C function runs on stand-ins that
ask the traced program for the text of what they stand for.
"""

from __future__ import annotations

import dataclasses
import reprlib
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

from dynacap.guards.source import Attr
from dynacap.values.base import Const, Value, constant_or
from dynacap.values.container import DictValue, SetValue
from dynacap.values.data_model import call_special
from dynacap.values.data_model.attributes import C_FIELDS
from dynacap.values.data_model.calls import C_METHODS, compute
from dynacap.values.data_model.refusals import refuse
from dynacap.values.function import FunctionValue
from dynacap.values.library.handlers import NONE, constant_of, handles
from dynacap.values.library.sets import ordered
from dynacap.values.natives import native_code
from dynacap.values.stand_in import run, shown
from dynacap.values.tracer import Tracer

_PLAIN = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range)
_busy: list[Value] = []  # containers whose text is being made


def to_str(t: Tracer, value: Value) -> str:
    """``str(value)``."""
    return _text(t, str, "__str__", value)


def to_repr(t: Tracer, value: Value) -> str:
    """``repr(value)``."""
    return _text(t, repr, "__repr__", value)


def to_format(t: Tracer, value: Value, spec: str) -> str:
    """``format(value, spec)``."""
    return _text(t, format, "__format__", value, Const(spec))


def _text(t: Tracer, real: Callable[..., str], name: str, value: Value, *rest: Value) -> str:
    if isinstance(value, Const) and type(value.value) in _PLAIN:
        return str(compute(t, real, [value, *rest]).constant())
    result = call_special(t, value, name, [*rest])
    text = constant_of(t, result, f"{name} of {value.describe()}")
    if not isinstance(text, str):
        t.raise_error(TypeError, f"{name} returned non-string (type {type(text).__name__})")
    return text


@handles(str)
def _str(t: Tracer, *args: Value, **named: Value) -> Value:
    given = [*args, *named.values()]
    if len(given) == 1 and named.keys() <= {"object"}:
        return Const(to_str(t, given[0]))
    return compute(t, str, [*args], named)


@handles(repr)
def _repr(t: Tracer, obj: Value, /) -> Value:
    return Const(to_repr(t, obj))


@handles(format)
def _format(t: Tracer, obj: Value, spec: Value = Const(""), /) -> Value:
    if not issubclass(spec.cls, str):
        refuse(t, format, NONE, spec)
    return Const(to_format(t, obj, constant_of(t, spec, "a format")))


handles(object.__str__)(lambda t, self, /: Const(to_repr(t, self)))


@handles(object.__format__)
def _object_format(t: Tracer, self: Value, spec: Value, /) -> Value:
    if constant_or(spec, None) != "":
        refuse(t, object.__format__, self, spec)
    return Const(to_str(t, self))


def _shown(t: Tracer, self: Any) -> list[Any]:
    return [shown(t, item) for item in self.items]


def _pairs(t: Tracer, self: DictValue) -> list[tuple[Any, Any]]:
    return [(shown(t, key), shown(t, value)) for key, value in self.items(t)]


def _renamed(self: Value, real: Any) -> str:
    """The text of an object of the base, as that of its subclass's."""
    return self.cls.__name__ + repr(real).removeprefix(type(real).__name__)


def _default_text(t: Tracer, self: DictValue) -> str:
    factory = to_repr(t, self.default or NONE)
    return f"{self.cls.__name__}({factory}, {dict(_pairs(t, self))!r})"


def _list_text(t: Tracer, self: Any) -> str:
    """A list's, which its items may change while they are asked for theirs."""
    texts: list[str] = []
    while len(texts) < len(self.items):
        texts.append(to_repr(t, t.force_item(self.items, len(texts))))
    return f"[{', '.join(texts)}]"


def _set_text(t: Tracer, self: SetValue) -> str:
    items = ", ".join(to_repr(t, item) for item in ordered(t, self))
    if self.cls is set and items:
        return "{" + items + "}"
    return f"{self.cls.__name__}({{{items}}})" if items else f"{self.cls.__name__}()"


# what stands for a container inside itself ("set" is the class's name), and the text of one, by a
# real one that holds stand-ins
_TEXTS: dict[Any, tuple[str, Callable[[Tracer, Any], str]]] = {
    list.__repr__: ("[...]", _list_text),
    tuple.__repr__: ("(...)", lambda t, self: repr(tuple(_shown(t, self)))),
    deque.__repr__: ("[...]", lambda t, self: _renamed(self, deque(_shown(t, self), self.maxlen))),
    dict.__repr__: ("{...}", lambda t, self: repr(dict(_pairs(t, self)))),
    OrderedDict.__repr__: ("...", lambda t, self: _renamed(self, OrderedDict(_pairs(t, self)))),
    defaultdict.__repr__: ("...", _default_text),
    set.__repr__: ("set(...)", _set_text),
    frozenset.__repr__: ("set(...)", _set_text),
}


def _unless_busy(value: Value, again: str, make: Callable[[], Value]) -> Value:
    """What ``make`` gives; or another text, where that of the object is being made already."""
    if any(busy is value for busy in _busy):
        return Const(again)
    _busy.append(value)
    try:
        return make()
    finally:
        _busy.pop()


def _register_text(method: Any, again: str, make: Callable[[Tracer, Any], str]) -> None:
    @handles(method)
    def text(t: Tracer, self: Value, /) -> Value:
        name = again.replace("set", self.cls.__name__)
        return _unless_busy(self, name, lambda: Const(run(t, lambda: make(t, self), [], {})))


for _method, (_again, _make) in _TEXTS.items():
    _register_text(_method, _again, _make)


handles(type.__repr__)(lambda t, self, /: Const(type.__repr__(self.value)))


@handles(types.FunctionType.__repr__, types.BuiltinFunctionType.__repr__)
@handles(*(kind.__repr__ for kind in (types.MethodWrapperType, *C_METHODS, *C_FIELDS)))
def _function_text(t: Tracer, self: Value, /) -> Value:
    """With the address of one from outside, or of what one written in C is bound to."""
    real = getattr(self, "real", None) or constant_or(self, None)
    if (isinstance(self, FunctionValue) and "qualname" in self.fields) or real is None:
        t.graph_break("address", f"the text of a {self.cls.__name__} shows its address")
    if isinstance(self, FunctionValue) and self.source is not None:
        t.guard("IdIs", self.source, real)
        t.guard("ConstEq", Attr(self.source, "__qualname__"), real.__qualname__)
    return Const(repr(real))


def _register_recursion_guard(code: Any) -> None:
    @native_code(code)
    def guarded(
        t: Tracer, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``...``, or what fills in, where a text is asked for while it is being made."""
        cells = dict(zip(function.code.co_freevars, t.closure(function), strict=True))
        inner = t.cell_content(cells["user_function"])
        fill = t.cell_content(cells["fillvalue"]) if "fillvalue" in cells else Const("...")
        assert inner is not None and fill is not None
        return _unless_busy(args[0], fill.constant(), lambda: t.call(inner, args))


@dataclasses.dataclass
class _Sample:
    field: int


_wrappers: tuple[Any, ...] = (reprlib.recursive_repr()(repr), _Sample.__repr__)
for _code in {id(wrapper.__code__): wrapper.__code__ for wrapper in _wrappers}.values():
    _register_recursion_guard(_code)  # on some Pythons one and the same
