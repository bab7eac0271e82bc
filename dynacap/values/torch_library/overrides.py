"""Subclasses of tensors: how they are made, what they inherit, and blocks that turn them off."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import torch
import torch.overrides

from dynacap.backends.torch_overrides import BlockWithout, block_without, is_capturable
from dynacap.backends.torch_surface import is_operation
from dynacap.values.base import NONE, Const, Value, constant_or, fields, is_none
from dynacap.values.container import DictValue, ListValue, TupleValue
from dynacap.values.data_model.calls import folds
from dynacap.values.data_model.items import unpack
from dynacap.values.data_model.operators import truth
from dynacap.values.function import BoundMethod
from dynacap.values.library.handlers import handles
from dynacap.values.natives import native
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tensor.overrides import dispatch, is_asked
from dynacap.values.tensor.recall import fakes_among
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

folds(torch.overrides.resolve_name, torch.overrides.is_tensor_method_or_property)
for _name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
    handles(getattr(torch.overrides, _name))(lambda t, /, *args: Const(is_asked(args)))


@handles(torch.overrides.handle_torch_function)
def _handle(t: Tracer, api: Value, relevant: Value, /, *args: Value, **kwargs: Value) -> Value:
    return dispatch(t, api, unpack(t, relevant), [*args], kwargs)


@handles(torch._C._disabled_torch_function_impl)
def _turned_off(
    t: Tracer, func: Value, types: Value, args: Value = NONE, kwargs: Value = NONE, /
) -> Value:
    positional, named = _operands(t, args, kwargs)
    with BlockWithout():
        return t.call(func, positional, named)


def _operands(t: Tracer, args: Value, kwargs: Value) -> tuple[list[Value], dict[str, Value]]:
    named = kwargs.items(t) if isinstance(kwargs, DictValue) else []
    positional = [] if is_none(args) else unpack(t, args)
    return positional, {key.constant(): value for key, value in named}


@handles(cast(Any, torch.Tensor.__torch_function__).__func__)
def _inherited(
    t: Tracer, cls: Value, func: Value, types: Value, args: Value = NONE, kwargs: Value = NONE
) -> Any:
    """What subclasses inherit: the call without asking them, its tensors as theirs."""
    kind = cls.known()
    if not all(issubclass(kind, other.known()) for other in unpack(t, types)):
        return Const(NotImplemented)
    found: Any = _turned_off(t, func, types, args, kwargs)
    field = func.obj.known() if type(func) is BoundMethod else None
    if field in (torch.Tensor._base, torch.Tensor.grad, torch.Tensor._grad):
        return found
    if field is None and not is_operation(constant_or(func, None)):
        return _wrapped(t, found, kind, None)
    positional, named = _operands(t, args, kwargs)
    return _wrapped(t, found, kind, fakes_among([*positional, *named.values()]))


def _wrapped(t: Tracer, found: Any, kind: type, operands: list[Any] | None) -> Any:
    """``operands``: those of the operation that has just made it, if it was one."""
    if type(found) in (TupleValue, ListValue):
        items = [_wrapped(t, item, kind, operands) for item in found.items]
        return type(found)(items, found.cls)
    if type(found) is not TensorValue or issubclass(found.cls, kind):
        return found
    known = operands is None or any(found.fake is fake for fake in operands)
    if known or found.cls is not torch.Tensor:
        return _of_class(t, found, kind)
    found.cls = kind  # of the plain tensor that it was, nobody knows
    return found


# -- objects of subclasses ------------------------------------------------------------------------
def _of_class(t: Tracer, tensor: Value, kind: type, method: str = "view_as") -> Value:
    """Another object for the memory of a tensor."""
    if not is_capturable(kind) or type(tensor) is not TensorValue:
        t.graph_break("tensor-subclass", f"a {kind.__name__} of {tensor.describe()} is made")
    args: list[Value] = [tensor] if method == "detach" else [tensor, tensor]
    made: Any = t.tensors.emit(t, "call_method", method, args, {})
    made.cls = kind
    return cast(TensorValue, made)


@handles(torch.Tensor.as_subclass)
def _as_subclass(t: Tracer, self: Value, cls: Value) -> Value:
    return _of_class(t, self, cls.known())


@handles(torch.Tensor._make_subclass)
def _make_subclass(t: Tracer, cls: Value, data: Value, require_grad: Value = NONE) -> Value:
    if truth(t, require_grad) or issubclass(cls.known(), torch.nn.Parameter):
        t.graph_break("tensor-subclass", "a leaf of the graph of gradients is made")
    return _of_class(t, data, cls.known(), "detach")


@native(torch.Tensor.__new__)
def _new(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What makes a subclass without a ``__new__``: of a tensor another object, else a new one."""
    alone = len(args) == 2 and type(args[1]) is TensorValue and not kwargs
    made = args[1] if alone else t.tensors.call(t, torch.Tensor, args[1:], kwargs)
    return _of_class(t, made, args[0].known())


# -- blocks that turn them off --------------------------------------------------------------------
@fields
class Block(Rebuildable):
    """The manager of such a block, which is in force here, too, while the program is in it.

    Where the region ends within, it is entered for what follows.
    """

    cls: ClassVar[type] = BlockWithout
    entered: Any = None

    def recipe(self, t: Tracer) -> Recipe:
        """Make it, and enter its block."""
        return block_without, [Const(self.entered is not None)]


@handles(BlockWithout.__enter__)
def _enter(t: Tracer, self: Value, /) -> None:
    if not isinstance(self, Block) or self.entered is not None:
        t.graph_break("torch-mode", "a block without overrides is entered again")
    self.entered = entered = block_without(True)
    t.tensors.when_capture_ends(
        lambda: self.entered is entered and entered.__exit__(None, None, None)
    )


@handles(BlockWithout.__exit__)
def _exit(t: Tracer, self: Value, /, *error: Value) -> None:
    if not isinstance(self, Block) or self.entered is None:
        t.graph_break("torch-mode", "a block without overrides ends that began before")
    self.entered.__exit__(None, None, None)
    self.entered = None


native(BlockWithout)(lambda t, args, kwargs: Block())
