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


def test_quotients_by_a_number_for_each_row_are_rounded_as_eager_does(
    lowered: Callable[..., Any],
) -> None:
    bits = torch.randint(-(2**31), 2**31 - 1, (64, 4096), dtype=torch.int64).to(torch.int32)
    x = torch.cat([bits.view(torch.float32), SPECIAL.repeat(64, 1)], 1)
    divisors = torch.tensor([3e-45, 1e-42, 1e-38, 3e38, 1.5, -7.0, 1e-20, 1e30])
    d = torch.cat([SPECIAL, divisors, torch.randn(49)])[:, None]
    made = lowered(lambda x, d: x / d, x, d)
    assert "quotient_f32" in made.source
    (got,), eager = made(x, d), x / d
    sure = (x.abs() > 1e-30) & (eager.abs() > 1e-30) & (eager.abs() < 1e38)
    assert torch.equal(got[sure], eager[sure])
    torch.testing.assert_close(got, eager, rtol=1e-6, atol=2e-45, equal_nan=True)
    zero = (eager == 0) & (x == 0)
    assert torch.equal(torch.signbit(got)[zero], torch.signbit(eager)[zero])


def halves() -> Any:
    return torch.arange(1 << 16, dtype=torch.int32).to(torch.int16)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_half_is_read_exactly(lowered: Callable[..., Any], dtype: Any) -> None:
    x = halves().view(dtype)
    made = lowered(lambda x: [x.float() * 1.0], x)
    assert not made.calls
    (got,), eager = made(x), x.float() * 1.0
    assert torch.equal(got.view(torch.int32)[~x.isnan()], eager.view(torch.int32)[~x.isnan()])
    assert torch.equal(got.isnan(), x.isnan())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_floats_are_rounded_to_halves_as_eager_does(
    lowered: Callable[..., Any], dtype: Any
) -> None:
    exact = halves().view(dtype).float()
    exact = exact[exact.isfinite()]
    up = torch.nextafter(exact, torch.tensor(float("inf")))
    between = (exact[:-1] + exact[1:]) / 2  # where neighbours have equal claims
    generator = torch.Generator().manual_seed(0)
    many = torch.randint(-(2**31), 2**31 - 1, (200_000,), generator=generator).to(torch.int32)
    x = torch.cat([
        exact, up, -up, between, torch.nextafter(between, exact[:-1]), many.view(torch.float32),
        torch.tensor([65504.0, 65519.996, 65520.0, 65536.0, 5.9e-8, 2.9e-8, 3.0e-8]), SPECIAL,
    ])  # fmt: skip
    made = lowered(lambda x: [(x * 1.0).to(dtype)], x)
    assert not made.calls
    (got,), eager = made(x), x.to(dtype)
    number = ~eager.isnan()
    assert torch.equal(got.view(torch.int16)[number], eager.view(torch.int16)[number])
    assert torch.equal(got.isnan(), eager.isnan())
