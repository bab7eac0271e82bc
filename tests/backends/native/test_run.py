"""Graphs run as C: results, aliasing, mutation, random numbers, gradients, errors are eager's."""

import logging
import threading
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import dynacap
from dynacap.backends.native import backend
from dynacap.hook import choose_hook
from dynacap.testing import check_same
from tests.backends.native.against_eager import compiled, same

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def few(*shape: int, **how: Any) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), **how)


def views(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = x + y * 2
    return z, z[0], z.t(), x[1:], x, x.view(-1), y.unsqueeze(0), z


def changes_an_input(x: torch.Tensor, y: torch.Tensor) -> Any:
    y.mul_(2)
    x[1:3] = y[0]
    return x, x[0], x.sum(), y.t()


def changes_what_is_seen_otherwise(x: torch.Tensor, y: torch.Tensor) -> Any:
    bits = x.view(torch.int32)
    bits.add_(1)
    z = y * 2
    row = z.view(16)
    z.add_(1)
    whole, same = y.view(4, 4), y.add_(1)
    return x, bits, z, row, z.view(4, 4), whole, same, y


def changes_what_it_made(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = x.clone()
    row = z[0]
    z[1:3] = y[0]
    row.add_(1)
    z += torch.tensor([1.0, 2.0, 3.0, 4.0])
    mask = torch.zeros(4, 4).masked_fill_(y > 0, 3.0)
    return z, row, mask


def turns_what_it_made(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = x.clone().add_(1)
    z.t_()
    z[1:3] = y[0]
    w = y * 2
    row = w.unsqueeze_(0).transpose_(1, 2)[0]
    row.add_(1)
    return z, w, row, F.adaptive_avg_pool1d(y.t()[None], 1)


def turns_what_is_seen_otherwise(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = x + 1
    seen = z.view(-1)
    z.t_().mul_(2)
    return z, seen


def turns_it_back(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = y[:3].sort()[0]
    total = z.sum(0)
    z.t_().add_(1)
    z.t_().mul_(3)
    return z, total


def draws_numbers(x: torch.Tensor, y: torch.Tensor) -> Any:
    return F.dropout(x, 0.5) + torch.rand(4, 4), torch.bernoulli(y.sigmoid()), torch.randperm(7)


def many_operators(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = F.layer_norm(x @ y, (4,))
    a, b = z.chunk(2, -1)
    top = torch.topk(z, 2)
    long = torch.arange(12).reshape(3, 4) // 5 * 3
    return (
        torch.softmax(z, -1), torch.cat([a, b, a], 1), top.values, top.indices, long,
        torch.where(x > 0, y, 1.5), z.std(0), torch.einsum("ij,kj->ik", x, y),
        torch.stack([x, y]).permute(2, 0, 1), long.float().cumsum(0), x.to(torch.float64).exp(),
        torch.linalg.inv(torch.eye(4) * 2 + 0.1), F.pad(x, (1, 2)), torch.sort(y, 1).indices,
    )  # fmt: skip


def complex_numbers(x: torch.Tensor, y: torch.Tensor) -> Any:
    z = torch.complex(x, y)
    return torch.view_as_real(z * z.conj()), z.abs(), torch.fft.rfft(x).real, z.conj()


FUNCTIONS = [
    views, changes_an_input, changes_what_is_seen_otherwise, changes_what_it_made,
    turns_what_it_made, turns_it_back, turns_what_is_seen_otherwise, draws_numbers, many_operators,
    complex_numbers,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_without_gradient(function: Any) -> None:
    same(function, few(4, 4), few(4, 4))


def test_a_function_of_what_is_known() -> None:
    same(lambda x: (torch.ones(1).sin(), torch.full((9, 1000), 2.0)[:8].log(), x), few(3))


def test_nothing_but_an_input() -> None:
    same(lambda x: (x + 1, x), few(3))


@pytest.mark.parametrize("layout", ["slice", "transposed", "expanded", "gaps", "empty"])
def test_inputs_of_any_layout(layout: str) -> None:
    base = few(8, 8)
    made = {
        "slice": base[2:6, 3:7],
        "transposed": base[:4, :4].t(),
        "expanded": base[:1, :4].expand(4, 4),
        "gaps": base[::2, ::2],
        "empty": base[:0, :4],
    }[layout]
    same(lambda x: (x * 2 + 1, x.relu(), x.t(), x[:, 1:], x.sum(0)), made)


def test_sizes_that_vary() -> None:
    @compiled
    def function(x: torch.Tensor) -> Any:
        return x.reshape(-1, 2) * x.shape[0], torch.zeros(x.shape[0] + 1), x[1:]

    for rows in (4, 6, 10, 2, 8):
        x = few(rows, 4)
        expected = x.reshape(-1, 2) * rows, torch.zeros(rows + 1), x[1:]
        for found, wanted in zip(function(x), expected, strict=True):
            torch.testing.assert_close(found, wanted, rtol=0, atol=0)


@pytest.mark.parametrize("gradient", [False, True])
def test_sizes_and_numbers_that_are_returned(gradient: bool) -> None:
    def function(x: torch.Tensor, count: int, rate: float) -> Any:
        return x * rate, x.shape[0] * 2, count + 1, rate * 2, x.sum() + count

    calls = [(few(n, 3, requires_grad=gradient), n + 3, n / 8) for n in (2, 3, 4, 5)]
    check_same(function, *calls, compile=compiled, breaks=0)


@pytest.mark.parametrize(
    "compute",
    [
        lambda x, n, m: (x + 1, n * n),
        lambda x, n, m: (x + 1, n + m),
        lambda x, n, m: (x + 1, n // m, n % m),
        lambda x, n, m: (x + 1, n * 3 % 2**64),
        lambda x, n, m: x * (n * n),
    ],
)
def test_integers_are_not_those_of_c(compute: Any) -> None:
    numbers = [(3, 2), (5, 7), (7, 0), (-(2**63), -1), (2**40, 3), (2**63 - 1, 3), (2**70, 3)]
    x = few(3, dtype=torch.float64)
    check_same(compute, *((x, *pair) for pair in numbers), compile=compiled)


@pytest.mark.parametrize("gradient", [False, True])
def test_a_float_of_what_the_graph_makes_is_a_known_limit(
    gradient: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def function(x: torch.Tensor, n: int) -> Any:
        both = torch.cat([x, x[1:]])
        return both * 2, both.shape[0] / n

    calls = [(few(n + 1, requires_grad=gradient), n) for n in (3, 5, 7)]
    with caplog.at_level(logging.WARNING, "dynacap"):
        check_same(function, *calls, compile=compiled, breaks=0)
    (said,) = {record.message for record in caplog.records}
    assert "runs eagerly: truediv is a float that the graph computes" in said
    assert "report" not in said


def test_sizes_that_only_tensors_tell() -> None:
    @compiled
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.cat([x, y + 1], 0), (x @ y.t()).softmax(-1)

    for rows in (4, 6, 10, 2, 8):
        x, y = few(rows, 4), few(rows + 3, 4)
        for found, wanted in zip(
            function(x, y), (torch.cat([x, y + 1], 0), (x @ y.t()).softmax(-1)), strict=True
        ):
            torch.testing.assert_close(found, wanted)


def test_what_an_operator_raises_is_what_eager_raises() -> None:
    def function(x: torch.Tensor, index: torch.Tensor) -> Any:
        return (x + 1)[index]

    same(function, few(4, 4), torch.tensor([0, 9]))
    same(lambda x, target: F.cross_entropy(x, target), few(4, 4), torch.tensor([0, 1, 4, 2]))
    same(lambda w, index: F.embedding(index, w) + 1, few(4, 4), torch.tensor([0, -1]))
    same(function, few(4, 4), torch.tensor([0, -4]))
    same(lambda x: torch.linalg.inv(x * 0), few(4, 4))
    same(lambda x: torch.linalg.cholesky(x - 100), few(4, 4))


class Small(torch.nn.Module):
    """Layers whose training changes buffers and draws numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.first = torch.nn.Linear(4, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.second = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.second(F.gelu(self.norm(self.first(x))))


def trained(model: Any, steps: int) -> tuple[Any, ...]:
    x = few(6, 4).requires_grad_()
    for _ in range(steps):  # gradients add up
        model(x).square().mean().backward()
    with torch.no_grad():
        left = model(x)
    own = model.state_dict().values()
    return (x.grad, left, *(p.grad for p in model.parameters()), *(value.clone() for value in own))


def test_backward_graphs_are_made_outside_of_capture() -> None:
    """Where the compiled function goes backward itself, nothing of the compiler's is captured."""
    layers = [torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)]
    layers[1].load_state_dict(layers[0].state_dict())

    def step(layer: torch.nn.Module, x: torch.Tensor) -> Any:
        loss = layer(x).tanh().square().mean()
        loss.backward()
        return loss.detach()

    before = dynacap.counters()
    found, expected = compiled(step)(layers[0], few(3, 4)), step(layers[1], few(3, 4))
    torch.testing.assert_close(found, expected)
    for ours, theirs in zip(layers[0].parameters(), layers[1].parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    after = dynacap.counters()
    assert after["graphs"] - before["graphs"] == 2
    if choose_hook().capabilities.replaces_running_frame:  # the other sees no function's first call
        assert after["frames"] - before["frames"] == 2
        assert after["recompiles"] == before["recompiles"]


def test_training() -> None:
    for found, wanted in zip(trained(compiled(Small()), 3), trained(Small(), 3), strict=True):
        torch.testing.assert_close(found, wanted)


@pytest.mark.usefixtures("own_cache")
def test_the_backward_pass_is_begun_while_the_forward_s_library_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, both = list[str](), threading.Event()
    build: Any = vars(backend)["build_later"]

    def later(source: str, compiler: Any) -> Future[Path]:
        begun.append(source)
        if len(begun) == 2:
            both.set()

        def wait() -> Path:
            assert both.wait(20)
            made: Path = build(source, compiler).result()
            return made

        return pool.submit(wait)

    monkeypatch.setattr(backend, "build_later", later)
    x = torch.rand(3, requires_grad=True)
    with ThreadPoolExecutor(2) as pool:
        y = compiled(lambda x: (x.exp() * 2.5).sin())(x)
        assert len(begun) == 2
        y.sum().backward()
    assert len(begun) == 2
    torch.testing.assert_close(x.grad, (x.exp() * 2.5).cos() * x.exp() * 2.5)


def test_the_second_gradient_of_an_output_used_twice() -> None:
    weight = few(4, 4).requires_grad_()

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x @ weight).tanh()

    x = few(4, 4)
    y = compiled(function)(x)
    (y.sum() + (y * y).sum()).backward()
    found, weight.grad = weight.grad, None
    y = function(x)
    (y.sum() + (y * y).sum()).backward()
    torch.testing.assert_close(found, weight.grad)


def test_results_are_inference_tensors_in_inference_mode() -> None:
    function = compiled(lambda x: x * 2)
    with torch.inference_mode():
        assert function(few(3)).is_inference()
    assert not function(few(3)).is_inference()


def test_threads_may_run_one_graph_at_once() -> None:
    function = compiled(lambda x: torch.softmax(x @ x + 1, -1) @ x)
    inputs = [few(64, 64) * n for n in range(1, 9)]
    expected = [function(x) for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for found, wanted in zip(pool.map(function, inputs * 5), expected * 5, strict=True):
            assert torch.equal(found, wanted)


def test_hooks_on_all_modules_see_the_users_only() -> None:
    seen: list[str] = []

    def note(module: torch.nn.Module, inputs: Any, output: torch.Tensor) -> Any:
        seen.append(type(module).__name__)
        return output + 1

    layer = torch.nn.Linear(2, 2)
    with torch.nn.modules.module.register_module_forward_hook(note):
        found = dynacap.compile(layer, backend="native")(few(3, 2))
        expected = layer(few(3, 2))
    torch.testing.assert_close(found, expected)
    assert seen == ["Linear", "Linear"]


@pytest.mark.parametrize("reentrant", [False, True])
def test_inside_a_checkpoint(reentrant: bool) -> None:
    """Which stops what it runs again by an exception, once it has the tensors that it wants."""

    def function(x: torch.Tensor) -> Any:
        return (x.sin() * x).sum()

    grads = []
    for each in (function, compiled(function)):
        x = few(4).requires_grad_()
        for _ in range(2):
            y = checkpoint(lambda z: each(z * 2), x, use_reentrant=reentrant)  # noqa: B023
            y.backward()
        grads.append(x.grad)
    torch.testing.assert_close(grads[1], grads[0])


def test_statistics_are_read_as_a_normalization_has_left_them() -> None:
    def both(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> Any:
        before, own = mean * 2, torch.zeros(4)
        y = F.batch_norm(x, mean, var, training=True)
        F.batch_norm(x, own, var, training=True)
        return y, before, mean * 2, var + 1, own

    check_same(both, (few(8, 4), torch.zeros(4), torch.ones(4)), compile=compiled)


def test_a_view_of_a_complex_argument_that_begins_inside_a_storage() -> None:
    def changed(x: torch.Tensor) -> Any:
        part = x[1:3]
        x.mul_(2)
        return part, x.sum()

    base = few(12, dtype=torch.complex64)
    compiled_one = compiled(changed)
    for start in (0, 4):
        mine, theirs = base.clone(), base.clone()
        part, total = compiled_one(mine[start : start + 6])
        wanted = changed(theirs[start : start + 6])
        torch.testing.assert_close((part, total, mine), (*wanted, theirs))
        part.add_(1)
        assert mine[start + 1] == theirs[start + 1] + 1


SHOWN = [
    lambda x: torch.view_as_real((x * 2).t()[1:]),
    lambda x: torch.view_as_real(x.t()[1:]),
    lambda x: torch.fft.fft(x).t()[1:].imag,
    lambda x: torch.unsafe_split(x.cumsum(0).t()[1:], 200)[1],
]


@pytest.mark.parametrize("function", SHOWN)
@pytest.mark.parametrize("gradient", [False, True])
def test_memory_that_only_an_operator_s_result_shows(function: Any, gradient: bool) -> None:
    given = few(300, 400, dtype=torch.complex64)
    wanted = function(given)
    found = compiled(function)(given.clone().requires_grad_(gradient))
    others = [torch.zeros(300, 400, 2) for _ in range(4)]  # where memory was given back
    assert torch.equal(found, wanted), len(others)


def test_the_gradient_of_a_result_that_is_to_be_conjugated() -> None:
    """The gradient itself is not."""

    def run(function: Any, x: torch.Tensor) -> Any:
        total = torch.view_as_real(function(x) * (2 + 1j)).square().sum()
        return torch.autograd.grad(total, x)

    x = few(4, 6).requires_grad_()
    for function in (torch.fft.ifft, torch.fft.ihfft):
        torch.testing.assert_close(run(compiled(function), x), run(function, x))


def test_operators_outside_of_autocast_are_not_cast() -> None:
    def both(x: torch.Tensor, weight: torch.Tensor) -> Any:
        with torch.autocast("cpu", enabled=False):
            plain = torch.conv_tbc(x, weight, weight[0, 0])
        return plain, torch.conv_tbc(x, weight, weight[0, 0])

    def fails(x: torch.Tensor, i: torch.Tensor) -> Any:
        return (x @ x).index_select(0, i)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_same(both, (few(3, 4, 4), few(1, 4, 4)), compile=compiled)
        good, wrong = torch.tensor([0]), torch.tensor([9])
        check_same(fails, (few(4, 4), good), (few(4, 4), wrong), compile=compiled)
        assert torch.is_autocast_enabled("cpu")


def normalized(x: torch.Tensor) -> Any:
    y = F.batch_norm(x, None, None, training=True)
    return y * 2, y.sum(0), y[1:].sin()


def unpooled(x: torch.Tensor) -> Any:
    images = x[None].contiguous(memory_format=torch.channels_last)
    pooled, places = F.max_pool2d(images, 2, return_indices=True)
    return F.max_unpool2d(pooled, places, (2, 2)) * 2


@pytest.mark.parametrize("function", [normalized, unpooled])
@pytest.mark.parametrize("gradient", [False, True])
def test_an_operator_that_lays_its_result_out_otherwise_than_torch_says(
    function: Any, gradient: bool
) -> None:
    """What its meta kernel says of the strides is not so."""

    def run(function: Any, x: torch.Tensor) -> Any:
        results = function(x)
        if not gradient:
            return results
        total = sum(each.exp().sum() for each in results)
        return results, torch.autograd.grad(total, x)

    x = few(4, 6, 8).permute(2, 1, 0).detach().requires_grad_(gradient)
    torch.testing.assert_close(run(compiled(function), x), run(function, x), check_stride=False)


@pytest.mark.parametrize("function", [lambda x: x.tanh(), lambda x: (x * 2).softmax(-1)])
def test_a_change_of_a_result_that_the_backward_pass_needs(function: Any) -> None:
    for run in (function, dynacap.compile(function, backend="native")):
        result = run(torch.randn(3, 4, requires_grad=True))
        with torch.no_grad():
            result.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


def test_a_change_in_the_graph_that_its_backward_pass_does_not_survive() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.exp().add_(1)

    for run in (function, dynacap.compile(function, backend="native")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = run(torch.randn(3, requires_grad=True))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            result.sum().backward()


def test_gradients_of_single_samples() -> None:
    """What is given up in the middle of a transform leaves it."""
    w = few(3, 4)

    def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return (x @ w.T).square().mean()

    def function(x: torch.Tensor) -> Any:
        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x)

    run = dynacap.compile(function, backend="native")
    with dynacap.config.patch(raise_internal_errors=True):
        for n in (5, 6):
            torch.testing.assert_close(run(few(n, 4)), function(few(n, 4)))
