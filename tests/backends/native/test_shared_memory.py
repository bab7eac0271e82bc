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


KEPT: list[Tensor] = []


def keep(x: Tensor) -> Tensor:
    KEPT.append(x)
    return x.sin()


def define(schema: str, run: Any, fake: Any) -> Any:
    """An operator that is not torch's own."""
    name = schema.partition("(")[0]
    LIBRARY.define(schema)
    LIBRARY.impl(name, run, "CPU")
    LIBRARY.impl(name, fake, "Meta")
    return getattr(torch.ops.dynacap_shared_memory, name)


LIBRARY = torch.library.Library("dynacap_shared_memory", "DEF")
KEEP = define("keep(Tensor x) -> Tensor", keep, torch.empty_like)
TAIL = define("tail(Tensor x) -> Tensor", lambda x: x[1:], lambda x: torch.empty_like(x[1:]))
LATER = define("later(Tensor y, Tensor(a) x) -> Tensor(a)", *(2 * (lambda y, x: x[1:],)))


@pytest.mark.parametrize("part", [lambda x: x * 2, lambda x: (x * 2).T[1:], lambda x: x.T[1:]])
def test_others_code_may_keep_its_argument(part: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(30, 40)
    wanted = part(x).clone()
    KEPT.clear()
    dynacap.compile(lambda x: KEEP(part(x)) + 1, backend="native")(x)
    del x
    others = [torch.zeros(30, 40) for _ in range(4)]  # where memory was given back
    assert torch.equal(KEPT[0], wanted), len(others)


@pytest.mark.parametrize("part", [lambda x: x * 2, lambda x: (x * 2).T[1:], lambda x: x.T[1:]])
@pytest.mark.parametrize("function", [TAIL, lambda x: LATER(x + 1, x)])
def test_others_code_may_give_back_an_argument(
    part: Callable[[Tensor], Tensor], function: Any
) -> None:
    x = torch.randn(30, 40)
    wanted = part(x)[1:].clone()
    found = dynacap.compile(lambda x: function(part(x)), backend="native")(x)
    del x
    others = [torch.zeros(30, 40) for _ in range(4)]
    assert torch.equal(found, wanted), len(others)


@pytest.mark.parametrize("view", [lambda y: y[1:], lambda y: y.T, lambda y: y.unbind(0)[1]])
def test_a_view_of_what_the_backward_pass_needs_is_changed(view: Callable[[Tensor], Any]) -> None:
    """A gradient came of the changed numbers."""
    x = torch.randn(4, 4, requires_grad=True)
    result = dynacap.compile(lambda x: view(x.tanh()), backend="native")(x)
    result.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()
