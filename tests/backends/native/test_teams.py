"""Kernels that one team of threads runs together, against eager."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dynacap
from dynacap import log

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.cc]
Fn = Callable[..., Any]


@pytest.fixture(autouse=True)
def several_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def source_of(fn: Fn, make: Callable[[], tuple[Any, ...]]) -> str:
    """The C code of a function that does what eager does, again and again."""
    compiled = dynacap.compile(fn, backend="native")
    with log.collect("c") as records:
        compiled(*make())
    for _ in range(20):
        here, there = make(), make()
        torch.testing.assert_close(compiled(*here), fn(*there))
        torch.testing.assert_close(here, there)
        assert [each._version for each in here] == [each._version for each in there]
    return str(records[-1].message)


def seeded(*sizes: tuple[int, ...]) -> Callable[[], tuple[Any, ...]]:
    def make() -> tuple[Any, ...]:
        torch.manual_seed(0)
        return tuple(torch.randn(size) for size in sizes)

    return make


def step(*tensors: Any) -> None:
    """Of an optimizer: parameters of three sizes, none of which has to do with another."""
    for p, grad, kept in zip(tensors[::3], tensors[1::3], tensors[2::3], strict=True):
        kept.mul_(0.9).add_(grad)
        p.add_(kept, alpha=-1e-3)


def test_an_optimizer_s_step_is_one_team_without_barriers() -> None:
    sizes = [(300_000,)] * 9 + [(500,)] * 3 + [(200_000,)] * 6
    text = source_of(step, seeded(*sizes))
    assert text.count("#pragma omp parallel\n") == 1
    assert "barrier" not in text
    assert text.count("#pragma omp single nowait") == 1


def test_what_reads_what_another_wrote_waits_for_it() -> None:
    def fn(x: Any, w: Any) -> Any:
        x = x.clamp(-1, 1).round()  # whole numbers add up exactly
        columns = (x * 2).sum(0)  # needs all rows
        y = x.t().contiguous() * columns[:, None]
        return y, y.sum(0), (y.t() - w).tanh().amax(1), columns

    text = source_of(fn, seeded((1100, 1000), (1000,)))
    assert text.count("#pragma omp barrier") >= 1


def test_long_chains_and_their_rests() -> None:
    def fn(x: Any, y: Any) -> None:
        for each in (x, y):
            for _ in range(4):
                each.tanh_().add_(0.25).sigmoid_().sub_(0.5)

    text = source_of(fn, seeded((100_001,), (200_003,)))
    assert text.count("#pragma omp parallel\n") == 1
    assert text.count("#pragma omp for nowait") == 2
