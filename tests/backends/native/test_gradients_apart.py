"""Gradients of results in which some elements are one are numbers of their own."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]

PROGRAMS: list[Callable[[Tensor], Tensor]] = [
    lambda x: (x * 1).unfold(0, 2, 1),
    lambda x: (x * 1)[:, ::3].unfold(0, 2, 1),
    lambda x: torch.roll(x, 1, -2).unfold(-1, 3, 2),
    lambda x: (x * 1).as_strided((4, 4), (1, 1)),
    lambda x: (x * 2)[:, None].expand(4, 3, 6),
    lambda x: x.unfold(0, 3, 1),
    lambda x: (x * 2)[1:, ::2].t(),
]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_eager(program: Callable[[Tensor], Tensor], dynamic: bool) -> None:
    compiled = dynacap.compile(program, backend="native", dynamic=dynamic)
    for _ in range(2):
        found = []
        for function in (program, compiled):
            numbers = torch.Generator().manual_seed(0)
            x = torch.randn(4, 6, generator=numbers, requires_grad=True)
            out = function(x)
            out.backward(torch.randn(out.shape, generator=numbers))
            found.append([out, x.grad])
        torch.testing.assert_close(found[1], found[0])
