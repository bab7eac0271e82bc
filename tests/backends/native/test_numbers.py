"""Floats that vary are inputs of the C function, and round as Python's do."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._functorch._aot_autograd import graph_compile
from torch.nn import functional as F

import dynacap
from dynacap.backends.native.aten import autograd
from dynacap.testing import check_same

pytestmark = pytest.mark.torch

FLOATS = (0.3, 0.7, 2.3, 0.123, 1e-3, 5.7)
FUNCTIONS = {
    "products": lambda x, s: (x * s, s * x, x / s, s / x, x.mul(s)),
    "sums": lambda x, s: (x + s, x - s, s - x, torch.add(x, x, alpha=s)),
    "integers": lambda x, s: (x.int() * s, x.long() + s, x.int() > s, (x > 0) * s),
    "no dimensions": lambda x, s: (x.sum() * s, x[0].double() * s),
    "halves": lambda x, s: (x.bfloat16() * s, x.half() + s, (x.bfloat16() * s).float()),
    "doubles": lambda x, s: (x.double() * s, x.double() + s, (x * s).double()),
    "comparisons": lambda x, s: (x > s, x <= s, x == s, torch.where(x > s, x, s)),
    "bounds": lambda x, s: (x.clamp(min=s), x.clamp(0 - s, s), F.threshold(x, s, s)),
    "powers": lambda x, s: (x.abs() ** s, s**x),
    "activations": lambda x, s: (F.leaky_relu(x, s), F.elu(x, s), F.softplus(x, s), F.celu(x, s)),
    "filled": lambda x, s: (
        torch.full((3,), s), torch.full((2,), s, dtype=torch.float16).float(),
        torch.full((2,), s, dtype=torch.int32), x.masked_fill(x > 0, s),
    ),
    "mixed": lambda x, s: (torch.lerp(x, x * 2, s), torch.addcmul(x, x, x, value=s)),
    "called": lambda x, s: (
        torch.addmm(x, x.expand(4, 4), x.expand(4, 4), alpha=s), torch.linspace(0, s, 5),
        torch._foreach_mul([x], s)[0],
    ),
    "computed": lambda x, s: (x * (s * 0.1 * 3), x + s * (0.1 * 3), s * 0.1 * 3, s),
    "in place": lambda x, s: (x.clone().mul_(s).add_(s), torch.empty(3).fill_(s)),
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_one_graph_for_all(function: Any) -> None:
    x = torch.tensor([-1.5, -0.25, 0.3, 2.0])
    calls = [(x, s) for s in FLOATS]
    check_same(function, *calls, graphs=2, breaks=0, compile=_native)


def _native(function: Any) -> Any:
    return dynacap.compile(function, backend="native")


def _trained(x: Tensor, s: float) -> Tensor:
    y = F.leaky_relu(torch.sin(x * s) / (s + 1), s) + x.clamp(max=s)
    return (y * s).sum() + F.elu(x, s).mean()


def test_gradients() -> None:
    calls = [(torch.linspace(-1, 1, 6).requires_grad_(), s) for s in FLOATS]
    check_same(_trained, *calls, graphs=2, breaks=0, compile=_native)


def test_with_sizes_that_vary() -> None:
    def scaled(x: Tensor, s: float) -> Any:
        return x * (s * x.shape[0]) / (x.shape[0] / 7), x.shape[0] * 0.1 * s, x.sum() * s

    calls = [(torch.ones(n), s) for n, s in enumerate(FLOATS, 2)]
    check_same(scaled, *calls, graphs=2, breaks=0, compile=_native)


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan, 1e39, -0.0, 5e-324])
def test_odd_ones(odd: float) -> None:
    def function(x: Tensor, s: float) -> Any:
        return x * s, x.clamp(min=s), torch.full((2,), s, dtype=torch.float64), s

    x = torch.tensor([-1.0, 0.0, 2.0])
    check_same(function, (x, 0.3), (x, 0.7), (x, odd), (x, 1.5), breaks=None, compile=_native)


def test_a_number_that_torch_refuses() -> None:
    def filled(x: Tensor, s: float) -> Tensor:
        return x.clone().fill_(s)

    check_same(filled, *((torch.ones(2), s) for s in (0.3, 0.7, 1e39)), compile=_native)


def test_a_float_that_decides() -> None:
    """What asks for the number, here or for a gradient, is compiled for it alone."""

    def function(x: Tensor, s: float) -> Tensor:
        y = F.layer_norm(x, (4,), eps=s) * s + torch.sub(x, x * 2, alpha=s)
        return torch.lerp(x, y, s).sum()

    calls = [
        (torch.rand(3, 4).requires_grad_(grad), s) for grad in (False, True) for s in FLOATS[:3]
    ]
    check_same(function, *calls, compile=_native)


def test_halves_are_rounded_where_they_are_cast() -> None:
    def function(x: Tensor) -> Any:
        number = torch.full((3,), 0.7, dtype=torch.bfloat16).float()
        return (x * 1.1).float(), torch.where(x > 0, 0.3, x).double(), number, (x * 3).half()

    check_same(function, (torch.rand(9).bfloat16(),), (torch.rand(9).half(),), compile=_native)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_meet_numbers_that_are_rounded(dtype: torch.dtype) -> None:
    def function(x: Tensor) -> Any:
        rest = x % 0.1, torch.fmod(x, 0.1)
        return x + 0.3, 0.3 - x, x > 0.3, x == 0.3, torch.add(0.7, x), x * 0.3, rest

    check_same(
        function, (torch.tensor([-0.3, 0.3, 0.25, -0.25, 0.7], dtype=dtype),), compile=_native
    )


def test_a_scaled_product_is_scaled_first() -> None:
    def function(x: Tensor, s: float) -> Tensor:
        return torch.addcmul(x, x, x, value=s)

    calls = [(torch.tensor([3e38, 1.0]), s) for s in (0.5, 1e-38, 1e-37, 0.0)]
    check_same(function, *calls, compile=_native)


def test_a_torch_whose_floats_become_tensors_trains_eagerly_where_they_vary(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.delattr(graph_compile, autograd._TENSORIFY)
        assert not autograd._without(autograd._TENSORIFY)
    monkeypatch.setattr(autograd, "_floats_are_kept", False)
    x = torch.rand(3, 4, requires_grad=True)
    check_same(lambda x, s: x * s, (x, 0.3), (x, 0.7), (x, 0.1), compile=_native)
    assert "runs eagerly: a float in it varies" in caplog.text


@pytest.mark.parametrize("rest", [(5, 6), (4,)], ids=["a multiple", "a sum"])
def test_a_size_that_a_backward_pass_knows_of_another(
    rest: tuple[int, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing that it is given has the size itself."""

    def best(x: Any, w: Any) -> Any:
        return (x.view(-1, 6) @ w).softmax(-1).topk(2)[0]

    def joined(x: Any, w: Any) -> Any:
        return torch.cat([torch.zeros(1, 4), x, w])[1:4].cumsum(0)

    program = best if len(rest) == 2 else joined
    compiled = dynacap.compile(program, backend="native")
    for size in (2, 4, 3):
        x, w = torch.randn(size, *rest), torch.randn(6 if program is best else size + 1, 4)
        given = x.requires_grad_(), w.requires_grad_()
        expected = torch.autograd.grad(program(*given).sin().sum(), given)
        found = torch.autograd.grad(compiled(*given).sin().sum(), given)
        torch.testing.assert_close(found, expected)
    assert not [each for each in caplog.records if "runs eagerly" in each.getMessage()]


def test_a_size_that_a_later_operator_fixes(caplog: pytest.LogCaptureFixture) -> None:
    """What came before it was told of the symbol."""

    def program(x: Any) -> Any:
        return F.interpolate(F.avg_pool2d(F.group_norm(x, 2), 2), scale_factor=2)

    compiled = dynacap.compile(program, backend="native", dynamic=True)
    for size in (4, 6):
        x = torch.randn(size, 8, 4 * size, 4 * size)
        torch.testing.assert_close(compiled(x), program(x))
    assert not [each for each in caplog.records if "runs eagerly" in each.getMessage()]
