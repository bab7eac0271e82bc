"""Reductions, norms and losses as loops, against eager."""

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]


def reductions(z: Any) -> list[Any]:
    return [
        z.sum(), z.sum(0), z.sum(1), z.sum(2), z.sum((0, 2)), z.mean(-1, True), z.mean(), z.amax(1),
        z.amin((0, 1)), z.argmax(-1), z.argmin(0), z.max(-1).values, z.max(1).indices, z.var(-1),
        z.var(0), z.std(-1, correction=0), torch.var_mean(z, 1)[1], z.softmax(-1), z.softmax(0),
        z.log_softmax(1), z.logsumexp(-1), z.logsumexp((0, 1)), z.norm(dim=-1), z.norm(p=1),
        torch.linalg.vector_norm(z, float("inf"), 1), z.prod(-1), z.min(), z.max(0)[1],
        (z > 0).any(1), (z > 0).all(2), (z > 3).any(), (z > 0).sum(1), z.sum(1, keepdim=True) + z,
    ]  # fmt: skip


LAYOUTS = {
    "contiguous": lambda: torch.randn(3, 5, 64),
    "permuted": lambda: torch.randn(64, 5, 3).transpose(0, 2),
    "strided": lambda: torch.randn(3, 5, 128)[:, :, ::2],
    "broadcast": lambda: torch.randn(3, 1, 64).expand(3, 5, 64),
    "odd": lambda: torch.randn(7, 1, 13),
    "double": lambda: torch.randn(3, 5, 64, dtype=torch.float64),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions(same: Same, layout: str) -> None:
    calls = same(reductions, LAYOUTS[layout]()).calls
    assert calls == (["aten.var_mean.correction"] if layout == "odd" else [])  # of one element


def test_reductions_in_half_precision(same: Same) -> None:
    def some(z: Any) -> list[Any]:
        return [z.sum(), z.mean(-1), z.softmax(-1), z.var(0), z.amax(1), F.layer_norm(z, (64,))]

    same(some, torch.randn(3, 5, 64).bfloat16(), rtol=2e-2, atol=2e-2)


def test_integers_and_truth_values(same: Same) -> None:
    i = torch.randint(-5, 5, (4, 9))
    same(lambda i: [i.sum(), i.sum(0), i.prod(1), i.amax(0), i.argmin(1), i.bool().sum(1)], i)
    same(lambda i: [i.sum(1), i.amin(), (i > 0).all(0), i.max(1)[1]], i.to(torch.uint8))


def test_a_nan_wins_over_extremes(same: Same) -> None:
    z = torch.randn(6, 40)
    z[1, 3] = z[1, 7] = z[4, 0] = float("nan")
    same(lambda z: [z.amax(-1), z.amin(0), z.argmax(-1), z.max(), z.softmax(-1), *z.min(1)], z)
    inf = torch.full((2, 4), float("-inf"))
    same(lambda z: [z.logsumexp(-1), z.amax(-1), z.argmax(1)], inf)


@pytest.mark.parametrize("shape", [(1009, 37), (64, 8192), (100003,), (3, 100, 1000), (5000, 3)])
def test_long_sums_stay_near_the_exact_value(lowered: Same, shape: tuple[int, ...]) -> None:
    z = torch.randn(shape)

    def sums(z: Any) -> list[Any]:
        return [z.sum(), z.sum(0), z.sum(-1), z.mean(), z.var()]

    for got, exact in zip(lowered(sums, z)(z), sums(z.double()), strict=True):
        torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-3)


def test_norms_are_one_kernel_each(same: Same) -> None:
    z, w = torch.randn(3, 5, 64), torch.randn(64)
    made = [
        same(lambda z, w: F.layer_norm(z, (64,), w, w), z, w),
        same(lambda z, w: z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6) * w, z, w),
        same(lambda z, w: (z * w).softmax(-1) * w, z, w),
        same(lambda z, w: F.layer_norm(F.gelu(z + w) + z, (64,)), z, w),
        same(lambda z, w: F.mse_loss(z, z * w), z, w),
    ]
    assert [(len(m.kernels), m.calls) for m in made] == [(1, [])] * 5


def test_gradients(same: Same) -> None:
    def gradients(z: Any, w: Any) -> Any:
        z, w = z.detach().requires_grad_(), w.detach().requires_grad_()
        results = [
            F.layer_norm(z, (64,), w, w), z.softmax(-1), z.log_softmax(1), z.var(-1), z.amax(-1),
            z[1], torch.cat([z, z * 2], 1)[:, 1:4], z.mean(0),
        ]  # fmt: skip
        return torch.autograd.grad(sum(r.sin().sum() for r in results), [z, w])

    made = same(gradients, torch.randn(3, 5, 64), torch.randn(64), rtol=1e-4, atol=1e-5)
    assert not made.calls


def test_the_place_of_the_only_element(same: Same) -> None:
    same(lambda z: [z.argmax(0), z.argmin(-1), z.argmax()], torch.tensor(2.5))


def test_what_a_loop_itself_computes_is_read_inside_it(same: Same) -> None:
    """Two columns, of rows kept in scratch memory: their places do not depend on the row."""

    def added(z: Any) -> Any:
        row = z.erf() * z
        return row[:, 0:1] + row[:, 1:2]

    same(added, torch.randn(8, 2))


@pytest.mark.parametrize("shape", [(3, 8, 5, 4), (2, 8, 7), (2, 4)])
def test_norms_of_channels(same: Same, shape: tuple[int, ...]) -> None:
    channels = shape[1]
    x, w, b, mean = torch.randn(shape), *(torch.randn(channels) for _ in range(3))
    var = torch.rand(channels) + 0.1
    made = same(lambda x, w, b: [F.group_norm(x, 2, w, b), F.group_norm(x, 4).relu()], x, w, b)
    assert not made.calls
    made = same(lambda *a: F.batch_norm(*a).relu(), x, mean, var, w, b)
    assert len(made.kernels) == 1
    assert not [call for call in made.calls if "norm" in call]


def test_sizes_that_are_not_known_are_left_to_the_operators() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    from dynacap.backends.native.lowering import lower

    graph = make_fx(lambda x: (x + 1).sum(-1), tracing_mode="symbolic")(torch.randn(3, 5)).graph
    assert [type(step).__name__ for step in lower(graph).steps] == ["Call", "Call"]


def test_the_norm_of_one_number_is_its_size(same: Same) -> None:
    x = torch.tensor([[3e38], [-1e-30], [2.0]])
    same(lambda x: [x.norm(dim=1), torch.linalg.vector_norm(x[1:2], keepdim=True)], x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_extremes_of_halves_stand_where_rounded_numbers_are_equal(same: Same, dtype: Any) -> None:
    x, y = (torch.randn(2, 70, 90) + 4).to(dtype)

    def places(x: Any, y: Any) -> list[Any]:
        return [*(x * y).max(1), *(x * y).min(0), (x * y).argmin(0), (x * y).argmax(-1)]

    same(places, x, y)


@pytest.mark.parametrize("size", [64, 100, 131, 512, 4096, 4099, 10240])
def test_long_reductions_whose_steps_would_wait_for_each_other(same: Same, size: int) -> None:
    """They take turns; where a NaN or an infinity stands does not matter."""
    x = torch.randn(6, size)
    x[1, 5], x[2, size // 2], x[3, -1] = float("nan"), float("inf"), float("-inf")

    def fn(x: Any) -> list[Any]:
        return [
            x.sum(-1), x.amax(-1), x.amin(-1), (x - 1).square().mean(-1), x.softmax(-1),
            x.log_softmax(-1), x.logsumexp(-1), (x * 1e-3 + 1).prod(-1), x[:1].sum(), x[4:].max(),
            F.layer_norm(x[4:], (size,)), x.argmax(-1),
        ]  # fmt: skip

    made = same(fn, x, rtol=1e-4, atol=1e-4)
    assert made.source.count("_lanes[0]") >= 12


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8]
)
def test_long_reductions_of_each_dtype(same: Same, dtype: Any) -> None:
    x = (torch.randn(3, 301) * 9).abs().to(dtype)

    def fn(x: Any) -> list[Any]:
        kept = x + 1
        return [x.sum(-1), x.amax(-1), x.amin(-1), kept, (kept * 2).sum(-1), kept.float().mean(-1)]

    same(fn, x)


def test_few_rows_are_added_up_as_they_are(same: Same) -> None:
    """A part of one row would have nothing to add."""
    same(lambda x: F.softmin(x, 1), torch.randn(1, 3, 66640))


def test_a_row_too_large_for_a_stack_has_its_lanes_there(same: Same) -> None:
    made = same(lambda x: (x.exp() + x.tanh()).softmax(1), torch.randn(16, 30_000))
    assert re.search(r"= scratch\(30000 ", made.source)
    assert re.search(r"_lanes\[\d+\] ALIGNED", made.source)


def test_exponentials_far_below_the_largest(same: Same) -> None:
    x = torch.tensor([[0.0, -80.0, -88.0, -100.0, -200.0, float("-inf")]]).repeat(4, 8)
    x[1] += float("inf")
    x[2] = float("-inf")
    x[3, 7] = float("inf")
    same(lambda x: [x.softmax(-1), x.log_softmax(-1), x.logsumexp(-1), (x + 1).softmax(0)], x)
    masked = (x[0] == float("-inf")).nonzero()
    assert not same(lambda x: x.softmax(-1), x[:1])(x[:1])[0][0, masked].any()


def test_elements_at_indices_are_read_while_their_rows_are_near(same: Same) -> None:
    def loss(x: Any, labels: Any) -> Any:
        return (torch.logsumexp(x, -1) - x.gather(-1, labels[:, None]).squeeze(-1)).mean()

    made = same(loss, torch.randn(1024, 512), torch.randint(512, (1024,)))
    assert ["within" in str(kernel) for kernel in made.kernels] == [True, False]
