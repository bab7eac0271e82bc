"""Arguments that a graph changes: written to where nothing reads the old elements, else copied."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap import log
from dynacap.config import config
from dynacap.testing import check_same
from tests.backends.native.against_eager import compiled

pytestmark = [pytest.mark.torch, pytest.mark.cc]
Fn = Callable[..., Any]


def few(*shape: int, **how: Any) -> torch.Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(3), **how)


def swapped(x: torch.Tensor, y: torch.Tensor) -> None:
    new = x * 2, y * 3
    x.copy_(new[1])
    y.copy_(new[0])


def old_and_new(x: torch.Tensor, y: torch.Tensor) -> Any:
    before = x * 2
    x.mul_(y)
    return before + x, x.view(-1)


def several_times(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.mul_(x).add_(y)
    x.sub_(1)
    return x


def through_a_view(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.view(-1).add_(1)
    return x * y


def product_of_the_new(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.add_(1)
    return x @ y, x


def old_read_late(x: torch.Tensor, y: torch.Tensor) -> Any:
    before = x * 2
    x.add_(1)
    return x @ y + before


def new_returned_too(x: torch.Tensor, y: torch.Tensor) -> Any:
    new = x + y
    x.copy_(new)
    new.sub_(1)
    return new


def of_another_place(x: torch.Tensor, y: torch.Tensor) -> None:
    x.copy_(x.flip(0) + y)


def of_another_row(x: torch.Tensor, y: torch.Tensor) -> None:
    x.copy_(x.sum(0) + y)


def normalized(x: torch.Tensor, y: torch.Tensor) -> None:
    x.copy_(x.softmax(-1))


def summed(x: torch.Tensor, y: torch.Tensor) -> None:
    x.copy_((x[:, :, None] + y[:, None, :]).sum(-1))


def a_part(x: torch.Tensor, y: torch.Tensor) -> Any:
    x[1:3].add_(y[0])
    return x + 1


def broadcast(x: torch.Tensor, y: torch.Tensor) -> None:
    x.copy_(y[0] * 2)


def might_fail_later(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.add_(1)
    return torch.linalg.cholesky(y @ y.t() + torch.eye(4))


def indexes_first(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y[(y * 3).long().clamp(0, 3)[0]])


# With the number of arguments that are written to.
FUNCTIONS: dict[Fn, int] = {
    lambda x, y: x.add_(y): 1,
    lambda x, y: (x.zero_(), y.fill_(3)): 2,
    lambda x, y: x.sub_(x.sum()): 0,
    swapped: 2,
    old_and_new: 1,
    several_times: 1,
    through_a_view: 0,
    product_of_the_new: 1,
    old_read_late: 0,
    new_returned_too: 1,
    of_another_place: 0,
    of_another_row: 0,
    normalized: 0,
    summed: 0,
    a_part: 0,
    broadcast: 1,
    might_fail_later: 0,
    indexes_first: 0,
}


def in_place(fn: Fn, *args: Any) -> int:
    """How many copies of an argument to itself the schedule has."""
    with log.collect("schedule") as records:
        compiled(fn)(*args)
    text = "\n".join(record.message for record in records)
    calls = [line for line in text.splitlines() if "aten.copy_.default(" in line]
    pairs = [line.partition("copy_.default(")[2].rstrip(")").split(", ") for line in calls]
    return sum(to == new for to, new in pairs)


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_what_is_written_to(fn: Fn) -> None:
    assert in_place(fn, few(4, 4), few(4, 4)) == FUNCTIONS[fn]


def test_a_copy_of_an_argument_to_itself_takes_the_short_way() -> None:
    with log.collect("c") as records:
        compiled(lambda x, y: x.add_(y))(few(4, 4), few(4, 4))
    assert "if (aoti_torch_copy_(in[0], in[0], 0)) { goto end; }" in records[-1].message


@pytest.mark.parametrize("fn", FUNCTIONS, ids=lambda fn: fn.__name__)
def test_results_and_arguments_are_eager_s(fn: Fn) -> None:
    x, whole = few(96, 96), (few(4, 4) * 5).long()
    for args in ((x, x + 1), (x[:4, :4].clone(),) * 2, (whole.t(), whole + 1), (whole.t(), whole)):
        check_same(fn, args, args, compile=compiled)


@pytest.mark.parametrize("strides", [(4, 1), (1, 4), (8, 1), (4, 2)])
def test_layouts(strides: tuple[int, int]) -> None:
    x = few(64).as_strided((4, 4), strides)
    check_same(lambda x, y: x.mul_(y), (x, few(4, 4)), compile=compiled)


def test_a_large_one_is_changed_after_what_reads_it() -> None:
    def fn(x: torch.Tensor) -> Any:
        x.sub_(x.mean())
        return x.square().sum()

    x = few(300, 1000)
    assert in_place(fn, x.clone()) == 1
    check_same(fn, (x,), compile=compiled)


def test_it_counts_as_a_change() -> None:
    leaf, x = torch.ones(3, requires_grad=True), torch.ones(3)
    product = leaf * x
    version, fn = x._version, compiled(lambda x: x.add_(1))
    for calls in (1, 2):
        fn(x)
        assert x._version == version + calls
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()


def test_what_eager_refuses_changes_nothing() -> None:
    with torch.inference_mode():
        x = torch.ones(3)
    for fn in (lambda x: x.add_(1), compiled(lambda x: x.add_(1))):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            fn(x)
    with torch.inference_mode():
        check_same(lambda x: x.add_(1), (x,), compile=compiled)


def test_arguments_that_share_memory() -> None:
    memory = few(10)

    def fn(x: torch.Tensor, y: torch.Tensor) -> Any:
        x.add_(1)
        return y * 2

    for y in (few(10), memory[:5], memory[2:]):
        x, other = memory.clone(), compiled(fn)
        shared = x[10 - len(y) :] if y.data_ptr() == memory[2:].data_ptr() else y
        expected = x.clone()
        result = other(x, shared)
        expected.add_(1)
        torch.testing.assert_close(x, expected)
        torch.testing.assert_close(result, shared * 2)


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW])
def test_an_optimizer_s_step(kind: Any, foreach: bool) -> None:
    def run(compile_: Fn) -> list[torch.nn.Parameter]:
        parameters = [torch.nn.Parameter(few(n, 3)) for n in (2, 3, 2, 50)]
        options = {"momentum": 0.9} if kind is torch.optim.SGD else {}
        optimizer = kind(parameters, lr=0.1, foreach=foreach, **options)
        step = compile_(optimizer.step)
        for count in range(4):
            for parameter in parameters:
                parameter.grad = parameter.detach() * (count - 1)
            step()
        return parameters

    dynacap.reset()
    torch.testing.assert_close(run(compiled), run(lambda step: step))


CHANGES: dict[str, tuple[int, Fn]] = {
    "one": (1, lambda x: (x.add_(1), x * 2)[1]),
    "two": (2, lambda x: (x.add_(1), x.mul_(2), x * 2)[2]),
    "a part, then all": (2, lambda x: (x[1:].add_(1), x.mul_(2), x * 2)[2]),
    "through a view": (3, lambda x: (x.view(-1).add_(1), x.t().mul_(2), x.exp_(), x * 2)[3]),
    "beside what counts": (0, lambda x: (x.data.add_(1), x.data.mul_(2), x * 2)[2]),
    "beside it, and not": (1, lambda x: (x.data.add_(1), x.mul_(2), x * 2)[2]),
    "out": (1, lambda x: (torch.add(x, 1, out=x), x * 2)[1]),
    "lists": (2, lambda x: (torch._foreach_add_([x], 1.0), torch._foreach_mul_([x], 2.0))[0]),
}


SEEN = [name for name in CHANGES if "beside" not in name and name != "out"]


@pytest.mark.parametrize("name", SEEN)
def test_each_change_counts_beside_a_backward_pass(name: str, tmp_path: Path) -> None:
    count, fn = CHANGES[name]

    def changed(x: Tensor, weight: Tensor) -> Any:
        return fn(x)[0] * weight

    weight = few(4).requires_grad_()
    with dynacap.config.patch(cache_dir=str(tmp_path / "cache")):
        for _ in range(2):
            dynacap.reset()
            x, call = few(3, 4), compiled(changed)
            for _ in range(2):
                call(x, weight).sum().backward()
            assert x._version == 2 * count


@pytest.mark.parametrize(("count", "fn"), CHANGES.values(), ids=CHANGES)
def test_each_change_counts(count: int, fn: Fn, tmp_path: Path) -> None:
    def version(call: Fn) -> int:
        x = few(3, 4)
        for _ in range(2):
            call(x)
        return x._version

    assert version(fn) == 2 * count
    with dynacap.config.patch(cache_dir=str(tmp_path / "cache")):
        assert version(compiled(fn)) == 2 * count
        dynacap.reset()
        assert version(compiled(fn)) == 2 * count  # by the note of the first
    with torch.inference_mode():
        x, y = few(3, 4), few(3, 4)
        compiled(fn)(x)
        fn(y)
        torch.testing.assert_close(x, y)


def test_a_tensor_that_is_changed_and_turned_looks_otherwise_before() -> None:
    def f(x: Tensor, at: Tensor) -> Tensor:
        y = x.gather(1, at)
        y.lerp_(y * 2, 0.5)
        y.squeeze_(-1)
        y.mul_(3)
        y.unsqueeze_(0)
        return y + 1

    calls = [(few(n, 4), torch.arange(n)[:, None] % 3) for n in (1, 3, 5)]
    with config.patch(raise_internal_errors=True):
        check_same(f, *calls)
        check_same(lambda x, at: x.sin().squeeze_(0), *calls)  # the sizes vary, too


def test_what_gives_a_list_beside_a_tensor() -> None:
    def f(x: Tensor, y: Tensor, found: Tensor) -> Any:
        torch._amp_foreach_non_finite_check_and_unscale_([x, y], found, torch.full((), 0.5))
        return torch._foreach_norm([x, y])

    with config.patch(raise_internal_errors=True):
        check_same(f, (few(3), few(4), torch.zeros(())))


def test_a_view_whose_sizes_vary(caplog: pytest.LogCaptureFixture) -> None:
    """A program may have warnings raise: torch's about sizes in the recorded graph, too."""

    def program(x: Tensor) -> Any:
        x[:, 1:].mul_(2)
        return x.t()

    calls = [(few(n, n + 2),) for n in (3, 4, 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same(program, *calls, compile=compiled)
    assert not [each for each in caplog.records if "runs eagerly" in each.getMessage()]
