"""``torch.autograd.Function``: one node of the graph, with the user's gradient."""

from typing import Any

import torch
from torch import Tensor

from dynacap.testing import call, program

X = torch.linspace(-2, 2, 6).requires_grad_()
PLAIN = torch.linspace(-2, 2, 6)
SEEN: list[str] = []


class Scale(torch.autograd.Function):
    """Its gradient is not the true one, so that one can tell whose gradient was used."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x.sin() * factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x * 100, None


class Split(torch.autograd.Function):
    """Two results, one of them without a gradient; the context is set up apart."""

    @staticmethod
    def forward(x: Tensor) -> Any:
        return x * 2, (x > 0).sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> Any:
        return grad * 5


class Chatty(torch.autograd.Function):
    """Does more than compute."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        SEEN.append("forward")
        return x + 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 7


class Same(torch.autograd.Function):
    """Gives its argument back, with another gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.wanted = ctx.needs_input_grad[0]
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return -grad


@program(call(X), call(PLAIN))
def test_own_gradient(x: Tensor) -> Any:
    y = Scale.apply(x * 1, 3.0)
    return y.relu(), y.requires_grad


@program(call(X), call(PLAIN))
def test_two_results(x: Tensor) -> Any:
    y, count = Split.apply(x)
    return y + 1, count, y.requires_grad, count.requires_grad


@program(call(X), call(PLAIN))
def test_argument_given_back(x: Tensor) -> Any:
    y = Same.apply(x)
    return y is x, y * 2


@program((X,))
def test_without_recording(x: Tensor) -> Any:
    with torch.no_grad():
        y, z = Scale.apply(x, 2.0), Same.apply(x)
    return y, z is x, z + 1, y.requires_grad


@program((X,), breaks=None, watch=("SEEN",))
def test_effects_are_not_lost(x: Tensor) -> Any:
    return Chatty.apply(x) * 2, len(SEEN)
