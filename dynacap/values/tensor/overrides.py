"""Operands with a ``__torch_function__`` of their own: whether torch asks them, and with what.

Torch itself says so: the call is made for real on stand-ins, which note what they are asked.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import torch

from dynacap.backends.torch_overrides import StandIns, field_of, in_order, is_asking, question
from dynacap.values.base import Const, Lazy, Value, constant_or
from dynacap.values.container import ListValue, SliceValue, TupleValue, fresh_dict
from dynacap.values.data_model.attributes import get_attribute
from dynacap.values.function import BoundMethod
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

_READ_FIELD = types.GetSetDescriptorType.__get__


def overrides(value: Value) -> bool:
    """Whether torch's functions ask the class of an operand."""
    if isinstance(value, Const):  # which may be unread
        return False
    return is_asking(type(value.real) if isinstance(value, Lazy) else value.cls)


def is_asked(values: Iterable[Value]) -> bool:
    """Whether they ask one of these, or of what is in a list or tuple, as it is just now: who is
    asked may turn that off for what it calls.
    """
    return torch._C._is_torch_function_enabled() and any(
        is_asked(value.items)  # type: ignore[attr-defined]
        if type(value) in (TupleValue, ListValue)
        else overrides(value)
        for value in values
    )


class _Probes:
    """The stand-ins for the operands of one call."""

    def __init__(self, t: Tracer) -> None:
        self.t = t
        self.values: dict[int, tuple[Any, Value]] = {}  # by the ids of their stand-ins
        self.made = StandIns()
        self.asked: dict[type, Value] = {}  # one of each class

    def of(self, value: Value) -> Any:
        """What stands for an operand."""
        value = self.t.force(value)
        made = self._make(value)
        self.values[id(made)] = made, value
        return made

    def _make(self, value: Value) -> Any:
        if overrides(value):
            self.asked.setdefault(value.cls, value)
            return self.made.of(value.cls)
        if type(value) is TensorValue:
            return torch.empty(())
        if isinstance(value, (TupleValue, ListValue)):
            return value.cls(map(self.of, value.items)) if value.cls in (tuple, list) else ()
        if isinstance(value, SliceValue):
            return slice(*map(self.of, value.parts))
        return value.cls(1) if type(value) is SymbolValue else constant_or(value, value)

    def back(self, made: Any) -> Value:
        """The operand that a stand-in stands for."""
        return self.values[id(made)][1] if id(made) in self.values else self.t.wrap(made, None)


def ask(t: Tracer, real: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """What an operation written in C gives where it asks an operand; None where it asks none."""
    if not is_asked([*args, *kwargs.values()]):
        return None
    probes = _Probes(t)
    made = [*map(probes.of, args)]
    named = {name: probes.of(arg) for name, arg in kwargs.items()}
    asked = question(real, made, named)
    if asked is None:
        return None
    func, kinds, operands, *rest = asked
    who = [probes.asked[cls] for cls in probes.made.classes(kinds)]
    words = {name: probes.back(arg) for name, arg in rest[0].items()} if rest else None
    return dispatch(t, _callee(t, func), who, [*map(probes.back, operands)], words)


def _callee(t: Tracer, func: Any) -> Value:
    """The function that torch names to whom it asks."""
    field = field_of(func)
    if field is None:
        return t.wrap(func, None)
    return BoundMethod(t.wrap(_READ_FIELD, None), t.wrap(field, None))


def dispatch(t: Tracer, func: Value, asked: list[Value], args: list[Value], kwargs: Any) -> Value:
    """Ask one operand of each class, subclasses first, until one knows what the call gives."""
    order = in_order(asked, lambda value: value.cls)
    given = [func, TupleValue([t.class_value(value.cls) for value in order]), TupleValue(args)]
    if kwargs is not None:
        given.append(fresh_dict(t, [(Const(name), value) for name, value in kwargs.items()]))
    for value in order:
        method = get_attribute(t, value, "__torch_function__")
        if isinstance(method, BoundMethod) and method.obj is value:
            t.graph_break("tensor-subclass", f"a {value.title} is asked by a plain method")
        result = t.call(method, given)
        if constant_or(result, None) is not NotImplemented:
            return result
    t.graph_break("tensor-subclass", f"no operand knows what {func.describe()} gives")
