"""Numbers and sizes that tensors' elements decide stay in the graph, under torch's two options."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.config import config
from dynacap.testing import check_same

ENGINE: Any = dynacap
INPUTS = tuple(torch.tensor(v) for v in ([0.0, 1, 2, 3], [3.0, 2, 2, 0], [5.0, 1, 7, 7]))
REPORTED: list[Any] = []


@pytest.fixture(autouse=True)
def captured() -> Iterator[None]:
    with config.patch(capture_scalar_outputs=True, capture_dynamic_output_shape_ops=True):
        yield
    ENGINE.reset()


def scaled(x: Tensor) -> Any:
    return x * x.sum().item() + 1


def floats_are_python_s(x: Tensor) -> Any:
    value = x.sum().item()
    return x * (value * 0.1 * 3 + 1), value * 0.1 * 3, -value


def returned(x: Tensor) -> Any:
    return x.argmax().item(), x.sum().item(), x + 1


def sized(x: Tensor) -> Any:
    n = x.argmax().item()
    torch._check(n >= 0)
    return torch.zeros(n + 2) + 1, n, n * 2 - 1


def by_int_and_float(x: Tensor) -> Any:
    return x * int(x.argmax()) + float(x.sum()), int(x.argmax().item())


def listed(x: Tensor) -> Any:
    whole = x.long().tolist()
    return x * whole[2] + whole[1], whole, x.reshape(2, 2).tolist(), x[0].tolist()


def positions(x: Tensor) -> Any:
    return torch.nonzero(x > 1) * 2, (x > 1).nonzero(as_tuple=True), torch.argwhere(x)


def masked(x: Tensor) -> Any:
    return x[x > 1].sum() + 1, torch.masked_select(x, x > 0) * 2, x[x > 1]


def repeated(x: Tensor) -> Any:
    return torch.repeat_interleave(x, x.long() + 1) * 2


def distinct(x: Tensor) -> Any:
    return torch.unique(x) + 1, x.unique(return_counts=True)


def count_of_them(x: Tensor) -> Any:
    y = x.nonzero().squeeze(1)
    return y.shape[0] * x, y.numel(), y.size(0) + 1


def checked(x: Tensor) -> Any:
    n = x.long().max().item()
    torch._check(n <= 100, lambda: f"too many {n}")
    torch._check(n >= 0)
    return x.new_ones(n).sum() + n


def compared_in_a_check(x: Tensor) -> Any:
    value = x.sum().item()
    torch._check(value > -1.0)
    return x * value


def read_before_and_after(x: Tensor) -> Any:
    y = x.clone()
    before = y[0].item()
    y[0] = 9
    return before, y[0].item(), y * before


WHOLE = [
    scaled, floats_are_python_s, returned, sized, by_int_and_float, listed, positions, masked,
    repeated, distinct, count_of_them, checked, compared_in_a_check, read_before_and_after,
]  # fmt: skip


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_one_graph_for_all_data(function: Callable[..., Any]) -> None:
    outcome = check_same(function, *((x,) for x in INPUTS), breaks=0, graphs=1)
    assert outcome.counters.get("recompiles", 0) == 0


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_of_sizes_that_vary(function: Callable[..., Any]) -> None:
    longer = tuple((torch.cat([x, x]),) for x in INPUTS if function is not listed)
    check_same(function, *((x,) for x in INPUTS), *longer, breaks=0)


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_by_default_the_graph_breaks(function: Callable[..., Any]) -> None:
    with config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False):
        outcome = check_same(function, *((x,) for x in INPUTS), breaks=None)
    assert any("data-dependent" in reason for reason in outcome.reasons)


def branch(x: Tensor) -> Any:
    return x + 1 if x.argmax().item() > 2 else x - 1


def loop(x: Tensor) -> Any:
    for number in range(x.argmax().item()):
        x = x + number
    return x


def as_text(x: Tensor) -> Any:
    return f"{x.argmax().item()}", x + 1


def truth_of_one(x: Tensor) -> Any:
    return (x + 1 if (x > 2).any().item() else x), x * 2


def index_of_a_list(x: Tensor) -> Any:
    return [10, 20, 30, 40][x.argmax().item()] * x


def rows(x: Tensor) -> Any:
    return [row + 1 for row in x.nonzero()]


@pytest.mark.parametrize("function", [branch, loop, as_text, truth_of_one, index_of_a_list, rows])
def test_python_that_asks_breaks(function: Callable[..., Any]) -> None:
    outcome = check_same(function, *((x,) for x in INPUTS), breaks=None)
    assert any("data-dependent" in reason for reason in outcome.reasons), outcome.reasons


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(ENGINE.Unsupported, match="data-dependent-branch") as caught:
        ENGINE.compile(branch, backend="eager", fullgraph=True)(INPUTS[0])
    assert "torch.where" in str(caught.value)
    assert "torch._check" in str(caught.value)


def no_more_than_two(x: Tensor) -> Any:
    n = x.argmax().item()
    torch._check(n <= 2, lambda: f"{n} is more than 2")
    return x + n


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_check_that_fails(backend: str) -> None:
    compiled = ENGINE.compile(no_more_than_two, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(INPUTS[2]), INPUTS[2] + 2)
        with pytest.raises(RuntimeError, match="3 is more than 2"):
            compiled(INPUTS[0])


@pytest.mark.parametrize("function", [scaled, sized, positions, masked, repeated, count_of_them])
def test_backends_that_trace_the_graph(function: Callable[..., Any]) -> None:
    compiled = ENGINE.compile(function, backend="aot_eager", fullgraph=True)
    for x in INPUTS:
        torch.testing.assert_close(compiled(x), function(x), rtol=0, atol=0)


def test_check_is_size_warns_when_it_runs() -> None:
    def filled(x: Tensor) -> Any:
        n = x.argmax().item()
        torch._check_is_size(n)
        return torch.ones(n)

    compiled = ENGINE.compile(filled, backend="eager", fullgraph=True)
    for x in INPUTS:
        with pytest.warns(FutureWarning, match="_check_is_size"):
            found = compiled(x)
        assert torch.equal(found, torch.ones(int(x.argmax())))


def test_a_number_that_crosses_a_break_is_one_from_outside() -> None:
    def talks(x: Tensor) -> Any:
        n = x.argmax().item()
        REPORTED.append(n)
        dynacap.graph_break()
        return x * n

    check_same(talks, *((x,) for x in INPUTS), breaks=None)
