"""Results of operators that lie in the memory of an argument: it is there as long as they are."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]

GRU, LSTM = torch.nn.GRUCell(3, 4), torch.nn.LSTMCell(3, 4)


def parts(x: Tensor) -> Any:
    """Split in a way that autograd takes for new tensors."""
    first, second = torch.unsafe_chunk(x[:, :4] @ x.T, 2)
    third, *_ = torch.unsafe_split(second @ x, 1)
    return first.exp() @ x, third + 1


def conjugate(x: Tensor) -> Any:
    """The product keeps conjugate views of a slice for its backward pass."""
    return torch.view_as_real(torch.complex(x, x)[:, :3] @ torch.complex(x[:3, :2], x[:3, 2:4]))


PROGRAMS: list[Callable[[Tensor], Any]] = [
    lambda x: GRU(x[:, :3], x),
    lambda x: LSTM(x[:, :3], (x, x * 2)),
    parts,
    conjugate,
]


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_eager(program: Callable[[Tensor], Any], gradient: bool) -> None:
    found = []
    for function in (program, dynacap.compile(program, backend="native")):
        x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), requires_grad=gradient)
        out = function(x)
        results = list(out) if isinstance(out, tuple) else [out]
        if gradient:
            torch.empty(1 << 12).fill_(7)  # what lies in memory that was let go of
            sum(each.sin().sum() for each in results).backward()
        found.append([*results, x.grad])
    torch.testing.assert_close(found[1], found[0])
