"""Questions whose answer is the same for the whole of a capture, or is guarded with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from dynacap import marks
from dynacap.backends import torch_questions
from dynacap.guards.relations import Predicate
from dynacap.values.base import Const, Value
from dynacap.values.data_model.calls import fold
from dynacap.values.library.handlers import handles_rows
from dynacap.values.natives import find_native, native
from dynacap.values.tracer import Tracer


def answers(value: Any, *targets: Any) -> None:
    """Have calls of these functions give a constant."""
    for target in targets:
        if find_native(target) is None:
            native(target)(lambda t, args, kwargs: Const(value))


answers(True, marks.is_compiling)
for _answer, _targets in torch_questions.ANSWERS:
    answers(_answer, *_targets)


handles_rows(
    {
        torch.is_tensor: lambda t, obj: Const(issubclass(obj.cls, torch.Tensor)),
        torch.is_storage: lambda t, obj: Const(obj.cls in torch._storage_classes),
    }
)


@functools.cache
def _still(function: Callable[[], Any], answer: Any) -> Predicate:
    name = function.__name__
    return Predicate((), lambda: function() == answer, f"{name}() is {answer!r} as at capture")


def _ask(
    function: Callable[..., Any], t: Tracer, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    answer = fold(t, function, args, kwargs)
    if answer is None:
        name = function.__name__
        t.graph_break("unsupported-call", f"{name} is asked of what is no constant")
    if function in torch_questions.SETTINGS and function not in t.tensors.set_here:
        t.guards.add(_still(function, answer.constant()))
    return answer


for _function in torch_questions.ASKED:
    if find_native(_function) is None:
        native(_function)(functools.partial(_ask, _function))
