"""Tensors that are to be conjugated, or negated, when they are read: memory holds other numbers."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.backends.native.against_eager import compiled

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def few(dtype: torch.dtype) -> Tensor:
    return torch.randn(4, 4, generator=torch.Generator().manual_seed(3), dtype=dtype)


VIEWS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.conj(),
    lambda x: x.conj()[1:],
    lambda x: x.mH[1:].unsqueeze(0),
]
PROGRAMS: list[Callable[[Tensor], Tensor]] = [
    *VIEWS,
    lambda x: x.conj() * x.conj(),
    lambda x: x.conj() @ x.conj(),
    lambda x: x.mH.conj()[1:] @ x.mH,
    lambda x: x.conj().imag.T.cumsum(0),
    lambda x: x.conj().imag.T @ x.conj().imag,
    lambda x: x.conj().imag.T[1:].exp() * 2,
]


@pytest.mark.parametrize("function", VIEWS)
def test_views_of_an_argument(function: Callable[[Tensor], Tensor]) -> None:
    x = few(torch.complex64)
    found = compiled(function)(x)
    assert found.is_conj()
    found.add_(1)
    assert torch.equal(found, function(x))


@pytest.mark.parametrize("function", PROGRAMS)
def test_results_and_gradients(function: Callable[[Tensor], Tensor]) -> None:
    def run(fn: Any) -> Any:
        x = torch.randn(
            4, 4, generator=torch.manual_seed(0), dtype=torch.complex64
        ).requires_grad_()
        result = fn(x)
        (result * (2 + 1j)).abs().square().sum().backward()
        return result.detach(), x.grad

    torch.testing.assert_close(run(compiled(function)), run(function))


def test_a_gradient_that_is_to_be_negated() -> None:
    def run(fn: Any) -> Any:
        x = few(torch.float32).requires_grad_()
        fn(x).backward(torch._neg_view(torch.ones(4, 4)))
        return x.grad

    torch.testing.assert_close(run(compiled(lambda x: x * x.exp())), run(lambda x: x * x.exp()))
