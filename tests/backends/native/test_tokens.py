"""Operators that are there for their effect, in graphs with a gradient: no wrapper, no token."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]

ROWS: dict[str, Callable[[Tensor], Any]] = {
    "inv": lambda x: torch.linalg.inv(x).sin(),
    "two in a row": lambda x: torch.linalg.cholesky(torch.linalg.inv(x @ x.T)),
    "used twice": lambda x: (torch.linalg.solve(x, x[0]), torch.linalg.solve(x, x[1]).exp()),
    "several results": lambda x: torch.linalg.lu_factor(x.exp())[0] * 2,
}


def results(function: Any, value: Tensor) -> list[Tensor]:
    x = value.clone().requires_grad_()
    made = function(x)
    made = list(made) if isinstance(made, tuple) else [made]
    return [*(each.detach() for each in made), *torch.autograd.grad(sum(m.sum() for m in made), x)]


@pytest.mark.parametrize("function", ROWS.values(), ids=ROWS)
def test_as_eager_without_a_warning(
    function: Callable[[Tensor], Any], caplog: pytest.LogCaptureFixture
) -> None:
    torch.manual_seed(0)
    value = torch.randn(4, 4) + 3 * torch.eye(4)
    compiled = dynacap.compile(function, backend="native")
    torch.testing.assert_close(results(compiled, value), results(function, value))
    assert "runs eagerly" not in caplog.text


def test_what_is_singular_raises_each_time() -> None:
    compiled: Any = dynacap.compile(lambda x: torch.linalg.inv(x) * 2, backend="native")
    for scale in (1.0, 0.0, 2.0, 0.0):
        x = (torch.eye(3) * scale).requires_grad_()
        if scale:
            torch.testing.assert_close(compiled(x), torch.linalg.inv(x) * 2)
        else:
            with pytest.raises(RuntimeError, match=r"linalg\.inv: The diagonal"):
                compiled(x)
