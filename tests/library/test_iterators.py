"""Built-in functions that iterate, itertools, and iterators that live on after the capture."""

import functools
import gc
import itertools
import operator
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


@program((X,))
def test_builtins(x: Tensor) -> Any:
    words = ["b", "a", "c"]
    return (
        sum([1, 2.5]),
        sum([x, x], x),
        sum(([1], [2]), []),
        min(3, 1),
        max(words),
        min([], default=0),
        max(words, key=ord),
        min(2.0, 1),
        any([0, x.dim()]),
        all([]),
        any(w == "c" for w in words),
        list(map(operator.add, [1, 2], (10, 20, 30))),
        list(filter(None, [0, 1, "", "a"])),
        list(filter(str.isalpha, ["1", "b"])),
        list(zip("ab", [1, 2, 3], strict=False)),
        list(enumerate("xy", 5)),
        list(reversed([1, 2])),
        list(reversed("ab")),
        sorted(map(str.upper, words)),
        functools.reduce(operator.mul, [1, 2, 3, 4]),
        functools.reduce(operator.add, [], 5),
        x + 1,
    )


def caught(function: Any, *args: Any, **kwargs: Any) -> str:
    try:
        return repr(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@program((X,))
def test_errors(x: Tensor) -> Any:
    return (
        caught(max, []),
        caught(min, 1, 2, default=0),
        caught(next, iter([])),
        caught(iter, 5),
        caught(next, 5),
        caught(len, 5),
        caught(reversed, {1}),
        caught(sum, ["a"]),
        caught(sum, ["a"], ""),
        caught(lambda: list(zip([1], [], strict=True))),
        caught(lambda: list(zip([], [1], strict=True))),
        caught(functools.reduce, operator.add, []),
        caught(lambda: max(1, "a")),  # type: ignore[type-var]
        x + 1,
    )


@program((X,))
def test_itertools(x: Tensor) -> Any:
    return (
        list(itertools.chain([1], "ab", (x,))),
        list(itertools.chain.from_iterable([[1], [2, 3]])),
        list(itertools.islice(itertools.count(3, 2), 4)),
        list(itertools.islice("abcdef", 1, None, 2)),
        list(itertools.islice(itertools.cycle("ab"), 5)),
        list(itertools.repeat(7, 2)),
        list(itertools.zip_longest("abc", [1], fillvalue="-")),
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.accumulate([1, 2, 3], operator.mul, initial=10)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.filterfalse(None, [0, 1, 2])),
        list(itertools.takewhile(lambda n: n < 3, [1, 2, 3, 1])),
        list(itertools.dropwhile(lambda n: n < 3, [1, 2, 3, 1])),
        list(itertools.compress("abc", [1, 0, 1])),
        list(itertools.pairwise("abc")),
        list(itertools.product("ab", [1, 2])),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        list(itertools.combinations("abc", 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
        x + 1,
    )


@program((X,))
def test_groupby_and_tee(x: Tensor) -> Any:
    groups = [(key, list(group)) for key, group in itertools.groupby("aabbba")]
    late = [(key, group) for key, group in itertools.groupby([1, 1, 2])]
    by = {key: len(list(g)) for key, g in itertools.groupby(["x", "yy", "z"], key=len)}
    left, right = itertools.tee([1, 2, 3])
    first = next(left), next(left), next(right)
    return groups, [list(group) for _, group in late], by, first, list(left), list(right), x + 1


@program((X,))
def test_iterator_methods(x: Tensor) -> Any:
    it = iter([1, 2, 3])
    m = map(str, it)
    return it.__next__(), next(m), iter(m) is m, list(it), next(m, "end"), type(it).__name__, x + 1


@program((X,))
def test_callable_iterator(x: Tensor) -> Any:
    left = [3, 2, 1, 0, 5]
    it = iter(lambda: left.pop(0), 0)
    return list(it), next(it, "end"), left, x + 1


@program((X,))
def test_walking_what_changes(x: Tensor) -> Any:
    work, seen = [1], []
    for n in work:
        seen.append(n)
        if n < 4:
            work.append(n + 1)
    backwards = []
    for n in reversed(work):
        backwards.append(n)
        if len(work) > 2:
            work.pop()
    return seen, backwards, x + len(seen)


@program((X,))
def test_zip_after_its_end(x: Tensor) -> Any:
    a, b = iter([1, 2, 3]), iter("p")
    z = zip(a, b)  # noqa: B905
    return list(z), next(z, None), list(a), x + 1


@program((X,))
def test_stop_iteration_in_a_mapped_function(x: Tensor) -> Any:
    def stop_at_two(n: int) -> int:
        if n == 2:
            raise StopIteration
        return n

    m = map(stop_at_two, [1, 2, 3])
    return list(m), list(m), x + 1


def _returned(x: Tensor) -> dict[str, Iterator[Any]]:
    def take(it: Iterator[Any], n: int = 1) -> Iterator[Any]:
        for _ in range(n):
            next(it)
        return it

    data = [1, 2, 3, 4]
    return {
        "list": take(iter(data)),
        "reversed": take(reversed(data)),
        "tuple": take(iter((1, 2, 3))),
        "range": take(iter(range(5)), 2),
        "str": take(iter("abc")),
        "dict": take(iter({"a": 1, "b": 2}.items())),
        "map": take(map(str, data)),
        "filter": take(filter(None, data)),
        "zip": take(zip(data, "abcd", strict=True)),
        "enumerate": take(enumerate("abc", 2)),
        "chain": take(itertools.chain([1, 2], [3])),
        "count": itertools.count(5),
        "repeat": take(itertools.repeat("r", 3)),
        "cycle": take(itertools.cycle("ab"), 1),
        "cycle2": take(itertools.cycle("ab"), 3),
        "islice": take(itertools.islice(data, 1, None)),
        "longest": take(itertools.zip_longest("ab", "c")),
        "accumulate": take(itertools.accumulate(data), 2),
        "takewhile": take(itertools.takewhile(bool, data)),
        "dropwhile": take(itertools.dropwhile(bool, [1, 0, 2, 3])),
        "pairwise": take(itertools.pairwise(data)),
        "product": take(itertools.product("ab", "cd"), 2),
        "compress": take(itertools.compress("abc", [1, 1, 1])),
        "gone": take(iter([5])),
        "starmap": itertools.starmap(pow, [(2, 3)]),
        "reversed dict": take(reversed({"a": 1, "b": 2})),
        "set": iter({4}),
        "combinations": take(itertools.combinations("abc", 2)),
    }


@program((X,))
def test_iterators_returned(x: Tensor) -> Any:
    return _returned(x), x + 1


def test_iterators_returned_go_on_as_they_would() -> None:
    def function(x: Tensor) -> Any:
        made = _returned(x)
        return x + 1, made

    expected, found = function(X)[1], dynacap.compile(function)(X)[1]
    for name, iterator in expected.items():
        assert type(found[name]) is type(iterator), name
        assert list(itertools.islice(found[name], 6)) == list(itertools.islice(iterator, 6)), name
        assert list(itertools.islice(found[name], 2)) == list(itertools.islice(iterator, 2)), name


@program((X,), breaks=None)
def test_an_ended_iterator_lets_go(x: Tensor) -> Any:
    class Dies(tuple[Any, ...]):
        def __del__(self) -> None:
            deaths.append(1)

    deaths: list[int] = []
    iterator = iter(Dies((1,)))
    seen = list(iterator)
    gc.collect()
    return seen, list(deaths), list(iterator), x + 1


@program((X,))
def test_an_iterator_that_its_own_function_exhausts(x: Tensor) -> Any:
    held: list[Any] = []

    def function() -> int:
        again = len(held) > 1
        held.append(None)
        if not again:
            list(held[0])
        return 2 if again else 1

    held.append(iter(function, 2))
    return next(held[0], "ended"), x + 1


@program((X,), breaks=None)
def test_a_loop_without_operations_is_left_to_python(x: Tensor) -> Any:
    y = x + 1
    total = 0
    while total < 50_000:
        total += 1
    return y * total


def taken(function: Any, *args: Any) -> Any:
    try:
        return list(itertools.islice(function(*args), 4))
    except (TypeError, ValueError) as error:
        return str(error)


@program((X,))
def test_operands_that_itertools_refuses(x: Tensor) -> Any:
    choices = [
        taken(choose, "abc", *size)
        for choose in (
            itertools.permutations,
            itertools.combinations,
            itertools.combinations_with_replacement,
        )
        for size in ((), (None,), ("s",), (-1,), (2,))
    ]
    counts = [taken(itertools.count, *given) for given in (("a",), (1, None), (1.5,), (1, 2, 3))]
    return choices, counts, taken(itertools.tee, [1], -1), x + 1


@program((X,), breaks=None)
def test_an_accumulation_of_none_across_a_break(x: Tensor) -> Any:
    iterator = itertools.accumulate([None, None, 3], lambda a, b: a is b)
    first = next(iterator)
    dynacap.graph_break()
    return first, list(iterator), x + 1


@program((X,), breaks=None)
def test_pairs_asked_for_by_what_they_are_made_of(x: Tensor) -> Any:
    count = 0

    def numbers() -> Iterator[Any]:
        nonlocal count
        while True:
            count += 1
            yield count

    class Asks:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            number = next(source)
            return next(pairs) if number == 2 else [number]

    source = numbers()
    pairs = itertools.pairwise(Asks())
    return [next(pairs), next(pairs)], x + 1


@program((X,), breaks=None)
def test_types_in_c_that_make_no_instances(x: Tensor) -> Any:
    kind: Any = type(functools.cmp_to_key(print))
    return taken(kind), x + 1


BATCHED: Any = getattr(itertools, "batched", None)  # from Python 3.12 on


@program((X,))
def test_batches(x: Tensor) -> Any:
    cases: list[Any] = [(("abcde", 2), {}), (([2, 1], 5), {}), (((), 1), {}), (("ab", 0), {})]
    cases += [((1, 2), {}), ((1, -1), {}), (("ab", "c"), {}), (("ab", 1 << 70), {})]
    return [caught(lambda: list(BATCHED(*args, **named))) for args, named in cases], x + 1


@program((X,), breaks=None)
def test_batches_across_a_break(x: Tensor) -> Any:
    def failing() -> Iterator[int]:
        yield from range(3)
        raise LookupError

    made = BATCHED and [BATCHED("abcde", 2), BATCHED("abcd", 3), BATCHED(failing(), 2)]
    first = [caught(next, each) for each in made or ()]
    dynacap.graph_break()
    rest = [caught(next, each) for each in made or () for _ in range(3)]
    return first, rest, [type(each).__name__ for each in made or ()], x + 1


@pytest.mark.parametrize(
    "make", [iter, reversed, enumerate, lambda d: zip(d, enumerate(d.items()))]
)
def test_a_dict_changes_behind_the_end_of_an_outside_iterator(make: Any) -> None:
    def whole(x: Tensor, d: dict[str, int], walk: Iterator[Any]) -> Any:
        found = [*walk]
        d["new"] = 1
        return x + 1, found, next(walk, "end")

    def first(x: Tensor, d: dict[str, int], walk: Iterator[Any]) -> Any:
        found = next(walk)
        d["new"] = 1
        return x + 1, found

    for function in (whole, first):
        results = []
        for run in (function, dynacap.compile(function, backend="eager")):
            d = {"a": 1, "b": 2}
            results.append((run(X, d, make(d))[1:], d))
        assert results[0] == results[1]
