"""Gradients of gradients through compiled graphs are eager's."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def views_of_one(x: Tensor, y: Tensor) -> Any:
    z = x.exp() * y
    return z[0], z[1:], z.t()


def without_recording(x: Tensor, y: Tensor) -> Any:
    with torch.no_grad():
        z = x.exp()
    return z * y.sin(), x.cos().detach() * x


def normalized(x: Tensor, y: Tensor) -> Any:
    return F.batch_norm(x**2, torch.zeros(4), torch.ones(4), y[0], training=True)


ROWS: list[Callable[[Tensor, Tensor], Any]] = [
    lambda x, y: x.sin() * x,
    lambda x, y: (x @ y).tanh(),
    lambda x, y: ((x * y).view(-1), (x * x).t(), x[0] * x[1], x),
    lambda x, y: F.dropout(x.exp(), 0.5) * y,
    lambda x, y: F.layer_norm(x, (4,), y[0]),
    lambda x, y: F.conv1d(x[None], y[:, :, None].contiguous()).relu().square(),
    views_of_one,
    without_recording,
    normalized,
]


def second_gradients(function: Any) -> list[Tensor | None]:
    torch.manual_seed(0)
    leaves = [torch.randn(4, 4, requires_grad=True) for _ in range(2)]
    seen: list[Tensor] = []
    inner = [leaf * 2 for leaf in leaves]
    inner[0].register_hook(lambda grad: seen.append(grad.detach()))
    made = function(*inner)
    total = sum(each.sum() for each in (made if isinstance(made, tuple) else (made,)))
    first = torch.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
    torch.stack([grad.square().sum() for grad in first if grad is not None]).sum().backward()
    return [*(g if g is None else g.detach() for g in first), *(x.grad for x in leaves), *seen]


@pytest.mark.parametrize("function", ROWS)
def test_as_eager(function: Any) -> None:
    expected = second_gradients(function)
    compiled = dynacap.compile(function, backend="native")
    for _ in range(2):
        torch.testing.assert_close(second_gradients(compiled), expected)


def test_penalty_through_a_module() -> None:
    """A gradient penalty: running statistics move once a call."""
    made = []
    for backend in ("eager", "native"):
        torch.manual_seed(1)
        norm = torch.nn.BatchNorm1d(8)
        net: Any = torch.nn.Sequential(torch.nn.Linear(3, 8), norm, torch.nn.Linear(8, 1))
        net = dynacap.compile(net, backend=backend)
        x = torch.randn(5, 3, requires_grad=True)
        (grad,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        (grad.norm(dim=1) - 1).square().mean().backward()
        made.append([p.grad for p in net.parameters()] + [norm.running_mean, norm.running_var])
    torch.testing.assert_close(made[1], made[0])


def test_penalty_through_spectral_norm() -> None:
    """A call that changes a buffer which it computes with is run again from how that was."""
    made = []
    for backend in ("eager", "native"):
        torch.manual_seed(1)
        layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 4))
        net: Any = dynacap.compile(layer, backend=backend)
        for _ in range(2):
            x = torch.randn(5, 3, requires_grad=True)
            (grad,) = torch.autograd.grad(net(x).tanh().sum(), x, create_graph=True)
            (grad.norm(dim=1) - 1).square().mean().backward()
        made.append([*(p.grad for p in net.parameters()), *net.buffers()])
    torch.testing.assert_close(made[1], made[0])


def test_an_argument_changed_in_between_is_refused() -> None:
    x = torch.randn(3, requires_grad=True)
    compiled = dynacap.compile(lambda x: x.sin() * 2, backend="native")
    (y,) = (compiled(x * 1),)
    with torch.no_grad():
        x.add_(1)
    torch.autograd.grad(y.sum(), x)
    y = compiled(x)
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


def test_arguments_are_let_go_by_the_backward_pass() -> None:
    compiled = dynacap.compile(lambda x: x + 1, backend="native")
    y = compiled(torch.randn(3, requires_grad=True) * 2)
    node = y.grad_fn
    assert node.dynacap_call is not None
    y.sum().backward(retain_graph=True)
    assert node.dynacap_call is not None
    y.sum().backward()
    assert node.dynacap_call is None
