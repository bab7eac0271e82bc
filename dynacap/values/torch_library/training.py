"""What optimizers, profilers and recurrent layers call besides operations."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch.autograd.profiler import record_function
from torch.optim.adam import adam

from dynacap.values.base import Const, Value, constant_or, fields
from dynacap.values.container import ListValue, TupleValue, fresh_dict
from dynacap.values.data_model.attribute_writes import set_attribute
from dynacap.values.data_model.attributes import find_attribute, get_attribute, real_of
from dynacap.values.function import FunctionValue
from dynacap.values.natives import native, native_code
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tensor.arguments import lower_all
from dynacap.values.tensor.value import TensorValue
from dynacap.values.tracer import Tracer


@native(torch._C._group_tensors_by_device_and_dtype)
def group_tensors(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Sorts tensors by what their metadata says: done on the fakes, in torch's own order."""
    _, fakes = lower_all(t, [*args, *kwargs.values()])
    return _known(t, torch._C._group_tensors_by_device_and_dtype(*fakes))


def _known(t: Tracer, result: Any) -> Value:
    """A result whose tensors are all known."""
    family = t.tensors
    if isinstance(result, torch.Tensor):
        found: Value | None = family.known_tensor(result)
        assert found is not None
        return found
    if isinstance(result, list):
        return ListValue([_known(t, item) for item in result])
    if isinstance(result, tuple):
        return TupleValue([_known(t, item) for item in result])
    if isinstance(result, dict):
        return fresh_dict(t, [(t.wrap(key, None), _known(t, item)) for key, item in result.items()])
    return t.wrap(result, None)


@fields
class Label(Rebuildable):
    """What runs between the two ends of a ``with record_function(...)``.

    The graph shows profilers its own labels; one whose block the region does not leave is begun
    for real where the region ends, so that whoever leaves the block can end it.
    """

    cls: ClassVar[type] = torch.ScriptObject
    arguments: list[Value]
    ended: bool = False

    def recipe(self, t: Tracer) -> Recipe:
        """Begin it; one that is over is begun and ended."""
        return (_ended_label if self.ended else _BEGIN), self.arguments


_BEGIN: Any = torch.ops.profiler._record_function_enter_new


def _ended_label(*arguments: Any) -> Any:
    label = _BEGIN(*arguments)
    torch.ops.profiler._record_function_exit._RecordFunction(label)
    return label


@native(record_function.__enter__)
def begin_label(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``with record_function(name):``."""
    label = Label([get_attribute(t, args[0], name) for name in ("name", "args")])
    set_attribute(t, args[0], "record", label)
    return args[0]


@native(record_function.__exit__)
def end_label(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The end of its block."""
    label = get_attribute(t, args[0], "record")
    if not isinstance(label, Label):
        return t.graph_break("profiler", "the block of a profiler's label ends")
    label.ended = True
    return Const(None)


@native_code(adam.__code__)
def update_parameters(
    t: Tracer, function: FunctionValue, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """An optimizer's update, as every one of torch's is wrapped.

    While code is captured, torch takes counts of steps as tensors; ``capturable`` is the form
    of the update that is written for that (``torch.compile`` sets it too).
    """
    cells = dict(zip(function.code.co_freevars, t.closure(function), strict=True))
    lists = [each.items for each in args if isinstance(each, ListValue) and each.is_loaded]
    tensors = [item for items in lists for item in items if isinstance(item, TensorValue)]
    on_cpu = all(tensor.fake.device.type == "cpu" for tensor in tensors)
    if on_cpu and "capturable" in kwargs:
        kwargs["capturable"] = Const(True)
    update = t.cell_content(cells["func" if on_cpu else "disabled_func"])
    assert update is not None
    return t.call(update, args, kwargs)


@native(torch.nn.RNNBase._weights_have_changed)
def weights_have_changed(t: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Whether a weak reference to a weight is not to the weight any more; both are guarded."""
    module = args[0]
    refs = get_attribute(t, module, "_flat_weight_refs")
    names = get_attribute(t, module, "_flat_weights_names")
    if not isinstance(refs, ListValue) or not isinstance(names, ListValue):
        t.graph_break("weak-reference", f"{module.describe()} keeps its weights in another way")
    for index in range(min(len(refs.items), len(names.items))):
        ref = t.force_item(refs.items, index)
        weight = find_attribute(t, module, t.force_item(names.items, index).constant())
        if constant_or(ref, module) is None or weight is None:
            continue
        if _refers_elsewhere(t, ref, weight):
            return Const(True)
    return Const(False)


def _refers_elsewhere(t: Tracer, ref: Value, weight: Value) -> bool:
    real_ref = real_of(ref)
    if not isinstance(weight, TensorValue) or weight.real is None or real_ref is None:
        t.graph_break("weak-reference", "a weight of a recurrent layer was made just now")
    for value, real in ((ref, real_ref), (weight, weight.real)):
        if value.source is not None:
            t.guard("IdIs", value.source, real)
    return real_ref() is not weight.real
