"""Functions under ``functools.lru_cache``: hits are captured, and counted as eager counts them."""

import functools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap
from dynacap.guards import caches
from dynacap.testing import Scenario, call, check_scenario, scenario

X = torch.arange(6.0).reshape(2, 3)


def _with(cache: Any, runs: list[Any], use: Any, *args: tuple[Any, ...]) -> Scenario:
    """Calls of ``use``, after each of which the cache and what it ran are looked at."""
    calls = [call(X.clone(), *each) for each in args]
    return Scenario(use, calls, after=lambda i, r: (list(runs), cache.cache_info()))


@pytest.mark.parametrize("options", [{}, {"maxsize": None}, {"maxsize": 2}, {"typed": True}])
@pytest.mark.parametrize("way", ["alone", "keyword", "twice", "tuple", "dtype", "none"])
def test_hits_are_captured(options: dict[str, Any], way: str) -> None:
    def build() -> Scenario:
        runs: list[Any] = []

        @functools.lru_cache(**options)
        def table(n: Any, by: Any = 1) -> Any:
            runs.append(n)
            return torch.full((3,), float(len(runs))) if n != "none" else None

        def use(x: Tensor, n: Any) -> Any:
            x = x * 2
            if way == "keyword":
                return x + table(n, by=3) + table(by=2, n=n)
            if way == "twice":
                return x + table(n) + table(1) + table(n)
            if way == "tuple":
                return x + table((n, ("a", 1.5)), n)
            if way == "dtype":
                return x + table(torch.float32, x.shape)
            if way == "none":
                return x, table("none") is None
            return x + table(n)

        return _with(table, runs, use, *[("k",)] * 4, ("j",), ("j",), ("k",), ("j",), ("k",))

    check_scenario(build)


def test_what_is_remembered_leaves_the_graph_whole() -> None:
    @functools.lru_cache(maxsize=4)
    def table(n: int) -> Tensor:
        return torch.ones(3) * n

    def use(x: Tensor) -> Tensor:
        return x * table(2) + table(3)

    compiled = dynacap.compile(use)
    for _ in range(3):
        assert torch.equal(compiled(X[0]), X[0] * 2 + 3)
    before = dynacap.counters()
    assert torch.equal(compiled(X[0]), X[0] * 2 + 3)
    assert dynacap.counters() == before
    assert (table.cache_info().misses, table.cache_info().hits) == (2, 6)
    told = dynacap.explain(dynacap.compile(use))(X[0])
    assert (told.graph_count, told.graph_break_count) == (1, 0)


@scenario(breaks=None)
def test_a_result_that_is_gone_is_made_again() -> Scenario:
    runs: list[int] = []

    @functools.lru_cache(maxsize=1)
    def table(n: int) -> Tensor:
        runs.append(n)
        return torch.full((3,), float(len(runs)))

    def before(i: int) -> None:
        if i == 4:
            table.cache_clear()
        if i == 6:
            table(99)

    def use(x: Tensor) -> Tensor:
        return x + table(1)

    made = _with(table, runs, use, *[()] * 8)
    made.before = before
    return made


@scenario(breaks=None)
def test_the_order_of_use_decides_what_is_forgotten() -> Scenario:
    runs: list[str] = []

    @functools.lru_cache(maxsize=2)
    def table(n: str) -> int:
        runs.append(n)
        return len(runs)

    def use(x: Tensor, *names: str) -> Any:
        return [x + table(name) for name in names]

    return _with(table, runs, use, *["ab", "ab", "ba", "ab", "abc", "ab", "bca", "ba", "ab", "ba"])


@scenario(breaks=None)
def test_a_result_is_one_object() -> Scenario:
    @functools.cache
    def made(n: str) -> list[Any]:
        return [n]

    def use(x: Tensor) -> Any:
        found = made("k")
        found.append(len(found))
        return x + len(found), found, made("k") is found

    return _with(made, [], use, *[()] * 4)


@scenario(breaks=None)
def test_methods_are_cached_by_their_object() -> Scenario:
    class Layer(nn.Module):
        runs = 0

        @functools.lru_cache(maxsize=None)  # noqa: B019
        def table(self, n: int) -> Tensor:
            self.runs += 1
            return torch.full((3,), float(n))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.table(3) * self.runs

    layers = [Layer(), Layer()]

    def use(x: Tensor, which: int) -> Tensor:
        return layers[which](x)

    return _with(Layer.table, [], use, *[(i,) for i in (0, 0, 0, 1, 1, 0, 1)])


@scenario(breaks=None)
def test_keys_with_an_equality_of_their_own_are_left_to_python() -> Scenario:
    asked: list[str] = []

    class Key:
        def __init__(self, name: str) -> None:
            self.name = name

        def __hash__(self) -> int:
            asked.append("hash")
            return hash(self.name)

        def __eq__(self, other: object) -> bool:
            asked.append("eq")
            return isinstance(other, Key) and other.name == self.name

    @functools.cache
    def table(key: Any, other: Any = 0) -> int:
        return len(asked)

    def use(x: Tensor, key: Any) -> Tensor:
        return x + table(key, 1) + table("k", 1)

    return _with(table, asked, use, *[(Key("k"),), (Key("k"),), ("k",), ("k",), (Key("j"),)])


@scenario(breaks=None)
def test_nan_is_a_key_of_its_own() -> Scenario:
    @functools.cache
    def table(n: float) -> float:
        return 1.0

    def use(x: Tensor, n: float) -> Tensor:
        return x + table(n)

    return _with(table, [], use, *[(float("nan"),)] * 3, (0.0,), (-0.0,), (0,), (False,), (1,))


@scenario(breaks=None)
def test_errors_are_not_remembered() -> Scenario:
    runs: list[str] = []

    @functools.cache
    def table(n: Any) -> int:
        runs.append(n)
        raise ValueError(n)

    def use(x: Tensor, n: Any) -> Any:
        try:
            return x + table(n)
        except (ValueError, TypeError) as error:
            return x * 2, repr(error)

    return _with(table, runs, use, ("a",), ("a",), ([],), ([],))


@scenario(breaks=None)
def test_info_counts_what_came_before_it() -> Scenario:
    @functools.cache
    def table(n: int) -> int:
        return n

    def use(x: Tensor) -> Any:
        x = x + table(1) + table(1)
        before = table.cache_info()
        x = x * table(1)
        if before.hits > 8:
            table.cache_clear()
        return x, before, table.cache_info(), table.cache_parameters()

    return _with(table, [], use, *[()] * 6)


def test_many_keys_do_not_use_up_the_entries() -> None:
    @functools.cache
    def table(name: str) -> int:
        return len(name)

    @dynacap.compile
    def use(x: Tensor, name: str) -> Tensor:
        return x + table(name)

    before = dynacap.counters()
    for count in range(40):
        assert torch.equal(use(X, "n" * count), X + count)
    now = dynacap.counters()
    assert now["graphs"] - before["graphs"] <= dynacap.config.recompile_limit
    assert now["skipped"] - before["skipped"] <= dynacap.config.recompile_limit // 2 + 1


def test_a_large_cache_is_not_searched() -> None:
    @functools.cache
    def table(n: int) -> int:
        return n

    for n in range(caches.MOST_SEARCHED + 1):
        table(n)
    assert caches.look_up(table, 3) is caches.UNTOLD
