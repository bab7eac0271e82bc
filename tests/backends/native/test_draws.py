"""Random numbers in graphs that have a backward pass: as many, and in the order, as in eager."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]
called: list[str] = []


@torch.library.custom_op("dynacap_draws::note", mutates_args=())
def note(x: Tensor) -> Tensor:
    called.append("note")
    return x * 2


@note.register_fake
def _note_fake(x: Tensor) -> Tensor:
    return torch.empty_like(x)


DRAWS: dict[str, Callable[[Tensor], Tensor]] = {
    "randn_like": lambda x: torch.randn_like(x.detach()),
    "randint_like": lambda x: torch.randint_like(x.detach(), 9),
    "rand": lambda x: torch.rand(3, 5),
    "uniform_": lambda x: torch.empty(3, 5).uniform_(),
    "exponential_": lambda x: torch.empty(3, 5).exponential_(),
    "bernoulli_": lambda x: torch.empty(3, 5).bernoulli_(0.5),
    "geometric_": lambda x: torch.empty(3, 5).geometric_(0.3),
    "normal": lambda x: torch.normal(x.detach(), 1.0),
    "randperm": lambda x: torch.randperm(5),
    "dropout": lambda x: F.dropout(x, 0.5),
    "dropout of all": lambda x: F.dropout(x, 1.0),
    "alpha_dropout": lambda x: F.alpha_dropout(x, 0.5, True),
    "rrelu": lambda x: F.rrelu(x, training=True),
    "gumbel": lambda x: F.gumbel_softmax(x),
    "standard gamma": lambda x: torch._standard_gamma(x.detach().exp()),
    "an operator of the program": lambda x: note(x.detach()),
}


def steps(function: Callable[..., Any]) -> Any:
    torch.manual_seed(0)
    called.clear()
    x = torch.randn(3, 5, requires_grad=True)
    found = []
    for _ in range(2):
        result = function(x)
        found.append((result, *torch.autograd.grad(result.sum(), x)))
    return found, torch.rand(2), len(called)


@pytest.mark.parametrize("name", DRAWS)
def test_two_draws_are_two(name: str) -> None:
    def function(x: Tensor) -> Any:
        return DRAWS[name](x) * x.sin() - DRAWS[name](x) * x

    torch.testing.assert_close(steps(dynacap.compile(function, backend="native")), steps(function))


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_that_nobody_uses(name: str) -> None:
    def function(x: Tensor) -> Any:
        DRAWS[name](x)
        return (torch.rand(5) * x, DRAWS[name](x).relu())[0]

    torch.testing.assert_close(steps(dynacap.compile(function, backend="native")), steps(function))


@pytest.mark.parametrize("network", [nn.GRU, nn.RNN, nn.LSTM])
@pytest.mark.parametrize("gradient", [True, False])
def test_what_networks_drop_between_layers(network: Any, gradient: bool) -> None:
    torch.manual_seed(0)
    model = network(5, 4, 3, dropout=0.5, bidirectional=True)
    x = torch.randn(3, 2, 5, requires_grad=gradient)

    def packed(x: Tensor) -> Any:
        lengths = torch.tensor([3, 2])
        result, _ = model(nn.utils.rnn.pack_padded_sequence(x, lengths))
        return nn.utils.rnn.pad_packed_sequence(result)[0]

    def plain(x: Tensor) -> Any:
        return model(x)[0]

    for function in (plain, packed):
        found = []
        for each in (function, dynacap.compile(function, backend="native")):
            torch.manual_seed(0)
            with torch.set_grad_enabled(gradient):
                found.append((each(x), torch.rand(2)))
        torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("name", ["exponential_", "gumbel", "randn_like"])
def test_gradients_of_gradients_draw_the_same(name: str) -> None:
    def function(x: Tensor) -> Any:
        return ((DRAWS[name](x) + 1) * x.exp()).square().sum()

    found = []
    for each in (function, dynacap.compile(function, backend="native")):
        torch.manual_seed(0)
        x = torch.randn(3, 5, requires_grad=True)
        (grad,) = torch.autograd.grad(each(x), x, create_graph=True)
        found.append((grad, *torch.autograd.grad(grad.square().sum(), x), torch.rand(2)))
    torch.testing.assert_close(found[1], found[0])
