"""``torch.autograd.Function``: the program's own backward pass, as often and as it is in eager."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

import dynacap
from dynacap.backends.native.aten.functions import Reads, is_taken_apart

pytestmark = [pytest.mark.torch, pytest.mark.cc]

FACTOR = 1.0
seen: list[Any] = []


def of_helper(grad: Tensor) -> Tensor:
    return torch.where(grad > 0, grad * FACTOR, torch.zeros_like(grad))


class Reversed(Function):
    strength = 1.0

    @staticmethod
    def forward(ctx: Any, x: Tensor, by: int) -> Tensor:
        ctx.by = by
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0] * -Reversed.strength * ctx.by, None


class Helped(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        ctx.done = max(1, len(x))
        return of_helper(grad) * x.exp()


class Noted(Helped):
    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        seen.append(ctx.needs_input_grad)
        print("backward")
        return grads[0] * 2


@torch.library.custom_op("dynacap_test::scaled", mutates_args=())
def scaled(x: Tensor) -> Tensor:
    return x * 2


@scaled.register_fake
def _scaled_fake(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def scaled_backward(ctx: Any, grad: Tensor) -> Tensor:
    seen.append("scaled")
    return grad * 2


scaled.register_autograd(scaled_backward, setup_context=lambda ctx, inputs, output: None)


library = torch.library.Library("dynacap_defined", "DEF")


def define(schema: str, function: Any, key: str, backward: Any = None) -> None:
    name = f"dynacap_defined::{library.define(schema)}"
    torch.library.impl(name, key, function, lib=library)
    if key == "CPU":
        torch.library.register_fake(name, function, lib=library)
    if backward is not None:
        torch.library.register_autograd(name, backward, lib=library)


def reading_backward(ctx: Any, grad: Tensor) -> Tensor:
    return of_helper(grad) * 2


def several_backward(ctx: Any, grads: list[Tensor]) -> list[Tensor]:
    seen.append("several")
    return [grad * 2 for grad in grads]


def composed(x: Tensor) -> Tensor:
    return x * FACTOR


define("reading(Tensor x) -> Tensor", lambda x: x * 2, "CPU", reading_backward)
define("noting(Tensor x, *, int by) -> Tensor", lambda x, by: x * by, "CPU", scaled_backward)
define("several(Tensor[] x) -> Tensor[]", lambda x: [y * 2 for y in x], "CPU", several_backward)
define("composed(Tensor x) -> Tensor", composed, "CompositeImplicitAutograd")
define("by_hand(Tensor x) -> Tensor", lambda x: x * 2, "CPU")
defined = torch.ops.dynacap_defined


def steps(function: Any) -> list[Any]:
    global FACTOR
    found: list[Any] = []
    w = torch.ones(2, requires_grad=True)
    try:
        for changed in (False, "before", "between", False):
            Reversed.strength, FACTOR = (5.0, 3.0) if changed == "before" else (1.0, 1.0)
            result = function(w)
            if changed == "between":
                Reversed.strength, FACTOR = 7.0, 9.0
            found.extend(torch.autograd.grad(result.sum(), w))
    finally:
        Reversed.strength = FACTOR = 1.0
    return found


reversed_, helped, noted = (getattr(cls, "apply") for cls in (Reversed, Helped, Noted))  # noqa: B009
torch.library.impl("dynacap_defined::by_hand", "Autograd", lambda x: helped(x), lib=library)
PROGRAMS: dict[str, Any] = {
    "an attribute of its class": lambda w: reversed_(w * 2, 2),
    "a global of what it calls": lambda w: helped(w * 2) + w,
    "a list": lambda w: noted(w * 2).sin(),
    "a list, of an operator": lambda w: scaled(w * 2).sin(),
    "a list, of an operator by name": lambda w: torch.ops.dynacap_test.scaled(w * 2).sin(),
    "a global, of a defined operator": lambda w: defined.reading(w * 2).sin(),
    "a list, of an overload": lambda w: defined.noting.default(w * 2, by=3).sin(),
    "a list, of lists of tensors": lambda w: defined.several([w * 2, w])[0].sin(),
    "a global, of an operator that is composed": lambda w: defined.composed(w * 2).sin(),
    "a global, of a kernel for autograd": lambda w: defined.by_hand(w * 2).sin(),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_backward_reads_and_changes(name: str, capsys: Any) -> None:
    found = []
    for function in (PROGRAMS[name], dynacap.compile(PROGRAMS[name], backend="native")):
        seen.clear()
        found.append((steps(function), list(seen), capsys.readouterr().out))
    torch.testing.assert_close(found[1][0], found[0][0])
    assert found[1][1:] == found[0][1:]


class Foreign(Function):
    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        import math

        return grads[0] * math.pi


def closed_over(value: Any, setting: bool) -> type[Function]:
    class Closed(Function):
        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            nonlocal value
            if setting:
                value = 2
            return [grad * value for grad in grads]

    return Closed


def reading(value: Any) -> type[Function]:
    class Reading(Function):
        @staticmethod
        def backward(ctx: Any, *grads: Tensor) -> Any:
            return [grad * value for grad in grads]

    return Reading


@pytest.mark.parametrize(
    ("cls", "refused"),
    [
        (Reversed, ""),
        (Helped, ""),
        (reading(2.5), ""),
        (reading(torch.ones(2)), "uses value"),
        (reading([2]), "uses value"),
        (closed_over(2, setting=True), "changes value"),
        (Noted, "uses seen"),
        (Foreign, "changes or imports math"),
    ],
)
def test_what_is_refused(cls: Any, refused: str) -> None:
    graph = dynacap.fxlite.Graph()
    graph.output((graph.call_function(cls.apply, (graph.placeholder("x"),)),))
    assert Reads(graph).refused.endswith(refused)
    assert bool(Reads(graph).refused) == bool(refused)


@pytest.mark.parametrize(("operator", "refused"), [("reading", ""), ("noting", "uses seen")])
def test_operators_that_are_refused(operator: str, refused: str) -> None:
    graph = dynacap.fxlite.Graph()
    called = getattr(defined, operator)
    graph.output((graph.call_function(called, (graph.placeholder("x"),)),))
    assert Reads(graph).refused.endswith(refused)
    assert bool(Reads(graph).refused) == bool(refused)
    assert not is_taken_apart(called)


def test_operators_composed_in_python() -> None:
    """Without a gradient, too."""
    found = []
    for function in (defined.composed, dynacap.compile(defined.composed, backend="native")):
        found.append(steps_without_gradient(function))
    torch.testing.assert_close(found[1], found[0])
    assert all(map(is_taken_apart, (defined.composed.default, defined.by_hand)))


def steps_without_gradient(function: Any) -> list[Tensor]:
    global FACTOR
    found = []
    try:
        for factor in (1.0, 3.0):
            FACTOR = factor
            found.append(function(torch.ones(2)))
    finally:
        FACTOR = 1.0
    return found
