"""Floats that vary: what is asked about them is guarded as Python computes it, not their value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap import config
from dynacap.testing import check_same

USUAL = (0.3, 0.7, 2.3, 5.7, 0.123, 1.5)
ODD = (
    *(0.3, 0.7, -2.3, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 5e-324, 1e308, 800.0),
    *(1, True, -1.0, 2**60, 0.5),
)


def branch(x: Tensor, v: float) -> Any:
    return x * v if v > 1.0 else x + v


def truth(x: Tensor, v: float) -> Any:
    return x * v if v else x


def chained(x: Tensor, v: float) -> Any:
    return x * v if 0 < v <= 2 else x


def computed(x: Tensor, v: float) -> Any:
    return x * -v if v * 0.1 * 3 > 0.5 else x / v


def to_the_last_bit(x: Tensor, v: float) -> Any:
    return x * v, v - 0.3 == 0, v * 3 == 0.9, v + 0.1 == 0.4, (v - 1.0) + 1.0 == v


def extremes(x: Tensor, v: float) -> Any:
    return x * min(v, 1.0), x * max(v, 0.5), v


def divided(x: Tensor, v: float) -> Any:
    return x * (1 / v), x * (v // 0.3), x * (v % 0.3)


def functions(x: Tensor, v: float) -> Any:
    return x * abs(v), x * math.tanh(v), math.sin(v) * x, x * math.atan(v)


def root(x: Tensor, v: float) -> Any:
    return x * math.sqrt(v)


def logarithm(x: Tensor, v: float) -> Any:
    return x * math.log(v), x * math.log1p(v)


def exponential(x: Tensor, v: float) -> Any:
    return x * math.exp(v) if math.exp(v) > 2.0 else x


def powers(x: Tensor, v: float) -> Any:
    return x * v**2, x * v**0.5


def bias_correction(x: Tensor, v: float) -> Any:
    return x / (1 - 0.9**v)


def infinite(x: Tensor, v: float) -> Any:
    return x * v if v == math.inf else x - v


def is_number(x: Tensor, v: float) -> Any:
    return x if v != v else x * 2


def caught(x: Tensor, v: float) -> Any:
    try:
        return x * (1 / v)
    except ZeroDivisionError:
        return x * 7


def behind_a_change(x: Tensor, v: float) -> Any:
    y = x * 2
    x.add_(1)
    return y * (2.0 / v)


def with_a_size(x: Tensor, v: float) -> Any:
    return x * v if x.shape[0] * 0.5 > v else x


FUNCTIONS: dict[Callable[..., Any], int] = {  # and how many graphs the usual values take
    **dict.fromkeys((truth, divided, functions, root, infinite, is_number, caught), 2),
    **dict.fromkeys((behind_a_change, with_a_size, chained, bias_correction), 2),
    **dict.fromkeys((branch, computed, logarithm, exponential, powers), 3),
    **dict.fromkeys((extremes, to_the_last_bit), 4),
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_usual_floats(function: Callable[..., Any]) -> None:
    outcome = check_same(function, *((torch.rand(3), v) for v in USUAL), breaks=0)
    assert outcome.counters["graphs"] <= FUNCTIONS[function]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("first", [0, 5, 12])
def test_odd_floats(function: Callable[..., Any], first: int) -> None:
    """Zeros, infinities, what is no number, ints: results and errors are eager's."""
    with config.patch(recompile_limit=64):
        compiled = dynacap.compile(function)
        for value in ODD[first:] + ODD[:first]:
            assert outcome_of(compiled, value) == outcome_of(function, value), value


def outcome_of(function: Callable[..., Any], value: Any) -> str:
    x = torch.ones(3)
    try:
        found = repr(function(x, value))
    except (ArithmeticError, ValueError, RuntimeError) as error:
        found = repr(error)
    return f"{found}, {x}"


def test_numbers_of_tensors_are_divided_in_the_graph() -> None:
    def halved(x: Tensor) -> Tensor:
        return x * (x.sum().item() / 2)

    with config.patch(capture_scalar_outputs=True):
        check_same(halved, *((torch.rand(3),) for _ in range(3)), graphs=1, breaks=0)


def test_what_was_asked_is_told() -> None:
    compiled = dynacap.compile(branch)
    for value in (0.3, 0.7, 2.3):
        compiled(torch.ones(3), value)
    reasons = str(dynacap.recompiles(compiled))
    assert "v <= 1.0; found not v <= 1.0 (2.3)" in reasons


def test_a_long_computation_is_fixed() -> None:
    def long(x: Tensor, v: float) -> Any:
        for _ in range(40):
            v = v * v * 0.5 + v * 0.25
        return x * 2, v > 1

    outcome = check_same(long, *((torch.ones(3), v) for v in USUAL[:4]), breaks=0)
    assert outcome.counters["graphs"] == 4


@pytest.mark.parametrize("takes", [True, False])
def test_a_backend_of_the_user_s_says_whether_it_takes_them(takes: bool) -> None:
    graphs = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append([type(value) for value in example_inputs])
        return graph_module.forward

    backend.takes_floats = takes  # type: ignore[attr-defined]
    compiled = dynacap.compile(branch, backend=backend)
    for value in USUAL:
        x = torch.rand(3)
        assert torch.equal(compiled(x, value), branch(x, value))
    assert len(graphs) == (3 if takes else 6)
    assert graphs[1] == ([Tensor, float] if takes else [Tensor])
