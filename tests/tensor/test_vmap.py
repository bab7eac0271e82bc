"""``torch.vmap`` inside a captured function."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(12.0).reshape(3, 4) - 5
W = torch.linspace(-1, 1, 4).requires_grad_()
SCALE = torch.tensor([2.0, 3.0, 4.0, 5.0])


def row(x: Tensor, w: Tensor) -> Tensor:
    return (x * w * SCALE).sum() + x.max()


@program((X, W))
def test_over_the_first_dimension(x: Tensor, w: Tensor) -> Any:
    return torch.vmap(row, in_dims=(0, None))(x, w), x + 1


@program((X, torch.ones(4).requires_grad_()))
def test_dims_and_structures(x: Tensor, w: Tensor) -> Any:
    def f(pair: Any, z: Tensor) -> Any:
        a, (b,) = pair
        return a + b, [z.sum()]

    left = torch.vmap(f, in_dims=((1, [None]), 0), out_dims=(1, [0]))((x, [w[:3]]), x.T)
    right = torch.vmap(lambda t: t.sin(), in_dims=-1, out_dims=-1)(x)
    return left, right


@program((X,))
def test_inside_each_other(x: Tensor) -> Any:
    def outer(a: Tensor) -> Tensor:
        return torch.vmap(lambda b: a * b)(x)

    return torch.vmap(outer)(x), torch.vmap(torch.vmap(torch.sin))(x)


@program((X,), breaks=1)
def test_what_eager_refuses(x: Tensor) -> Any:
    try:
        return torch.vmap(lambda a, b: a + b)(x, x.T)
    except ValueError as error:
        return str(error)


@program((X,), breaks=None)
def test_break_inside(x: Tensor) -> Any:
    def f(a: Tensor) -> Tensor:
        print("inside")
        return a * 2

    return torch.vmap(f)(x) + 1


@scenario(breaks=None)
def test_level_is_left_when_the_graph_raises() -> Scenario:
    def f(x: Tensor, at: Tensor) -> Any:
        return torch.vmap(lambda row: row[at])(x)

    def after(i: int, result: Any) -> Any:
        return torch._C._functorch.maybe_current_level()

    return Scenario(f, [call(X, torch.tensor([0])), call(X, torch.tensor([9]))], after=after)


@program((X,), breaks=1)
def test_grad_is_one_break(x: Tensor) -> Any:
    return torch.func.grad(lambda t: (t**2).sum())(x * 2) + 1


@program((X,), breaks=1)
def test_cond_is_one_break(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)) * 2


@program((X.clone().requires_grad_(),), breaks=1)
def test_checkpoint_is_one_break(x: Tensor) -> Any:
    return checkpoint(torch.sin, x * 2, use_reentrant=False) + 1
