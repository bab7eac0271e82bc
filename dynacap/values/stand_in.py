"""C functions without side effects run for real, on what stands for the values of the program.

A constant stands for itself.  Anything else is stood for by an object whose special methods ask
the traced program, so that the C function decides what is asked, when, and what it says where it
refuses: ``math.sqrt`` asks for ``__float__``, ``"%d" %`` for a number, ``str.join`` iterates.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from typing import Any

from dynacap.backends.fakes.world import raise_warnings_of
from dynacap.errors import DynacapError
from dynacap.guards.raw import IMMUTABLE_TYPE
from dynacap.values.base import MISSING, Const, Known, NotConstant, OfProcess, UserRaise, Value
from dynacap.values.container import DictValue, SliceValue, TupleValue
from dynacap.values.object import PAYLOADS, payload_of
from dynacap.values.tracer import Tracer

raise_warnings_of(__name__)
# What C functions ask of their operands; all objects answer the first row.
_ALWAYS = ("__repr__", "__str__", "__format__", "__hash__")
ASKED = (
    *_ALWAYS,
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__"),
    *("__len__", "__getitem__", "__contains__", "__iter__", "__next__"),
    *("__index__", "__int__", "__float__", "__complex__", "__bytes__", "__fspath__"),
    *("__round__", "__trunc__", "__floor__", "__ceil__", "__abs__", "__pow__", "__rpow__"),
    *("__add__", "__radd__", "__iadd__", "__mul__", "__rmul__", "__imul__"),
)
_THEMSELVES = (type, re.Pattern, types.GenericAlias, types.UnionType)
# Modules of C types whose objects do not lend C functions their memory.
_NO_MEMORY = frozenset({"builtins", "collections", "itertools", "functools", "types", "operator"})


class StandIn:
    """Stands for one value in a C function that runs for real."""

    _t: Any
    _value: Value
    __hash__ = object.__hash__  # also where ``__eq__`` asks

    def __getattr__(self, name: str) -> Any:
        return _ask(self, lambda t, value: t.call(t.wrap(getattr, None), [value, Const(name)]))


class _Passing(BaseException):
    """Carries what must not be caught on its way through C: a graph break, a fault of ours."""


def run(
    t: Tracer,
    function: Callable[..., Any],
    args: list[Value],
    kwargs: dict[str, Value],
    asks: tuple[str, ...] = ASKED,
) -> Any:
    """What the function gives for the operands: real objects, StandIns among them.

    ``asks`` are the special methods that it may call.
    """
    given = [operand(t, arg, asks) for arg in args]
    return for_real(t, function, given, {name: operand(t, kwargs[name], asks) for name in kwargs})


def for_real(t: Tracer, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call C; what it raises is raised in the traced program, what it warns of has to be seen."""
    OfProcess.met += function is hash or getattr(function, "__name__", "") == "__hash__"
    try:
        return function(*args, **kwargs)
    except _Passing as passing:
        raise passing.args[0] from None
    except (DynacapError, UserRaise, NotConstant):
        raise
    except RecursionError:  # our calls are deeper than the program's
        t.graph_break("recursion", "a call of C that asks the program")
    except Exception as error:
        if isinstance(error.__cause__, UserRaise):
            raise error.__cause__ from None
        if isinstance(error, Warning):
            t.graph_break("warning", f"{type(error).__name__}: {error}")
        return t.raise_real(error)


def operand(t: Tracer, value: Value, asks: tuple[str, ...] = ASKED) -> Any:
    """The object itself where it is a constant, else what stands for it."""
    value = t.force(value)
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Known) and type(value.value) in _THEMSELVES:
        return value.value
    if type(value) is TupleValue and value.cls is tuple:
        return tuple([operand(t, item, asks) for item in value.items])
    if type(value) is DictValue and value.cls is dict:
        return {operand(t, key): shown(t, item) for key, item in value.items(t)}
    if type(value) is SliceValue:
        return slice(*[operand(t, part) for part in value.parts])
    return _stand_in(t, value, asks)


def shown(t: Tracer, value: Value) -> Any:
    """A number or text itself; what stands for anything else, which may hold what shows it."""
    value = t.force(value)
    return value.value if isinstance(value, Const) else _stand_in(t, value, ASKED)


def _stand_in(t: Tracer, value: Value, asks: tuple[str, ...]) -> StandIn:
    payload = payload_of(value)
    if isinstance(value, TupleValue):
        payload = tuple([operand(t, item, asks) for item in value.items])
    kind = next((kind for kind in (*PAYLOADS, tuple) if isinstance(payload, kind)), object)
    unknown = payload is MISSING and not hasattr(
        value, "node"
    )  # what the graph computes says itself
    if unknown and (issubclass(value.cls, tuple(PAYLOADS)) or _lends_memory(t, value)):
        t.graph_break("not-constant", f"{value.describe()} is an operand of a C function")
    asked = tuple(name for name in asks if _has_own(t, value.cls, name, kind))
    nones = tuple(name for name in asked if t.lookup(value.cls, name) is None)
    names = (value.title, *(vars(type)[name].__get__(value.cls) for name in _NAMES))
    cls = _class_like(names, kind, asked, nones)
    made: StandIn = cls() if kind is object else cls(payload)
    made._t, made._value = t, value
    return made


_NAMES = ("__qualname__", "__module__")  # whatever a metaclass shows under these


def _has_own(t: Tracer, cls: type, name: str, kind: type) -> bool:
    """Whether a class answers by other means than the type that its payload has."""
    raw = t.lookup(cls, name)
    inherited = vars(object).get(name, MISSING) if name not in _ALWAYS else MISSING
    if name == "__repr__" and kind is object:  # which may show the address, that of the real one
        return True
    return raw is not MISSING and raw is not inherited and raw is not getattr(kind, name, MISSING)


def _lends_memory(t: Tracer, value: Value) -> bool:
    if t.tensors.owns(value):
        return False
    return any(
        base.__flags__ & IMMUTABLE_TYPE
        and (base.__module__ not in _NO_MEMORY or base in (bytearray, memoryview))
        for base in value.cls.__mro__
    )


@functools.lru_cache(maxsize=1024)
def _class_like(
    names: tuple[str, ...], kind: type, asked: tuple[str, ...], nones: tuple[str, ...]
) -> type[Any]:
    """A class of stand-ins: messages name it as they would the class of the real objects."""
    body: dict[str, Any] = {special: _ANSWERS.get(special) or _answer(special) for special in asked}
    body.update(dict.fromkeys(nones))
    name, body["__qualname__"], body["__module__"] = names
    return type(name, (StandIn,) if kind is object else (StandIn, kind), body)


def _answer(name: str) -> Callable[..., Any]:
    def answer(self: StandIn, *args: Any) -> Any:
        return _ask(
            self, lambda t, value: t.call_special(value, name, [value_of(t, arg) for arg in args])
        )

    return answer


def _iterator(self: StandIn) -> Any:
    return _ask(self, lambda t, value: t.call(t.wrap(iter, None), [value]))


def _advance(self: StandIn) -> Any:
    return _ask(self, lambda t, value: t.call(t.wrap(next, None), [value]))


_ANSWERS: dict[str, Callable[..., Any]] = {"__iter__": _iterator, "__next__": _advance}


def _ask(self: StandIn, question: Callable[[Tracer, Value], Value]) -> Any:
    """Put a question to the traced program; C functions may catch what it raises."""
    try:
        return operand(self._t, question(self._t, self._value))
    except UserRaise as raised:
        raise _caught_as(raised.exc.cls) from raised
    except BaseException as error:
        raise _Passing(error) from None


def _caught_as(cls: type) -> BaseException:
    """An exception that C code takes for one of the class, by its nearest built-in base."""
    base: Any = next(base for base in cls.__mro__ if base.__flags__ & IMMUTABLE_TYPE)
    made: BaseException = base.__new__(base)
    return made


def value_of(t: Tracer, real: Any) -> Value:
    """The value of what a C function hands back, or to a special method; slices are new ones."""
    if type(real) is slice:
        return SliceValue((value_of(t, real.start), value_of(t, real.stop), value_of(t, real.step)))
    return real._value if isinstance(real, StandIn) else t.wrap(real, None)
