"""What an operation gave on fakes becomes a value: tensors by node, everything else by itself."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from dynacap.values.base import Const, Value
from dynacap.values.container import ListValue, TupleValue, fresh_dict
from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.values.tensor.family import TensorFamily

_SCALARS = (int, float, bool, complex, str)


def holds_tensors(result: Any) -> bool:
    """Whether there is a tensor in a result, at any depth."""
    if isinstance(result, torch.Tensor):
        return True
    if isinstance(result, list | tuple):
        return any(holds_tensors(item) for item in result)
    if isinstance(result, dict):
        return any(holds_tensors(item) for item in result.values())
    return False


def holds_symbols(result: Any) -> bool:
    """Whether a result without tensors has sizes or numbers that are symbolic."""
    if isinstance(result, list | tuple):
        return any(map(holds_symbols, result))
    return isinstance(result, torch.SymInt | torch.SymFloat | torch.SymBool)


def static_value(t: Tracer, result: Any) -> Value:
    """A result without tensors, which follows from metadata alone."""
    if isinstance(result, torch.Size):
        return size_value(result)
    if type(result) in _SCALARS or result is None:
        return Const(result)
    return t.wrap(result, None)


def size_value(size: torch.Size) -> TupleValue:
    """A shape as a value."""
    return TupleValue([Const(n) for n in size], torch.Size)


def wrap_result(t: Tracer, family: TensorFamily, node: Any, result: Any) -> Value:
    """The value of what ``node`` gives, with a node for each tensor inside a container."""
    if isinstance(result, torch.Tensor):
        return family.tensor_of(node, result)
    if isinstance(result, torch.SymInt | torch.SymFloat):
        return family.symbols.value(result, lambda: node)  # type: ignore[no-any-return]
    if isinstance(result, tuple):
        return TupleValue(_items(t, family, node, result), type(result))
    if isinstance(result, list):
        return ListValue(_items(t, family, node, result))
    if isinstance(result, dict):
        pairs = [
            (t.wrap(key, None), _item(t, family, node, key, item)) for key, item in result.items()
        ]
        return fresh_dict(t, pairs)
    return static_value(t, result)


def _items(t: Tracer, family: TensorFamily, node: Any, result: Any) -> list[Value]:
    return [_item(t, family, node, index, item) for index, item in enumerate(result)]


def _item(t: Tracer, family: TensorFamily, node: Any, key: Any, item: Any) -> Value:
    if not holds_tensors(item) and not holds_symbols(item):
        return static_value(t, item)
    known = family.known_tensor(item)
    if known is not None:
        return known
    inner = family.add_node(t, "call_function", operator.getitem, (node, key), {}, item)
    return wrap_result(t, family, inner, item)
