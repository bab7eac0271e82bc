"""Pointwise operators as loops, against eager."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]

SPECIAL = [float("nan"), float("-inf"), 0.0, -0.0, 1e-40, 20.0, -20.0, 100.0, -100.0]


def arithmetic(x: Any, y: Any, p: Any) -> list[Any]:
    return [
        x + y, x - y, x * y, x / y, x.sub(y, alpha=2), 1 - x, 2 / x, x**2, x**3, p**0.5, p**-0.5,
        p**1.7, torch.pow(p, y), torch.pow(2.0, y), x.reciprocal(), x.square(), -x, x.abs(),
        x.sign(), x.floor(), x.ceil(), x.trunc(), x.round(), x.clamp(-1, 1), x.clamp_min(0),
        x.clamp_max(y), torch.maximum(x, y), torch.minimum(x, y), torch.where(x > y, x, y),
        x.masked_fill(y > 0, -5.0), x.lerp(y, 0.3), x.lerp(y, 0.7), x.lerp(y, p),
        torch.addcmul(x, y, p, value=0.5), torch.addcdiv(x, y, p, value=0.5), x.remainder(1.5),
        x.remainder(-1.5), x.remainder(y), x.fmod(y), torch.atan2(x, y), torch.hypot(x, y),
        torch.logaddexp(x, y), torch.xlogy(p, p), torch.xlogy(0, p), x.nan_to_num(),
        x.nan_to_num(1.0, 2.0, 3.0), x.isnan(), x.isinf(), torch.isfinite(x), x.copysign(y),
        x.logical_not(), x.bool().logical_xor(y > 0), x.div(y, rounding_mode="trunc"),
        torch.rsub(x, y), x.exp2(), x.expm1(), p.log(), p.log2(), p.log10(), p.log1p(), x.sin(),
        x.cos(), x.tan(), x.sinh(), x.cosh(), x.atan(), x.asinh(), x.erfc(), p.lgamma(),
    ]  # fmt: skip


def activations(x: Any) -> list[Any]:
    return [
        F.relu(x), F.relu6(x), F.leaky_relu(x), F.elu(x), F.selu(x), F.softplus(x), F.silu(x),
        F.mish(x), F.hardswish(x), F.hardsigmoid(x), F.gelu(x), F.gelu(x, approximate="tanh"),
        F.logsigmoid(x), F.threshold(x, 0.1, 3.0), F.hardtanh(x), F.tanhshrink(x), F.softsign(x),
        x.sigmoid(), x.tanh(), x.erf(), x.exp(),
    ]  # fmt: skip


def integers(i: Any, j: Any) -> list[Any]:
    return [
        i + j, i - j, i * j, i / (j.abs() + 1), i // 3, i // -3, i % 3, i % -3, i & j, i | j, i ^ j,
        ~i, i > j, i == 3, i > 1.5, i.abs(), i.sign(), i.clamp(-3, 3), torch.maximum(i, j), -i,
        i.float() * 1.5, i + 1.5, i.to(torch.uint8), i.bool(), i.float().to(torch.int32),
        i.where(i > 0, j), i**2, i.isinf(),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_arithmetic(same: Same, dtype: Any) -> None:
    x, y = torch.randn(6, 37) * 2, torch.randn(6, 37)
    p = y.abs() + 0.1
    half = dtype in (torch.bfloat16, torch.float16)
    tolerance = {"rtol": 4e-2, "atol": 2e-2} if half else {}
    made = same(arithmetic, x.to(dtype), y.to(dtype), p.to(dtype), **tolerance)
    assert not made.calls
    assert len(made.kernels) <= 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_values(same: Same, dtype: Any) -> None:
    x = torch.tensor(SPECIAL).repeat(7).to(dtype)
    made = same(lambda x, y: activations(x) + arithmetic(x, y, y)[:35], x, x.roll(1))
    assert not made.calls


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_activations_in_half_precision(same: Same, dtype: Any) -> None:
    same(activations, (torch.randn(5, 33) * 3).to(dtype), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_integers(same: Same, dtype: Any) -> None:
    i, j = (torch.randint(-20, 20, (6, 37)).to(dtype) for _ in range(2))
    assert not same(integers, i, j).calls


def test_unsigned_bytes_and_truth_values(same: Same) -> None:
    i, j = (torch.randint(0, 255, (40,)).to(torch.uint8) for _ in range(2))
    same(lambda i, j: [i + j, i - j, i * j, i // 3, ~i, i.float(), i > j, -i, i.sum()], i, j)
    b, c = i > 100, j > 100
    same(
        lambda b, c: [b & c, b | c, b ^ c, ~b, b + c, b * c, b.float(), b == c, b.long() + 1], b, c
    )


@pytest.mark.parametrize("target", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("source", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_floats_that_no_integer_holds(same: Same, source: Any, target: Any) -> None:
    """Turned back at once, too, where a compiler would take the two conversions for ``trunc``."""
    held = [2.5, -3.7, 255.9, 2147483520.0, -2147483648.0]
    others = [300.0, -200.0, 7e4, 1e10, -1e30, 9.3e18, float("nan"), float("inf"), float("-inf")]
    x = torch.tensor((held + others) * 5).to(source)
    same(lambda x: [(x + 0).to(target), (x + 0).to(target).to(source), x[::2].to(target) * 1], x)


def test_division_by_a_tensor_of_integers_is_left_to_the_operator(lowered: Same) -> None:
    i = torch.tensor([1, 2]), torch.tensor([1, 0])
    made = lowered(lambda i, j: [i // j, i % j], *(x.clone() + 1 for x in i))
    assert made.calls == ["aten.floor_divide.default", "aten.remainder.Tensor"]


def test_dtypes_that_meet(same: Same) -> None:
    f, h, i = torch.randn(8), torch.randn(8).bfloat16(), torch.arange(8)
    zero = torch.tensor(2.0, dtype=torch.float64)
    same(
        lambda f, h, i, z: [f + h, f * i, h * i, f + z, i + z, i > f, h == i, i / 2, z * 2],
        f, h, i, zero, rtol=2e-2, atol=1e-2,
    )  # fmt: skip


def test_strided_broadcast_and_permuted_operands(same: Same) -> None:
    z = torch.randn(3, 5, 64)
    same(
        lambda z: [
            (z.transpose(0, 2) + 1).reshape(-1), z.view(15, 64).t().exp(), z[1].exp(),
            z[:, ::2].sin(), z.unsqueeze(1) * z.unsqueeze(0),
            z.reshape(3, 5, 8, 8).transpose(1, 2).reshape(3, 8, 40) + 1, z.expand(2, 3, 5, 64) + 1,
            z.permute(2, 0, 1).contiguous(), z.flip(1), z.repeat(2, 1, 3), z.tril(), z.triu(1),
            z.diagonal(0, 1, 2) * 2, z[..., -1] + z[..., 0],
        ],
        z,
    )  # fmt: skip
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    same(lambda x: [x * 2 + 1, x.contiguous() + 1, x + x.mean((2, 3), keepdim=True)], image)


def test_numbers_and_tensors_without_dimensions(same: Same) -> None:
    z = torch.randn(())
    same(lambda z: [z + 1, z.exp().sum(), z.expand(3) * 2, torch.full((2,), 3.5), z.view(1) * 2], z)
    same(lambda z: [torch.arange(5), torch.arange(2, 20, 3), z.new_ones(3) * z], z)


def test_nothing_is_read_from_empty_tensors(same: Same) -> None:
    same(lambda x: [x + 1, x.sum(), x.sum(0), torch.cat([x, x])], torch.randn(0, 4))


@pytest.mark.parametrize("size", [1, 3, 16, 17, 1000])
def test_a_long_chain_is_one_kernel(same: Same, size: int) -> None:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(10):
            x = (x * y + 1).sin() * 0.5
        return x

    made = same(chain, torch.randn(4, size), torch.randn(size))
    assert len(made.kernels) == 1


def gradient(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a function's sum."""

    def run(*args: Any) -> Any:
        leaves = [arg.detach().requires_grad_() for arg in args]
        return torch.autograd.grad(fn(*leaves).sin().sum(), leaves)

    return run


def test_gradients_at_what_is_no_number(same: Same) -> None:
    def all_of(x: Any) -> Any:
        bent = [F.elu, F.selu, F.celu, F.hardswish, F.hardtanh, F.relu6, F.relu, F.leaky_relu]
        leaf = x.detach().requires_grad_()
        return [torch.autograd.grad(fn(leaf).sum(), leaf)[0] for fn in bent]

    same(all_of, torch.tensor([float("nan"), 1.0, -1.0, float("inf")]).repeat(16))


def test_gradients_of_activations(same: Same) -> None:
    x = (torch.randn(6, 40) * 4).clamp(max=5)  # the sine of what exp(9) is one of hangs on rounding
    made = same(gradient(lambda x: sum(activations(x))), x, rtol=1e-4, atol=1e-4)
    assert not made.calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_zero_keeps_its_sign_at_a_bound(same: Same, dtype: Any) -> None:
    def signs(x: Any) -> list[Any]:
        bounded = [
            F.relu(x), x.clamp(min=0.0), x.clamp(min=-0.0), x.clamp(max=0.0), x.clamp(0.0, 1.0),
            x.clamp(-1.0, -0.0), F.relu6(x), F.hardtanh(x, 0.0, 1.0), x.clamp_min(0),
        ]  # fmt: skip
        return [torch.copysign(torch.ones_like(x), each) for each in bounded]

    same(signs, torch.tensor([0.0, -0.0] * 8).to(dtype))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_halves_are_rounded_before_what_a_rounding_changes_much(same: Same, dtype: Any) -> None:
    x, y = (torch.randn(2, 40, 50) * 3).to(dtype)

    def steps(x: Any, y: Any) -> list[Any]:
        z = [x * y for _ in range(12)]  # a product is not known to be needed twice
        return [
            z[0].floor(), z[1].round(), z[2] > 0.5, z[3] == z[4], z[5] % 0.7, torch.fmod(z[6], 0.7),
            F.threshold(z[7], 0.5, 20.0), z[8].trunc(), z[9].ceil(), (x * 2e4).isinf(),
            torch.div(z[10], y, rounding_mode="trunc"), z[11].to(torch.int32),
        ]  # fmt: skip

    same(steps, x, y)


def test_roots_of_infinities_and_zeros(same: Same) -> None:
    x = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), 4.0])
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        same(lambda x: [1 / x**0.5, x**-0.5, 1 / x**-2, x**-1], x.to(dtype))


def test_a_bound_is_held_as_a_half(same: Same) -> None:
    """1e-12 is none: a row of zeros has no direction, in eager either."""
    same(lambda x: F.normalize(x), torch.zeros(2, 3).half())


def test_a_number_is_rounded_as_torch_rounds_it(same: Same) -> None:
    """Halfway between two floats; the text of it lies on one side."""
    half = 1.0 + 2.0**-24
    same(lambda x: [x > half, x == half, x * half, x - 16777217.0], torch.tensor([1.0, 1 + 2**-23]))


def test_vmap_makes_tensors_of_numbers(same: Same) -> None:
    def scaled(x: Any) -> list[Any]:
        return [torch.vmap(lambda a: (a * 2 + 0.1 - (3 - a) / 7) * x)(y) for y in (x, x.double())]

    same(scaled, torch.linspace(-1, 1, 5))
