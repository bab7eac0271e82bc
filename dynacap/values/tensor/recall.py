"""The memory of what operations gave (``backends.fakes.memo``) as one capture uses it.

Views that are made from memory share no storage with their bases, which matters only once something
is written in place: before that the views of a capture are made again for real.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from dynacap.backends.fakes import memo
from dynacap.backends.fakes.meta import predicted
from dynacap.backends.torch_surface import INPLACE_POSITION, READING, is_torch_function
from dynacap.values.base import Const, Known, Value
from dynacap.values.container import ListValue, SliceValue, TupleValue
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.value import TensorValue

if TYPE_CHECKING:
    from dynacap.backends.fakes.world import FakeWorld


class Call(NamedTuple):
    """A call of an operation: what goes into the graph, and its operands as values."""

    op: str
    target: Any
    args: list[Value]
    kwargs: dict[str, Value]

    def tensors(self) -> list[torch.Tensor]:
        """The fakes among its operands."""
        return fakes_among([*self.args, *self.kwargs.values()])


class View(NamedTuple):
    """A call that gave views, to be made again."""

    call: Call
    recording: bool
    result: Any


class NoKey(Exception):
    """An operand cannot be compared with another; never leaves this module."""


def writes(call: Call) -> bool:
    """Whether a call may change an operand in place; true where nothing is known."""
    op, target, args, kwargs = call
    if "out" in kwargs:
        return True
    if op == "call_method":
        return bool(target[-1] == "_" and target[-2:] != "__")
    position = INPLACE_POSITION.get(target)
    if position is not None:
        wanted = kwargs.get("inplace", args[position] if len(args) > position else None)
        return not (wanted is None or (isinstance(wanted, Const) and not wanted.value))
    if target in READING:
        return False
    return not is_torch_function(target) or target.__name__[-1] == "_"


class Recall:
    """The memory as one capture uses it."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world
        self._views: list[View] = []
        self._state: Hashable = None

    def state_changed(self) -> None:
        """Torch's state is not what it was when it was last looked at."""
        self._state = None

    def key(self, call: Call) -> Hashable:
        """What decides about the result; None if there is no telling."""
        op, target, args, kwargs = call
        if self._state is None:
            self._state = memo.state()
        try:
            operands: list[Any] = [_mark(value) for value in args]
            for name, value in kwargs.items():
                operands += (name, _mark(value))
        except NoKey:
            return None
        if not any(type(mark) is memo.Look or type(mark) is tuple for mark in operands):
            return None
        return (op, target, self._state, *operands)

    def find(self, key: Hashable, call: Call, fakes: Any, keywords: Any) -> memo.Kept | None:
        """What a call gives, from memory or by what torch's meta kernels say; None: run it."""
        if key is None:
            return None
        kept = memo.find(key)
        if kept is None:
            target = getattr(torch.Tensor, call.target) if call.op == "call_method" else call.target
            kept = predicted(target, fakes, keywords)
            if kept is None or (kept.views and _takes_a_list(call)):
                return None
            memo.note(key, kept)
        return kept

    def keep(self, key: Hashable, call: Call, result: Any) -> None:
        """Note what an operation gave."""
        operands = call.tensors()
        views = memo.shares(result, operands)
        if self._views and any(views):  # perhaps of one that is yet to be made
            self._views.append(View(call, torch.is_grad_enabled(), result))
        if key is not None and not (any(views) and _takes_a_list(call)):
            memo.keep(key, result, operands, views)

    def make(self, kept: memo.Kept, call: Call) -> Any:
        """The result anew, from what is kept."""
        result = memo.make(kept, self.world.mode, call.tensors())
        if kept.views:
            self._views.append(View(call, torch.is_grad_enabled(), result))
        return result

    def settle(self, run: Callable[[Call], Any], replace: Callable[[Any, Any], None]) -> None:
        """Make the views so far again for real, so that they share their bases' storage.

        ``run`` runs a call on fakes, ``replace`` puts a fake in the place of another.
        """
        if not self._views:
            return
        views, self._views = self._views, []
        before = torch.is_grad_enabled()
        try:
            for view in views:
                torch._C._set_grad_enabled(view.recording)
                made = run(view.call)
                for old, new in zip(memo.parts(view.result), memo.parts(made), strict=True):
                    replace(old, new)
        finally:
            torch._C._set_grad_enabled(before)


def _takes_a_list(call: Call) -> bool:
    """Whether a list is among the operands, which may change before the call is made again."""
    return any(type(value) is ListValue for value in call.args)


def _mark(value: Value) -> Any:
    """What stands for an operand in a key: 1, 1.0 and True are three different operands."""
    kind = type(value)
    if kind is TensorValue:
        look = memo.look_at(value.fake)  # type: ignore[attr-defined]
        if look is None:
            raise NoKey
        return look
    if kind is SymbolValue:
        if value.cls is not int:
            raise NoKey
        return value.sym  # type: ignore[attr-defined]  # which has no hash: nothing is kept
    if isinstance(value, Const):
        constant = value.value
        if type(constant) is slice:
            return repr(constant)
        return _Constant(type(constant), constant)
    if kind is TupleValue or kind is ListValue:
        return (kind, *[_mark(item) for item in value.items])  # type: ignore[attr-defined]
    if kind is SliceValue:
        return (kind, *[_mark(part) for part in value.parts])  # type: ignore[attr-defined]
    if kind is Known:
        return _Constant(kind, value.value)  # type: ignore[attr-defined]
    raise NoKey


class _Constant(NamedTuple):
    """A constant in a key, with its type."""

    kind: type
    value: Any


def fakes_among(values: list[Any]) -> list[torch.Tensor]:
    """The fakes among operands."""
    found: list[torch.Tensor] = []
    for value in values:
        if type(value) is TensorValue:
            found.append(value.fake)
        elif type(value) in (TupleValue, ListValue):
            found += fakes_among(value.items)
    return found
