"""Changes of what was detached from an argument, through which gradients go."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def turned(x: Tensor, w: Tensor) -> Any:
    v = w.detach()
    v.t().mul_(3)
    v[0] = x[1]
    return v


def view(x: Tensor, w: Tensor) -> Any:
    v = w.detach()
    u = v[1:]
    v[0] = x[1]
    v[1:].mul_(x[1:])
    return u


def by_data(x: Tensor, w: Tensor) -> Any:
    v = w.data
    v.mul_(x)
    return v, w * x


def of_no_gradient(x: Tensor, w: Tensor) -> Any:
    v = w.detach()[1:].detach()
    v.mul_(x[1:])
    return v, x * 2


def inside(x: Tensor, w: Tensor) -> Any:
    v = w.detach()
    v[0] = x[1]
    return v * 2


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("program", [turned, view, by_data, of_no_gradient, inside])
def test_as_eager(program: Callable[[Tensor, Tensor], Any], gradient: bool) -> None:
    found = []
    for function in (program, dynacap.compile(program, backend="native")):
        numbers = torch.Generator().manual_seed(0)
        x = torch.randn(3, 3, generator=numbers, requires_grad=True)
        w = torch.randn(3, 3, generator=numbers, requires_grad=gradient)
        out = function(x, w)
        results = list(out) if isinstance(out, tuple) else [out]
        facts = [(each.requires_grad, each.is_leaf, each._version) for each in results]
        sum(each.sin().sum() for each in results).backward()
        found.append((facts, [*results, w, x.grad, w.grad]))
    assert found[1][0] == found[0][0]
    torch.testing.assert_close(found[1][1], found[0][1])


@pytest.mark.parametrize("times", [1, 2])
def test_the_first_call_is_as_the_others(times: int) -> None:
    """Under a dispatch mode, such as torch's own of the first call, torch computes something else;
    the second time the graph is found on disk."""
    x = torch.randn(4, 4, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    x.requires_grad_()
    for _ in range(times):
        compiled = dynacap.compile(lambda x: torch.pinverse(x), backend="native")
        out = compiled(x)
        torch.testing.assert_close(out, torch.pinverse(x))
        out.abs().sum().backward()
