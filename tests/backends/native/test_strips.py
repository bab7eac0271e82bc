"""Long chains of operations, by strips, against eager."""

from collections.abc import Callable
from typing import Any

import pytest

import dynacap

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]


def chain(x: Any, y: Any) -> Any:
    for _ in range(6):
        x = torch.where((x > 0.5) | (y > 0.7), y, x) / 1.5
        x = torch.maximum(torch.clamp(x * y + 1, -3, 3), y - x).abs()
    return x


@pytest.mark.parametrize("size", [40, 256, 300, 1000, 1024, 40_000, 65_537])
def test_sizes_that_are_no_whole_strips(same: Same, size: int) -> None:
    made = same(chain, torch.randn(size), torch.randn(size))
    assert ("strip" in made.source) == (size > 40)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32]
)
def test_dtypes(same: Same, dtype: Any) -> None:
    x, y = torch.randint(-9, 9, (2, 3, 411)).to(dtype)  # whole numbers are exact

    def fn(x: Any, y: Any) -> list[Any]:
        a = x
        for _ in range(14):
            a = torch.where(a > y, y * 2 - a, a + 1)
        return [a, a > y, (a == x) & (y > 1), a.double().sin().float()]

    same(fn, x, y)


def test_functions_that_are_waited_for(same: Same) -> None:
    x = torch.randn(5, 1_003)
    x[0, :4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])

    def fn(x: Any) -> list[Any]:
        y = (x.tanh() * 2).sigmoid().exp().log1p()
        return [y, (y - 1).erf().tanh().sin(), y > 0.9]

    assert "strip" in same(fn, x).source


def test_rows_with_sums_of_their_own_and_indices(same: Same) -> None:
    def fn(x: Any, w: Any, at: Any) -> Any:
        x = (x - x.mean(-1, True)) * (x.var(-1, keepdim=True) + 1).rsqrt()
        places = torch.arange(x.shape[-1]) % 7
        return (chain(x, w) * places).tanh() + w[at].sigmoid()

    made = same(fn, torch.randn(9, 700), torch.randn(700), torch.randint(700, (700,)))
    assert "strip" in made.source


def test_what_is_written_in_place_is_read_first() -> None:
    def fn(x: Any, y: Any) -> None:
        for _ in range(5):
            x.mul_(y).tanh_().add_(0.5)
            y.sub_(x).sigmoid_()

    x, y = torch.randn(2, 3_000)
    expected = x.clone(), y.clone()
    fn(*expected)
    dynacap.compile(fn, backend="native")(x, y)
    torch.testing.assert_close((x, y), expected)


def test_truth_values_that_depend_on_many(same: Same) -> None:
    def fn(x: Any, y: Any) -> Any:
        yes = x > y
        for n in range(40):
            yes = (yes & (x > n / 20)) | ((y < n / 30) ^ yes)
        return yes, torch.where(yes, x, y)

    same(fn, torch.randn(2_000), torch.randn(2_000))
