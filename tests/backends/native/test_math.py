"""Scalar functions against float64: units in the last place, special values, signed zeros."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.cc]

FUNCTIONS = {
    "exp": 1.0, "log": 1.0, "tanh": 1.5, "erf": 2.0, "sigmoid": 2.2, "log1p": 1.1, "expm1": 1.5,
    "sin": 1.0, "cos": 1.0, "sqrt": 0.6, "rsqrt": 1.5, "atan": 1.1, "erfc": 2.6, "exp2": 1.1,
}  # fmt: skip
SPECIAL = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1.0, -1.0])


def all_of(x: Any) -> list[Any]:
    return [getattr(x, name)() for name in FUNCTIONS]


def test_units_in_the_last_place(lowered: Callable[..., Any]) -> None:
    x = torch.cat([
        torch.linspace(-110, 95, 50001), torch.linspace(-6, 6, 100001),
        torch.logspace(-38, 38, 20001), SPECIAL,
    ])  # fmt: skip
    made = lowered(all_of, x)
    assert not made.calls
    for (name, limit), got, exact in zip(
        FUNCTIONS.items(), made(x), all_of(x.double()), strict=True
    ):
        rounded = exact.float()
        up = torch.nextafter(rounded.abs(), torch.tensor(float("inf")))
        unit = (up - rounded.abs()).double()
        normal = rounded.isfinite() & (rounded.abs() > 1.2e-38)
        errors = ((got.double() - exact).abs() / unit)[normal]
        worst = int(errors.argmax())
        assert errors[worst] <= limit, f"{name}({x[normal][worst]}): {errors[worst]} ULP"


def test_special_values_and_signed_zeros(lowered: Callable[..., Any]) -> None:
    for x in (SPECIAL.repeat(3), SPECIAL.double().repeat(3)):
        for name, got, eager in zip(FUNCTIONS, lowered(all_of, x)(x), all_of(x), strict=True):
            torch.testing.assert_close(
                got, eager, equal_nan=True, msg=lambda m, n=name: f"{n}: {m}"
            )
            zero = (eager == 0) & eager.isfinite()
            assert torch.equal(torch.signbit(got)[zero], torch.signbit(eager)[zero]), name
