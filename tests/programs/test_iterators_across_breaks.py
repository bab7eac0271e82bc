"""Iterators that were made elsewhere, or before a break, are read ahead and advanced afterwards."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import Scenario, call, check_same, program, scenario

X = torch.arange(6.0).reshape(2, 3)
COUNTS = {
    "range": range(4),
    "list": [1, 2, 3],
    "text": "abc",
    "dict": {"a": 1, "b": 2},
    "set": {1, 2},
}
MAKERS: dict[str, Any] = {
    "iter": iter,
    "reversed": lambda over: reversed(list(over)),
    "zip": lambda over: zip(over, over),
    "strict zip": lambda over: zip(over, over, strict=True),
    "enumerate": lambda over: enumerate(over, 3),
    "enumerate zip": lambda over: enumerate(zip(over, enumerate(over))),
    "map": lambda over: map(str, over),
    "filter": lambda over: filter(lambda item: item != 2, over),
    "items": lambda over: iter({item: X for item in over}.items()),
    "values": lambda over: reversed({item: X for item in over}.values()),
}


@dynacap.disable
def told(text: Any) -> None:
    print("told", text)


@pytest.mark.parametrize("over", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_break_in_the_body_is_all(make: Any, over: Any) -> None:
    """Each round breaks where its body does, and nowhere else."""

    def function(x: Tensor, over: Any) -> Any:
        seen = []
        for item in make(over):
            x = x + 1
            told(len(seen))
            seen.append(item)
        return x * 2, seen

    outcome = check_same(function, (X, over), (X + 1, over))
    assert set(outcome.reasons) == {"disabled: told is marked with disable"}
    assert outcome.counters["breaks"] <= len(list(make(over)))


@pytest.mark.parametrize("over", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("taken", [0, 1, 2, 9])
def test_iterators_from_outside(make: Any, over: Any, taken: int) -> None:
    """They go on where they stood, and stand where they should."""

    def build() -> Scenario:
        iterators = [make(over) for _ in range(3)]

        def function(x: Tensor, iterator: Any) -> Any:
            found = [next(iterator, "end") for _ in range(taken)]
            return x + len(found), found

        return Scenario(
            function,
            [call(X, iterators[0]), call(X, iterators[0]), call(X, iterators[1])],
            after=lambda index, result: list(iterators[(0, 2, 1)[index]]),
        )

    dynacap.testing.check_scenario(build, breaks=0)


@program((X, [X, X + 1, X + 2]), (X, [X]), (X, []), breaks=0)
def test_shared_by_two(x: Tensor, items: list[Tensor]) -> Any:
    once = iter(items)
    return x + 1, [a + b for a, b in zip(once, once, strict=False)], list(once)


@scenario(breaks=0)
def test_two_that_share_one_from_outside() -> Scenario:
    def both(x: Tensor, pairs: Any, origin: Iterator[int]) -> Any:
        first = next(pairs, None)
        skipped = next(origin, None)
        return x + 1, first, skipped, next(pairs, None)

    def arguments(n: int) -> Any:
        origin = iter(range(n))
        return call(X, enumerate(origin), origin)

    calls = [arguments(n) for n in (6, 6, 2, 1, 0)]
    after = [made.args[1:] for made in calls]
    return Scenario(both, calls, after=lambda i, result: [list(each) for each in after[i]])


@scenario(breaks=0)
def test_list_that_changes_under_its_iterator() -> Scenario:
    def grow(x: Tensor, items: list[Any], iterator: Iterator[Any]) -> Any:
        first = next(iterator, None)
        items.append(first)
        items.insert(0, x)
        return x + 1, next(iterator, "end"), next(iterator, "end")

    calls = []
    for start in (0, 0, 2, 3, 1):
        items = [1, 2, 3]
        iterator = iter(items)
        for _ in range(start):
            next(iterator)
        calls.append(call(X, items, iterator))
    calls.append(call(X, [1, 2, 3], iter([4, 5])))  # another list
    return Scenario(grow, calls, after=lambda i, result: list(calls[i].args[2]))


@scenario(breaks=None)
def test_dict_that_changes_under_its_iterator() -> Scenario:
    def change(x: Tensor, mapping: dict[str, Any], iterator: Iterator[Any]) -> Any:
        mapping["a"] = x + 1
        first = next(iterator, None)
        mapping["new"] = 1
        try:
            return x, first, next(iterator)
        except RuntimeError as error:
            return str(error)

    calls = []
    for kind in ("keys", "values", "items") * 2:
        mapping = {"a": X, "b": 2}
        calls.append(call(X, mapping, iter(getattr(mapping, kind)())))
    return Scenario(change, calls)


@scenario(breaks=0)
def test_one_iterator_met_twice() -> Scenario:
    def two(x: Tensor, a: Iterator[int], b: Iterator[int]) -> Any:
        return x + next(a, 7), next(b, 7), next(a, 7)

    same = iter(range(10))
    calls = [call(X, iter(range(5)), iter(range(5))), call(X, same, same), call(X, same, same)]
    return Scenario(two, calls, after=lambda i, result: [list(calls[0].args[1]), next(same)])


@scenario(breaks=None)
def test_with_methods_of_the_users_own() -> Scenario:
    class Odd(list[Any]):
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: Any) -> Any:
            return "asked"

    def two(x: Tensor, iterator: Iterator[Any]) -> Any:
        return x + 1, next(iterator, None), next(iterator, None)

    calls = [call(X, iter(Odd([1, 2, 3]))), call(X, iter(Odd([1]))), call(X, iter([1, 2, 3]))]
    return Scenario(two, calls, after=lambda i, result: list(calls[i].args[1]))
