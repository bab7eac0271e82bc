"""Numbers made from the elements of tensors, which stay in the graph if the options say so.

Torch calls their symbols unbacked: no number stands behind them while capturing.  Operations take
them; Python that asks for the number breaks the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from dynacap.backends import torch_refusals
from dynacap.values.base import Const, Value
from dynacap.values.container import ListValue
from dynacap.values.natives import native
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer

if TYPE_CHECKING:
    from dynacap.values.tensor.family import TensorFamily

MOST_ELEMENTS = 64  # of one tensor that becomes a list


def read_elements(family: TensorFamily, t: Tracer, name: str, obj: Value) -> Value:
    """``tensor.item()``, ``tolist()``, ``int(tensor)`` and the like."""
    assert isinstance(obj, TensorValue)
    fake = obj.fake
    made = float if fake.dtype.is_floating_point else int
    if fake.dtype is torch.bool or fake.is_complex() or made not in torch_refusals.ELEMENTS[name]:
        t.graph_break("data-dependent-value", f"Tensor.{name} is called on {fake.dtype}")
    if name != "tolist":
        return family.emit(t, "call_method", "item", [obj], {})
    if any(type(size) is not int for size in fake.shape) or fake.numel() > MOST_ELEMENTS:
        t.graph_break("data-dependent-value", f"a list is made of a tensor of shape {fake.shape}")
    return _to_list(family, t, obj)


def _to_list(family: TensorFamily, t: Tracer, obj: TensorValue) -> Value:
    if obj.fake.dim() == 0:
        return family.emit(t, "call_method", "item", [obj], {})
    rows = [
        family.emit(t, "call_method", "select", [obj, Const(0), Const(index)], {})
        for index in range(obj.fake.shape[0])
    ]
    return ListValue([_to_list(family, t, row) for row in rows if isinstance(row, TensorValue)])


@native(torch._check_is_size)
def _check_is_size(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The graph asks, and warns that the function is old."""
    t.tensors.call(t, torch._check_is_size, args[:1], {})
    return Const(None)
