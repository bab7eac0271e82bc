"""Indices after a change are checked before it: nothing breaks, and errors come as in eager."""

from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import check_same

pytestmark = pytest.mark.torch

ONES = torch.ones(2, 3)


class Cache:
    """What a model with a cache of fixed length keeps."""

    def __init__(self) -> None:
        self.keys = torch.zeros(4, 3)
        self.length = torch.tensor(1)
        self.calls = 0


USES = {
    "index_copy_": lambda cache, at: cache.keys.index_copy_(0, at, ONES),
    "index_add_": lambda cache, at: cache.keys.index_add_(0, at, ONES),
    "index_select": lambda cache, at: cache.keys.index_select(0, at),
    "gather": lambda cache, at: cache.keys.gather(-2, at[:, None]),
    "scatter_": lambda cache, at: cache.keys.scatter_(0, at[:, None], 2.0),
    "scatter_add_": lambda cache, at: cache.keys.scatter_add_(0, at[:, None], ONES),
    "item": lambda cache, at: cache.keys[at],
    "second item": lambda cache, at: cache.keys[1:, at],
    "two indices": lambda cache, at: cache.keys[at, at - 1],
    "store": lambda cache, at: cache.keys.__setitem__(at, ONES),
    "embedding": lambda cache, at: torch.nn.functional.embedding(at, cache.keys),
}
AHEAD = pytest.mark.parametrize("ahead", [0, 1, 2, 5, -3])


def step(cache: Cache, ahead: Tensor, use: Any) -> Any:
    """One call: a change, and then an index that may be out of range."""
    at = torch.arange(2) + cache.length + ahead
    cache.calls += 1
    cache.length.add_(2)
    try:
        found = use(cache, at)
    finally:
        cache.calls += 10
    return found, cache.keys * 2


@AHEAD
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_like_eager(use: Any, ahead: int) -> None:
    check_same(step, (Cache(), torch.tensor(0), use), (Cache(), torch.tensor(ahead), use))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_one_graph(use: Any) -> None:
    cache, plain = Cache(), Cache()
    compiled = dynacap.compile(step, fullgraph=True)
    for _ in range(2):
        cache.length.fill_(1)
        plain.length.fill_(1)
        assert str(compiled(cache, torch.tensor(0), use)) == str(step(plain, torch.tensor(0), use))
    assert (cache.calls, cache.length) == (plain.calls, plain.length)


def _copied(x: Tensor, at: Tensor, change: Any) -> Any:
    try:
        x.add_(1)
        index = change(x, at)
        return x.index_copy_(0, index, ONES), index
    except IndexError as error:
        return x, str(error)


CHANGES = {
    "index written before": lambda x, at: at.add_(1),
    "view written before": lambda x, at: (at[:1].add_(3), at)[1],
    "computed, then written": lambda x, at: (at + 1).add_(1),
    "read before it is written": lambda x, at: (at + 1, at.add_(9))[0],
    "of what was written": lambda x, at: at + x[0, 0].long(),
    "view of it before the write": lambda x, at: (at.view(2), at.mul_(2))[0],
    "two of the same": lambda x, at: (x.index_select(0, at + 1), at + 1)[1],
    "drawn": lambda x, at: at + torch.randint(0, 3, ()),
}


@pytest.mark.parametrize("start", [0, 1, 2, 5])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_the_index_is_made_of_is_written(change: Any, start: int) -> None:
    good = (torch.zeros(4, 3), torch.tensor([0, 1]), change)
    check_same(_copied, good, (torch.zeros(4, 3), torch.tensor([0, 1]) + start, change))


UNCHECKED = {  # calls whose indices are not looked at before
    "put_": lambda cache, at: cache.keys.put_(at + 8, ONES[0, :2], accumulate=True),
    "scatter_reduce_": lambda cache, at: cache.keys.scatter_reduce_(0, at[:, None], ONES, "sum"),
    "index_reduce_": lambda cache, at: cache.keys.index_reduce_(0, at, ONES + 1, "mean"),
    "index_put_": lambda cache, at: cache.keys.index_put_((at,), ONES, accumulate=True),
}


@pytest.mark.parametrize("use", [USES["index_add_"], USES["store"], *UNCHECKED.values()])
def test_the_change_itself_raises_midway(use: Any) -> None:
    """What eager has written by then is written once."""

    def function(cache: Cache, at: Tensor) -> Any:
        return use(cache, at)

    at = torch.tensor([0, 1])
    check_same(function, (Cache(), at), (Cache(), at + 3), (Cache(), at - 7))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "native"])
def test_by_backends(backend: str) -> None:
    compiled = dynacap.compile(step, backend=backend)
    cache, plain, use = Cache(), Cache(), USES["index_copy_"]
    for ahead in (0, 0, -2, 0):
        for each, function in ((cache, compiled), (plain, step)):
            try:
                found = function(each, torch.tensor(ahead), use)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if each is cache:
                kept = found
        assert str(kept) == str(found)
        assert str(vars(cache)) == str(vars(plain))


def _grown(cache: Cache, extra: int) -> Cache:
    cache.keys = torch.zeros(4 + extra, 3)
    return cache


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_sizes_that_vary(use: Any) -> None:
    compiled = dynacap.compile(step)
    for extra, ahead in ((0, 0), (1, 1), (2, 2), (3, 3), (3, 9), (4, 4), (5, -3)):
        cache, plain = _grown(Cache(), extra), _grown(Cache(), extra)
        found = [_told(compiled, cache, ahead, use), _told(step, plain, ahead, use)]
        assert found[0] == found[1]
        assert str(vars(cache)) == str(vars(plain))


def _told(function: Any, cache: Cache, ahead: int, use: Any) -> str:
    try:
        return str(function(cache, torch.tensor(ahead), use))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_sizes_that_vary_in_one_graph() -> None:
    compiled = dynacap.compile(step, fullgraph=True)
    for extra in range(4):
        compiled(_grown(Cache(), extra), torch.tensor(extra), USES["store"])


@torch.library.custom_op("dynacap_tests::positive", mutates_args=())
def positive(x: Tensor) -> Tensor:
    if x.min() < 0:
        raise ValueError("negative")
    return x.sqrt()


@positive.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


def test_an_operator_of_the_users() -> None:
    """Nothing is known of it but that it may raise."""

    def function(x: Tensor) -> Any:
        return positive(x) + 1

    def late(x: Tensor, log: list[int]) -> Any:
        log.append(1)
        x.add_(1)
        return positive(x), log

    check_same(function, (torch.ones(2),), (torch.zeros(2),), graphs=1, breaks=0, backward=False)
    check_same(function, (torch.ones(2),), (-torch.ones(2),), backward=False)
    check_same(late, (torch.ones(2), []), (-2 * torch.ones(2), []), breaks=1, backward=False)
