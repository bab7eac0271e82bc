"""torch's own objects as values: tensors, dtypes, devices, sizes, operators."""

from __future__ import annotations

from typing import Any

import torch
from torch._library import custom_ops

from dynacap.guards.source import Source
from dynacap.values.base import Const, Known, NotConstant, Value
from dynacap.values.build import CONST_TYPES, build_known, builds, builds_subclasses
from dynacap.values.container import TupleValue
from dynacap.values.data_model.calls import C_METHODS, fold, fold_or_break, folds
from dynacap.values.data_model.items import as_tuple
from dynacap.values.data_model.operators import binary_op
from dynacap.values.natives import native, pure
from dynacap.values.object import PropertyValue
from dynacap.values.symbol import SymbolValue
from dynacap.values.tensor.results import static_value
from dynacap.values.tracer import Tracer

CONST_TYPES.update((torch.dtype, torch.device, torch.layout, torch.memory_format))


@builds_subclasses(torch.Tensor)
def build_tensor(t: Tracer, real: Any, source: Source | None) -> Value:
    """A tensor: an input of the graph."""
    return t.tensors.wrap(t, real, source)


builds(
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
    custom_ops.CustomOpDef,
    torch.Generator,
    torch.finfo,
    torch.iinfo,
    type(torch.FloatTensor),
)(build_known)
builds_subclasses(torch._ops._OpNamespace)(build_known)
builds_subclasses(torch._ops._Ops)(build_known)


_ON_CLASS: Any = torch.distributions.utils._lazy_property_and_property


@native(_ON_CLASS)
def make_lazy_property(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What a lazy property of a distribution is on its class: ``Categorical.probs``."""
    return PropertyValue(_ON_CLASS, args)


@native(torch.Size)
def make_size(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.Size(sizes)``."""
    items = as_tuple(t, args[0]) if args else []
    if any(type(item) is SymbolValue for item in items) and all(i.cls is int for i in items):
        return TupleValue(items, torch.Size)
    try:
        return static_value(t, torch.Size([item.constant() for item in items]))
    except NotConstant:
        return t.graph_break("data-dependent-value", "torch.Size of what is no constant")
    except (TypeError, ValueError) as error:
        return t.raise_real(error)


folds(torch.device, torch.finfo, torch.iinfo, torch.broadcast_shapes)


# An operation like ``torch.tensor``.
native(torch.Tensor)(lambda t, args, kwargs: t.tensors.call(t, torch.Tensor, args, kwargs))


_GIVE_SIZES = frozenset({"__add__", "__radd__", "__mul__", "__rmul__", "__getitem__"})


def _size_method(raw: Any) -> None:
    @native(raw)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found = fold(t, raw, args, kwargs)
        if found is not None:
            return found
        # A size together with what is no constant: the plain tuple's method will do.
        if raw.__name__ not in _GIVE_SIZES or not isinstance(args[0], TupleValue):
            return fold_or_break(t, raw, args, kwargs)
        operands = [TupleValue(args[0].items), *args[1:]]
        if raw.__name__ == "__radd__":  # which a tuple does not have
            if not isinstance(args[1], TupleValue):
                return fold_or_break(t, raw, args, kwargs)
            return _as_size(t.call(Known(tuple.__add__), operands[::-1], kwargs))
        return _as_size(t.call(Known(getattr(tuple, raw.__name__)), operands, kwargs))


def _as_size(found: Value) -> Value:
    """Parts, sums and multiples of a size are sizes where all that they hold are ints."""
    if isinstance(found, TupleValue) and all(item.cls is int for item in found.items):
        return TupleValue(found.items, torch.Size)
    return found


@native(torch.Size.numel)
def numel(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``size.numel()``."""
    assert isinstance(args[0], TupleValue)
    count: Value = Const(1)
    for item in args[0].items:
        count = binary_op(t, "*", count, item)
    return count


for _raw in vars(torch.Size).values():
    if isinstance(_raw, C_METHODS) and _raw is not torch.Size.numel:
        _size_method(_raw)


def _structseq_field(cls: Any, index: int, raw: Any) -> None:
    @native(raw)
    def handler(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        found = args[0]
        if not isinstance(found, TupleValue):
            t.graph_break("unsupported-field", f"{cls.__name__}.{raw.__name__} of something else")
        return t.force_item(found.items, index)


for _cls in torch.return_types.all_return_types:
    for _index, _field in enumerate(getattr(_cls, "__match_args__", ())):
        _structseq_field(_cls, _index, vars(_cls)[_field])


# What C methods of dtypes and devices give depends on nothing but them.
_CONST = (torch.dtype, torch.device, torch.finfo, torch.iinfo, torch.layout)
pure(raw for cls in _CONST for raw in vars(cls).values() if isinstance(raw, C_METHODS))
