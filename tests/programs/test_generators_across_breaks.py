"""Generators from outside, or from before a break, go on inside from where they stand."""

from __future__ import annotations

import inspect
import itertools
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.hook import generator_access
from dynacap.testing import Scenario, call, check_same, check_scenario, program

X = torch.arange(6.0).reshape(2, 3)
Gen = Generator[Any, Any, Any]
reads_frames = generator_access() is not None


@dynacap.disable
def told(*texts: Any) -> None:
    print("told", *texts)


def counting(x: Tensor, n: int) -> Gen:
    for i in range(n):
        x = x + 1
        yield x * i
    return "done"


def guarded(x: Tensor, n: int, log: list[Any]) -> Gen:
    try:
        for i in range(n):
            got = yield x + i
            log.append(got)
    except ValueError as error:
        log.append(repr(error))
        yield x - 1
    finally:
        log.append("finally")


def delegating(x: Tensor, n: int) -> Gen:
    result = yield from counting(x, n)
    yield result, x
    yield from [x, x + 1]


def nested(x: Tensor, n: int) -> Gen:
    for outer in counting(x, n):
        for inner in (outer + k for k in range(2)):
            yield inner


def closed_over(x: Tensor, n: int, *, by: float = 2.0) -> Gen:
    total = x

    def add(y: Tensor) -> None:
        nonlocal total
        total = total + y * by

    while n:
        add(x)
        n -= 1
        yield total


def in_a_call(x: Tensor, n: int) -> Gen:
    for i in range(n):
        x = torch.add(x, (yield x) or 1, alpha=(yield i) or 2)
    yield x


def endless(x: Tensor, n: int) -> Gen:
    for i in itertools.count():
        yield x + i


MAKERS: dict[str, Callable[[Tensor, int], Gen]] = {
    "counting": counting,
    "guarded": lambda x, n: guarded(x, n, []),
    "delegating": delegating,
    "nested": nested,
    "closed over": closed_over,
    "in a call": in_a_call,
    "genexpr": lambda x, n: (x + i for i in range(n)),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_break_in_the_body_is_all(make: Callable[[Tensor, int], Gen]) -> None:
    def function(x: Tensor, n: int) -> Any:
        seen = []
        for item in make(x, n):
            told("a round")
            seen.append(item)
        return x * 2, seen

    outcome = check_same(function, (X, 4), (X + 1, 4), (X, 2))
    assert not reads_frames or set(outcome.reasons) == {"disabled: told is marked with disable"}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("taken", [0, 1, 2, 9])
@pytest.mark.parametrize("before", [0, 1, 3])
def test_generators_from_outside(
    make: Callable[[Tensor, int], Gen], taken: int, before: int
) -> None:
    """They go on where they stood, and stand where they should."""

    def build() -> Scenario:
        made = [make(X, 4) for _ in range(3)]
        for gen in made:
            for _ in range(before):
                next(gen, None)

        def function(x: Tensor, gen: Gen) -> Any:
            found = [next(gen, "end") for _ in range(taken)]
            return x + len(found), found

        def look(index: int, result: Any) -> Any:
            gen = made[(0, 2, 1)[index]]
            return inspect.getgeneratorstate(gen), gen.gi_frame and gen.gi_frame.f_lineno, [*gen]

        calls = [call(X, made[0]), call(X, made[0]), call(X, made[1])]
        return Scenario(function, calls, after=look)

    check_scenario(build, breaks=0 if reads_frames else None)


def test_what_is_sent_thrown_and_closed() -> None:
    def build() -> Scenario:
        logs: list[list[Any]] = [[] for _ in range(6)]
        made = [guarded(X, 5, log) for log in logs]

        def function(x: Tensor, gen: Gen, how: str) -> Any:
            first = next(gen)
            if how == "send":
                return gen.send(x), gen.send("text")
            if how == "throw":
                return first, gen.throw(ValueError("bad"))
            if how == "escape":
                try:
                    gen.throw(KeyError(3))
                except KeyError as error:
                    return first, repr(error), next(gen, "end")
            gen.close()
            return first, next(gen, "end")

        ways = ["send", "throw", "escape", "close", "send", "throw"]
        calls = [call(X, gen, how) for gen, how in zip(made, ways, strict=True)]

        def look(index: int, result: Any) -> Any:
            rest = list(made[index])
            return rest, logs[index]

        return Scenario(function, calls, after=look)

    check_scenario(build)


def test_one_that_waits_in_a_handler_is_advanced_as_it_is() -> None:
    def handling(x: Tensor) -> Gen:
        try:
            raise ValueError("in")
        except ValueError as error:
            yield x, repr(error)
            yield repr(error.__context__)
        yield x + 1

    def build() -> Scenario:
        made = [handling(X) for _ in range(2)]
        for gen in made:
            next(gen)

        def function(x: Tensor, gen: Gen) -> Any:
            return x + 1, next(gen), next(gen)

        return Scenario(function, [call(X, gen) for gen in made], after=lambda i, r: [*made[i]])

    check_scenario(build)


def test_the_same_object_stays() -> None:
    """Who holds the generator elsewhere sees it go on."""

    def build() -> Scenario:
        kept: dict[str, Any] = {}

        def function(x: Tensor, n: int) -> Any:
            gen = kept["gen"] = counting(x, n)
            first = next(gen)
            told("between")
            second = next(gen)
            return x + 1, first, second, kept["gen"] is gen, gen.gi_code is counting.__code__

        def look(index: int, result: Any) -> Any:
            return [*kept["gen"]]

        return Scenario(function, [call(X, 4), call(X, 4)], after=look)

    check_scenario(build)


@program((X,), breaks=None)
def test_a_context_manager_around_a_break(x: Tensor) -> Any:
    log = []

    @contextmanager
    def managed(y: Tensor) -> Iterator[Tensor]:
        log.append("in")
        try:
            yield y + 1
        finally:
            log.append("out")

    with managed(x) as y:
        told("inside")
        z = y * 2
    return z, log


def test_what_varies_all_the_time_is_advanced_as_it_is() -> None:
    """A generator that computes with text of its own is not captured again and again."""

    def words(n: int) -> Gen:
        text = ""
        for i in range(n):
            text = f"{text}{i}"
            yield text, len(text)

    def function(x: Tensor, n: int) -> Any:
        seen = []
        for text, size in words(n):
            x = x + 1
            told(text)
            seen.append((text, x * 2))
        return x, seen

    check_same(function, (X, 25), (X, 12))


@program((X, 3), (X, 3), breaks=None)
def test_two_that_feed_each_other(x: Tensor, n: int) -> Any:
    def doubled(source: Iterator[Tensor]) -> Gen:
        for item in source:
            yield item * 2

    source = endless(x, 0)
    pipe = doubled(doubled(source))
    found = []
    for _ in range(n):
        found.append(next(pipe))
        told(len(found))
    return found, next(source), next(pipe)


def test_one_that_is_only_handed_on_is_not_looked_at() -> None:
    """Where it stands matters to no one: one capture is enough."""

    def function(x: Tensor, gen: Gen) -> Any:
        kept = [gen]
        y = x + 1
        told("handed on")
        return y * 2, kept

    def build() -> Scenario:
        gen = counting(X, 9)
        calls = [call(X, gen) for _ in range(3)]
        return Scenario(function, calls, after=lambda index, result: next(gen))

    assert check_scenario(build).counters["recompiles"] == 0


@program((X,), breaks=None)
def test_throw_of_more_than_an_exception_warns_as_this_python_does(x: Tensor) -> Any:
    gen: Any = counting(x, 2)
    next(gen)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            gen.throw(ValueError, ValueError("thrown"))
        except ValueError as error:
            return str(error), [str(each.message) for each in told], x + 1


def ending(x: Tensor) -> Gen:
    try:
        yield x
    except GeneratorExit:
        return x + 1


@program((X,), breaks=0)
def test_what_close_gives(x: Tensor) -> Any:
    gen, unused = ending(x), ending(x)
    return next(gen), gen.close(), gen.close(), unused.close()  # type: ignore[func-returns-value]
