"""Convolutions as products of matrices and as loops, against eager."""

import math
from collections.abc import Callable
from typing import Any

import pytest

import dynacap
from tests.backends.native.against_eager import same as same_as_compiled

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]
# taps, stride, padding, dilation, groups, filters
WINDOWS = [
    (1, 1, 0, 1, 1, 5), (1, 2, 0, 1, 1, 5), (1, 1, 1, 1, 1, 5), (3, 1, 1, 1, 1, 5),
    (3, 2, 1, 2, 1, 5), (7, 2, 3, 1, 1, 4), ((1, 3), (2, 1), (0, 2), 1, 1, 3),
    (3, 1, 1, 1, 8, 8), (3, 2, 0, 1, 8, 8), (5, 2, 2, 1, 8, 8), ((3, 1), 1, (1, 0), 2, 8, 8),
]  # fmt: skip
NO_LOOPS = [(3, 1, 1, 1, 4, 8), (3, 1, 1, 1, 8, 16), (7, 1, 3, 1, 8, 8)]


def pair(number: Any) -> tuple[int, int]:
    return number if isinstance(number, tuple) else (number, number)


def convolved(window: tuple[Any, ...]) -> Callable[..., Any]:
    def fn(x: Any, weight: Any, bias: Any) -> list[Any]:
        plain = F.conv2d(x, weight, None, *window[1:5])
        return [plain, F.conv2d(x, weight, bias, *window[1:5]).relu() + plain.mean((2, 3), True)]

    return fn


def operands(window: tuple[Any, ...], samples: int = 2) -> tuple[Any, Any, Any]:
    taps, _, _, _, groups, filters = window
    weight = torch.randn(filters, 8 // groups, *pair(taps))
    return torch.randn(samples, 8, 9, 10), weight, torch.randn(filters)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_each_kind_of_window(same: Same, window: tuple[Any, ...]) -> None:
    made = same(convolved(window), *operands(window), rtol=1e-4, atol=1e-4)
    assert set(made.calls) <= {"aten.bmm.default"}


@pytest.mark.parametrize("window", NO_LOOPS, ids=str)
def test_windows_that_are_left_to_the_operator(same: Same, window: tuple[Any, ...]) -> None:
    made = same(convolved(window), *operands(window), rtol=1e-4, atol=1e-4)
    assert "aten.convolution.default" in made.calls


@pytest.mark.parametrize("window", [WINDOWS[3], WINDOWS[7]], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("train", [False, True])
def test_infinite_weights_meet_no_zeros_around_an_image(
    window: tuple[Any, ...], dtype: Any, train: bool
) -> None:
    function = convolved(window)
    compiled = dynacap.compile(function, backend="native")
    for wrong in (None, math.inf, math.nan, None):
        x, weight, bias = (each.to(dtype) for each in operands(window))
        weight.requires_grad_(train)
        if wrong is not None:
            with torch.no_grad():
                weight[3, 0, 0, 0] = wrong
        torch.testing.assert_close(
            compiled(x, weight, bias), function(x, weight, bias), rtol=1e-4, atol=1e-4,
            equal_nan=True,
        )  # fmt: skip


def test_one_number_for_both_dimensions(same: Same) -> None:
    x, weight, bias = operands(WINDOWS[3])
    made = same(lambda *args: torch.conv2d(*args, [2], [1], [2]), x, weight, bias,
                rtol=1e-4, atol=1e-4)  # fmt: skip
    assert made.calls == ["aten.bmm.default"]


@pytest.mark.parametrize("order", ["image", "weight", "both", "part"])
def test_other_orders_of_memory(same: Same, order: str) -> None:
    for window in (WINDOWS[0], WINDOWS[3], WINDOWS[7]):
        x, weight, bias = operands(window)
        if order in ("image", "both"):
            x = x.contiguous(memory_format=torch.channels_last)
        if order in ("weight", "both"):
            weight = weight.contiguous(memory_format=torch.channels_last)
        if order == "part":
            x = torch.randn(2, 16, 9, 20)[:, ::2, :, 4:14]
        same(convolved(window), x, weight, bias, rtol=1e-4, atol=1e-4)


def test_a_large_one_is_left_to_the_operator(same: Same) -> None:
    x, weight = torch.randn(2, 16, 40, 40), torch.randn(4, 16, 3, 3)
    assert same(lambda x, w: F.conv2d(x, w), x, weight, rtol=1e-4, atol=1e-4).calls == [
        "aten.convolution.default"
    ]
    assert same(lambda x, w: F.conv2d(x, w[:, :, :1, :1].contiguous()), x, weight,
                rtol=1e-4, atol=1e-4).calls == ["aten.bmm.default"]  # fmt: skip


def test_halves_and_volumes_are_left_to_the_operator(same: Same) -> None:
    x, weight = torch.randn(1, 2, 5, 5), torch.randn(3, 2, 1, 1)
    same(lambda x, w: F.conv2d(x, w), x.double(), weight.double())
    for fn, *args in (
        (F.conv2d, x.bfloat16(), weight.bfloat16()),
        (F.conv3d, x[None], weight[None].movedim(0, 1).repeat(1, 1, 1, 1, 1)),
        (F.conv1d, x[0], weight[..., 0]),
        (F.conv_transpose2d, x, weight.transpose(0, 1)),
    ):
        same_as_compiled(lambda *args, fn=fn: fn(*args), *args)


@pytest.mark.parametrize("train", [False, True], ids=["evaluated", "trained"])
def test_a_block_with_batch_norms(train: bool) -> None:
    """Its gradients too: what the operator would have kept is kept."""
    nn = torch.nn
    layers = [
        nn.Conv2d(3, 6, 1, bias=False), nn.BatchNorm2d(6), nn.ReLU6(),
        nn.Conv2d(6, 6, 3, 2, 1, groups=6, bias=False), nn.BatchNorm2d(6), nn.ReLU6(),
        nn.Conv2d(6, 4, 3, padding=1), nn.BatchNorm2d(4),
    ]  # fmt: skip
    block = nn.Sequential(*layers).train(train)
    same_as_compiled(block, torch.randn(2, 3, 8, 8, requires_grad=train))
