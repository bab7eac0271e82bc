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


def negated(x: Tensor, v: float) -> Any:
    return torch.full_like(x, -v).signbit(), x * -v if -v < 0.5 else -(-v)


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


def with_a_sum_of_sizes(x: Tensor, v: float) -> Any:
    return x * v if (x.shape[0] + 4) * v > 9.0 else x


def with_a_difference(x: Tensor, v: float) -> Any:
    return x if v - (2 - len(x)) > 2.0 else x * v


def power_of_minus_zero(x: Tensor, v: float) -> Any:
    return x if (-0.0) ** v > 0.5 else x * 2


def beside_huge_numbers(x: Tensor, v: float) -> Any:
    return x * v if v < 10**400 and v > -(10**400) else x


FUNCTIONS: dict[Callable[..., Any], int] = {  # and how many graphs the usual values take
    **dict.fromkeys((truth, divided, functions, negated, root, infinite, is_number, caught), 2),
    power_of_minus_zero: 2,
    **dict.fromkeys((behind_a_change, with_a_size, chained, bias_correction), 2),
    **dict.fromkeys((branch, computed, logarithm, exponential, powers), 3),
    **dict.fromkeys((extremes, to_the_last_bit), 4),
    **dict.fromkeys((with_a_sum_of_sizes, with_a_difference), 3),
    beside_huge_numbers: 6,
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


@pytest.mark.parametrize("function", [with_a_sum_of_sizes, with_a_difference])
def test_sums_of_sizes_are_operands(function: Callable[..., Any]) -> None:
    calls = [(3, 0.3), (4, 0.7), (5, 0.8), (3, 1.5), (12, 0.5), (6, 1.8), (3, 0.9), (6, 0.8)]
    check_same(function, *((torch.rand(size), v) for size, v in calls), breaks=0)


def test_a_sign_belongs_to_its_number() -> None:
    check_same(power_of_minus_zero, *((torch.rand(3), v) for v in (0.3, 0.7, 0.0)), breaks=0)


def test_an_int_that_is_too_large_is_an_error_of_the_program() -> None:
    def scaled(x: Tensor, v: float, n: int) -> Any:
        return x * (v * n)

    compiled = dynacap.compile(scaled)
    for value in (0.3, 0.7, 0.8):
        assert torch.equal(compiled(torch.ones(3), value, 2), scaled(torch.ones(3), value, 2))
    with config.patch(raise_internal_errors=False), pytest.raises(OverflowError, match="too large"):
        compiled(torch.ones(3), 0.9, 10**400)
    assert dynacap.counters()["skipped"] == 0


def test_functions_take_no_keywords() -> None:
    def root(x: Tensor, v: float, named: dict[str, int]) -> Any:
        return x * math.sqrt(v, **named)

    compiled = dynacap.compile(root)
    for value in (0.3, 0.7, 0.8):
        compiled(torch.ones(3), value, {})
    with pytest.raises(TypeError, match="takes no keyword arguments"):
        compiled(torch.ones(3), 0.9, {"x": 1})


COMPARED = ("v == v", "v != v", "v < v", "v <= v", "v <= inf", "v >= -inf", "v < inf", "v == nan")


@pytest.mark.parametrize("text", [*COMPARED, "v < 10**400", "v != 10**400"])
def test_numbers_of_tensors_may_be_no_numbers(text: str) -> None:
    """Torch's algebra would answer, as of real numbers."""
    asked = eval(f"lambda v: {text}", {"inf": math.inf, "nan": math.nan})

    def ask(x: Tensor) -> Any:
        return x * 2, asked(x.sum().item())

    compiled = dynacap.compile(ask)
    with config.patch(capture_scalar_outputs=True):
        for value in (1.0, math.nan, math.inf, -math.inf):
            assert compiled(torch.tensor(value))[1] is ask(torch.tensor(value))[1]
    assert dynacap.counters()["breaks"] == 0


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
