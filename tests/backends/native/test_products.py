"""Products of matrices, which BLAS computes on plain memory, and what is added to them."""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import dynacap.log
from tests.backends.native.against_eager import compiled, same

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.cc]
SIZES = [(1, 64, 8), (1, 1, 1), (5, 1, 7), (1, 3, 1), (40, 50, 60), (200, 130, 70)]


def source(fn: Callable[..., Any], *args: Any) -> str:
    """The C of a function's one graph."""
    with dynacap.log.collect("c") as records:
        compiled(fn)(*args)
    (record,) = records
    return str(record.message)


def test_the_tensor_of_a_view_goes_before_the_next_operator() -> None:
    """Its memory stays with what it is a view of."""

    def fn(x: Any) -> Any:
        made = x.sin()
        first, second = made.t(), made[1:]  # of memory in the arena, each for one operator alone
        return torch.sort(first, 0)[0], torch.sort(second, 0)[0], torch.sort(x[1:].t(), 0)[0]

    text = source(fn, torch.randn(8, 6))
    sorts = re.findall(r"_sort\((h\[\d+\])(.*?)(?=dynacap_blob|dynacap_share|out\[)", text, re.S)
    assert len(sorts) == 3
    for handle, until_the_next in sorts:
        assert f"dynacap_drop(&{handle})" in until_the_next
    same(fn, torch.randn(8, 6))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_each_order_of_memory(size: tuple[int, int, int], dtype: Any) -> None:
    m, n, k = size

    def fn(a: Any, b: Any, at: Any, bt: Any, c: Any) -> Any:
        turned = at.t() @ bt.t()
        return a @ b, a @ bt.t(), turned.relu(), torch.addmm(c, a, b), torch.addmm(c[0], at.t(), b)

    shapes = ((m, k), (k, n), (k, m), (n, k), (m, n))
    same(fn, *(torch.randn(shape, dtype=dtype) for shape in shapes))


def test_batches(same_in_c: Callable[..., None]) -> None:
    q, k = torch.randn(2, 3, 8, 16), torch.randn(2, 3, 8, 16)
    same_in_c(lambda q, k: (q @ k.transpose(-1, -2)).softmax(-1) @ k, q, k)
    same_in_c(lambda q, k: q.transpose(1, 2)[:, :3] @ k.transpose(-1, -2), q, k)
    many = torch.randn(64, 80, 40)
    same_in_c(lambda a: a @ a.transpose(1, 2), many)


@pytest.fixture
def same_in_c() -> Callable[..., None]:
    """Whether it is the same, and no operator was called for it."""

    def check(fn: Callable[..., Any], *args: Any) -> None:
        same(fn, *args)
        text = source(fn, *args)
        assert "sgemm_(" in text
        assert "aoti_torch" not in text

    return check


def test_parts_of_tensors(same_in_c: Callable[..., None]) -> None:
    x, w = torch.randn(30, 64), torch.randn(64, 20)
    same_in_c(lambda x, w: x[3:9, 10:42] @ w[32:, 5:], x, w)
    same_in_c(lambda x, w: (x * 2)[:, 8:24] @ w[:16], x, w)


def test_operands_that_blas_does_not_read() -> None:
    x, w = torch.randn(30, 64), torch.randn(32, 20)
    same(lambda x, w: x[:, ::2] @ w, x, w)
    same(lambda x, w: x[:1, :1].expand(30, 32) @ w, x, w)
    same(lambda x, w: x[:, 0].expand(5, 30) @ x, x, w)
    same(lambda x, w: (x @ w[:0].new_zeros(64, 0)).sum() + (x[:, :0] @ w[:0]).sum(), x, w)
    same(lambda x, w: x.bfloat16()[:, :32] @ w.bfloat16(), x, w)
    same(lambda x, w: torch.addmm(x[:, :20], x[:, :32], w, beta=0.5, alpha=2), x, w)
    same(lambda x, w: torch.addmm(x[:, :20], x[:, :32], w, beta=0), x * float("nan"), w)


@pytest.mark.parametrize("factor", ["alpha", "beta"])
def test_nothing_counts_that_is_multiplied_by_zero(factor: str) -> None:
    x, nan = torch.ones(3, 3), torch.full((3, 3), float("nan"))
    operands = (x, nan, x) if factor == "alpha" else (nan, x, x)
    same(lambda *args: torch.addmm(*args, **{factor: 0}).relu(), *operands)
    varied = compiled(lambda a, b, c, by: torch.addmm(a, b, c, **{factor: by}).relu())
    for by in (1.0, 0.5, 0.0):
        expected = torch.addmm(*operands, **{factor: by}).relu()
        torch.testing.assert_close(varied(*operands, by), expected, equal_nan=True)


def test_what_is_added_joins_the_loop_that_reads_it() -> None:
    linear = torch.nn.Linear(64, 256).requires_grad_(False)
    same(lambda x: F.gelu(linear(x)), torch.randn(2, 9, 64))
    text = source(lambda x: F.gelu(linear(x)), torch.randn(2, 9, 64))
    assert text.count("static void kernel") == 1
    assert "*added" not in text
    same(lambda x: linear(x), torch.randn(2, 9, 64))
    same(
        lambda x: (linear(x).view(2, 9, 4, 64).transpose(1, 2) * 2, linear(x)),
        torch.randn(2, 9, 64),
    )


def test_gradients_of_products() -> None:
    a, b, c = (torch.randn(n, m, requires_grad=True) for n, m in ((9, 5), (5, 7), (1, 7)))
    same(lambda a, b, c: torch.addmm(c, a, b).tanh() @ b.t(), a, b, c)


def test_threads_are_as_many_after_a_call_as_before(two_threads: None) -> None:
    x = torch.randn(4, 4)

    def fn(x: Any, index: Any) -> Any:
        return (x @ x).index_select(0, index) @ x

    assert "dynacap_threads(1)" in source(fn, x, torch.tensor([3]))
    run = compiled(fn)
    torch.testing.assert_close(run(x, torch.tensor([3])), fn(x, torch.tensor([3])))
    assert torch.get_num_threads() == 2
    with pytest.raises(IndexError):
        run(x, torch.tensor([4]))
    assert torch.get_num_threads() == 2


def test_a_new_thread_uses_as_many_as_the_user_said(two_threads: None) -> None:
    """OpenMP would use what it was told of when the process began."""
    run, x = compiled(lambda x: (x @ x).sort()[0]), torch.randn(4, 4)
    run(x)
    torch.set_num_threads(3)

    def threads() -> int:
        run(x)
        return int(torch.get_num_threads())

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(threads).result() == 3


@pytest.fixture
def two_threads() -> Iterator[None]:
    """Torch may use two, for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
