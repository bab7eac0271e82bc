"""What fuses with what, in how many passes, and how loops are cut."""

import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from dynacap.backends.native.c.kernels import kernel_source  # noqa: E402

F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Same = Callable[..., Any]


def loops(made: Any) -> list[str]:
    """The loop heads of the only kernel, without the names of counters."""
    (kernel,) = made.kernels
    heads = [line for line in str(kernel).splitlines() if re.match(r" *[a-z ]*for ", line)]
    return [re.sub(r" \w+ <", " <", head[4:]) for head in heads]


def test_contiguous_operands_make_one_flat_loop(same: Same) -> None:
    made = same(lambda x, y: (x + y).view(60, 4) * 2, torch.randn(4, 5, 12), torch.randn(4, 5, 12))
    assert loops(made) == ["vector for < 240:"]


def test_what_long_chains_share_counts_once_for_the_number_of_threads(same: Same) -> None:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(12):
            x = torch.where(x > 1, y, torch.abs(torch.maximum(x * 0.5, y) - y) / 1.5)
        return x

    assert loops(same(chain, torch.randn(1000), torch.randn(1000))) == ["vector for < 1000:"]


def test_a_broadcast_operand_cuts_the_loop_where_it_repeats(same: Same) -> None:
    made = same(lambda x, b: x + b, torch.randn(4, 5, 16), torch.randn(16))
    assert loops(made) == ["for < 20:", "    vector for < 16:"]


def test_heads_of_attention_cut_rows_into_four(same: Same) -> None:
    made = same(
        lambda x: x.view(2, 8, 3, 16).transpose(1, 2).contiguous() * 2, torch.randn(2, 8, 48)
    )
    assert loops(made) == ["for < 2:", "    for < 3:", "        for < 8:"] + [
        "            vector for < 16:"
    ]


def test_softmax_is_three_passes_over_a_row(same: Same) -> None:
    made = same(lambda x: (x * 2).softmax(-1) + 1, torch.randn(8, 64))
    assert loops(made) == ["for < 8:", *["    vector for < 64:"] * 3]
    assert "exp_f32" in made.source
    assert made.source.count("exp_f32(") == 2  # its definition, and one call


def test_two_sums_over_one_row_share_a_pass(same: Same) -> None:
    made = same(lambda x: [x.sum(-1), (x * x).sum(-1), x.amax(-1)], torch.randn(8, 64))
    assert loops(made) == ["for < 8:", "    vector for < 64:"]


def test_columns_are_summed_in_blocks_along_the_rows(same: Same) -> None:
    made = same(lambda x: [x.sum(0), x.exp().sum(0)], torch.randn(32, 512))
    assert loops(made) == ["for < 2:", "    vector for < 256:", "    for < 32:"] + [
        "        vector for < 256:"
    ]


def test_transposed_reads_go_tile_by_tile(same: Same) -> None:
    made = same(lambda x, y: y + x.t(), torch.randn(96, 40), torch.randn(40, 96))
    copy, use = ["        for < 48:", "            vector for < 40:"], ["        for < 40:", ""]
    use[1] = "            vector for < 48:"
    assert loops(made) == ["for < 1:", "    for < 2:", *copy, *use]


def test_two_tensors_read_across_have_a_tile_each(same: Same) -> None:
    def fn(x: Any, y: Any, z: Any) -> Any:
        return y * x.transpose(1, 2) + z.transpose(1, 2).double() - x.transpose(1, 2)

    x, z = torch.randn(3, 64, 130), torch.randint(9, (3, 64, 130), dtype=torch.int8)
    made = same(fn, x, torch.randn(3, 130, 64), z)
    (kernel,) = made.kernels
    assert len(kernel.scratch) == 2


def test_what_is_read_across_in_no_even_tiles_goes_block_by_block(same: Same) -> None:
    made = same(lambda x, y: y + x.t(), torch.randn(96, 97), torch.randn(97, 96))
    assert loops(made) == ["for < 6:", "    for < 97:", "        vector for < 16:"]


def test_gradients_of_a_norm_read_their_rows_once(same: Same) -> None:
    x, g, w = torch.randn(2048, 192), torch.randn(2048, 192), torch.randn(192)
    mean, rstd = x.mean(-1, keepdim=True), x.var(-1, keepdim=True).rsqrt()

    def fn(g: Any, x: Any, mean: Any, rstd: Any, w: Any) -> Any:
        backward = torch.ops.aten.native_layer_norm_backward
        return backward(g, x, [192], mean, rstd, w, w, [True, True, True])

    made = same(fn, g, x, mean, rstd, w, rtol=1e-4, atol=1e-4)
    read = [b for kernel in made.kernels for b in kernel.reads if b.numel == x.numel()]
    assert sorted(map(str, read)) == sorted(map(str, made.program.inputs[:2]))
    assert str(made.kernels[0]).count("parallel for") == 1


def test_a_function_that_torch_computes_faster_is_called_where_it_is_alone(same: Same) -> None:
    x = torch.randn(100, 100)
    assert same(lambda x: x.sin(), x).calls == ["aten.sin.default"]
    assert not same(lambda x: x.sin() * 2, x).calls
    assert not same(lambda x: x.t().sin(), x).calls
    assert not same(lambda x: x.sin(), x[:10]).calls
    assert same(lambda x: x.exp().sum(0, keepdim=True) + x.log(), x.abs()).kernels
    half = torch.randn(100, 100, dtype=torch.bfloat16)
    assert same(lambda x: -x, half).calls == ["aten.neg.default"]
    assert same(lambda x: F.hardswish(x), half).calls == ["aten.hardswish.default"]
    assert not same(lambda x: -(x + 1), half).calls
    assert not same(lambda x: (x + 1, -(x + 1)), half).calls
    assert not same(lambda x: -x, x).calls
    assert not same(lambda x: -x.t(), half).calls


def test_large_sums_are_cut_into_parts_for_the_cores(same: Same) -> None:
    made = same(lambda x: (x * x).sum(), torch.randn(1200, 1000), rtol=1e-5, atol=0)
    parts, total = made.kernels
    assert "parallel for row < 16" in str(parts)
    assert "parallel" not in str(total)


def test_equal_loops_that_have_nothing_in_common_become_one(same: Same) -> None:
    made = same(lambda x, y: [x.exp(), y.sin()], torch.randn(100), torch.randn(100))
    assert loops(made) == ["vector for < 100:"]


def test_a_call_divides_what_needs_it_from_what_does_not(same: Same) -> None:
    def fn(x: Any, w: Any) -> Any:
        before = x.exp()
        product = before @ w
        return product + before, x.sin()

    made = same(fn, torch.randn(8, 8), torch.randn(8, 8))
    assert len(made.kernels) == 2
    assert made.calls == ["aten.mm.default"]


def test_what_nobody_reads_is_not_computed(same: Same) -> None:
    def fn(x: Any) -> Any:
        x.exp().sum()
        return x + 1

    assert "exp" not in same(fn, torch.randn(16)).source


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(same: Same, seed: int) -> None:
    """Pointwise operations, views and reductions in random order over random shapes."""
    import random

    rng = random.Random(seed)
    shape = [rng.choice([1, 2, 3, 4, 6, 8]) for _ in range(rng.choice([2, 3, 4]))]
    unary = ["sin", "exp", "tanh", "abs", "neg", "sigmoid", "relu"]
    plan = [(rng.randrange(6), rng.random(), rng.choice(unary)) for _ in range(14)]

    def fn(x: Any, y: Any) -> list[Any]:
        values = [x, y, x + y]
        for kind, where, name in plan:
            a = values[int(where * len(values))]
            b = values[-1]
            dim = int(where * 1000) % a.dim() if a.dim() else 0
            if kind == 0 or not a.dim():
                values.append(getattr(a, name)().clamp(-3, 3))
            elif kind == 1:
                values.append(a.transpose(dim, -1).contiguous())
            elif kind == 2:
                values.append(a - a.mean(dim, keepdim=True))
            elif kind == 3:
                values.append(torch.cat([a, a * 0.5], dim)[..., :5])
            elif kind == 4:
                values.append(a.reshape(-1, a.shape[-1]).softmax(-1))
            else:
                values.append(a * 0.5 + b if a.shape == b.shape else a.flip(dim).amax(dim))
        return values[3:]

    x = torch.randn(shape).transpose(0, -1)
    same(fn, x, torch.randn(x.shape), rtol=1e-4, atol=1e-5)


def test_what_the_passes_of_a_row_keep_fits_on_a_stack(same: Same) -> None:
    def fn(x: Any) -> Any:
        sums = []
        for n in range(9):
            y = (x + n).exp()
            sums.append((y / y.sum(-1, keepdim=True)).tanh())
        return sums

    made = same(fn, torch.randn(2, 100_000))
    for kernel in made.kernels:
        assert sum(b.numel * b.dtype.itemsize for b in kernel.scratch) <= 1 << 20


def test_what_one_pass_takes_from_another_at_the_same_place_fits_too(same: Same) -> None:
    """The sum is read where it is made, but only once the greatest is known."""

    def centred(x: Any) -> Any:
        total = x.exp() + x.tanh()
        return (total - total.amax(1, keepdim=True)).sum(1)

    for columns in (2000, 600_000):
        made = same(centred, torch.randn(16, columns), rtol=1e-4, atol=1e-2)
        for kernel in made.kernels:
            assert sum(b.numel * b.dtype.itemsize for b in kernel.scratch) <= 1 << 20


def test_much_room_is_not_taken_from_the_stack(same: Same) -> None:
    (kernel,) = same(lambda x: (x.exp() + x.tanh()).softmax(1), torch.randn(16, 30_000)).kernels
    assert sum(buffer.numel * 4 for buffer in kernel.scratch) > 100_000
    text = kernel_source(kernel)
    assert text.count("= scratch(") == text.count("free(") == len(kernel.scratch)


def test_names_of_the_users_are_not_those_of_loops(same: Same) -> None:
    def fn(row: Any, j: Any, v0: Any, i0: Any, linux: Any, asm: Any, fault: Any) -> Any:
        return [row + j * v0 - i0, (linux * asm + row).softmax(1) * fault, row.t() + 1]

    same(fn, *torch.randn(7, 5, 6))


def test_a_bound_is_a_number_that_the_compiler_cannot_know(same: Same) -> None:
    x = torch.tensor([float("nan"), -0.0, 0.0, -9.0, 9.0, float("inf"), -float("inf")] * 9)
    made = same(lambda x: x.clamp(-3, 3).relu() * F.relu6(x), x)
    assert len(re.findall(r"const float bound\d+ = hidden_f32\(", made.source)) == 4


def test_what_is_chosen_is_divided_once(same: Same) -> None:
    made = same(lambda x, y: torch.where(x > 1, y, x) / 1.5, torch.randn(64), torch.randn(64))
    assert re.search(r"v\d+ / 1.5f", made.source)


@pytest.mark.parametrize(("size", "kernels"), [(1_000, 1), (40_000, 3)])
def test_large_tensors_that_have_nothing_in_common_are_not_all_in_one_loop(
    same: Same, size: int, kernels: int
) -> None:
    def fn(*tensors: Any) -> Any:
        return [a * 2 + b for a, b in zip(tensors[::2], tensors[1::2], strict=True)]

    assert len(same(fn, *torch.randn(12, size)).kernels) == kernels
