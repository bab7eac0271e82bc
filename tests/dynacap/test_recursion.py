"""Recursion, deep and with breaks: as deep as eager Python goes, and at a bearable cost."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.hook import choose_hook
from dynacap.testing import program

X = torch.ones(2)
KEEPS_LIMIT = choose_hook().capabilities.keeps_recursion_limit


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


def fold(n: int, x: Tensor) -> Tensor:
    if n == 0:
        print("bottom")
        return x
    return fold(n - 1, x) + 1


def chatty(n: int, x: Tensor) -> Tensor:
    if n == 0:
        return x
    print(n)
    return chatty(n - 1, x * 0.5) + 1


def failing(n: int, x: Tensor) -> Tensor:
    print(n)
    if n == 0:
        raise LookupError("bottom")
    return failing(n - 1, x + 1) * 2


@program((300, X), breaks=None)
def test_break_at_the_bottom(n: int, x: Tensor) -> Tensor:
    return fold(n, x)


@program((80, X), breaks=None)
def test_break_at_each_level(n: int, x: Tensor) -> Tensor:
    return chatty(n, x)


@program((60, X), breaks=None)
def test_exception_through_all_levels(n: int, x: Tensor) -> Any:
    try:
        return failing(n, x)
    except LookupError as error:
        return x + 1, str(error)


@program((60, X), breaks=None)
def test_handler_in_the_midst_of_the_levels(n: int, x: Tensor) -> Any:
    def level(n: int, x: Tensor) -> Any:
        if n != 50:
            print(n)
            if n == 0:
                raise LookupError(str(x.shape))
            return level(n - 1, x) + 1
        try:
            return level(n - 1, x)
        except LookupError as error:
            print("caught", error)
            return x * 3

    return level(n, x)


@program((45, X), breaks=None)
def test_levels_below_a_handler(n: int, x: Tensor) -> Any:
    def level(n: int, x: Tensor) -> Tensor:
        print(n, type(sys.exc_info()[1]).__name__)
        if n == 0:
            raise  # noqa: PLE0704, what the outermost frame handles
        return level(n - 1, x) + 1

    try:
        try:
            raise KeyError("outer")
        except KeyError:
            return level(n, x)
    except KeyError as error:
        return x - 1, str(error)


@pytest.mark.parametrize("depth", [50, 900])
def test_through_the_compiled_name(depth: int) -> None:
    def through(n: int, x: Tensor) -> Tensor:
        return x if n <= 0 else compiled(n - 1, x) + 1

    compiled: Any = dynacap.compile(through)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, 3000))  # pytest has used up some of it
    try:
        assert torch.equal(compiled(depth, X), X + depth)
    finally:
        sys.setrecursionlimit(limit)


def test_endless_recursion_is_the_programs_own_error() -> None:
    def forever(x: Tensor) -> Any:
        return forever(x + 1)

    compiled = dynacap.compile(forever)
    for _ in range(2):
        with pytest.raises(RecursionError):
            compiled(X)
    assert torch.equal(dynacap.compile(lambda x: x + 1)(X), X + 1)


def test_frames_of_many_levels_are_captured_once() -> None:
    compiled = dynacap.compile(chatty)
    with dynacap.config.patch(recompile_limit=100, accumulated_recompile_limit=1000):
        compiled(150, X)
        first = dynacap.counters()["frames"]
        compiled(150, X)
    # Where the hook exchanges code, entries whose guards saw the code before are made again.
    again = 1 if choose_hook().capabilities.keeps_code else 2
    assert dynacap.counters()["frames"] <= first * again


def test_endless_recursion_with_breaks_ends_where_it_does_in_eager() -> None:
    depths: list[int] = []

    def forever(n: int, x: Tensor) -> Any:
        depths.append(n)
        breaks()
        return forever(n + 1, x + 1)

    def breaks() -> None:
        dynacap.graph_break()

    for function in (forever, dynacap.compile(forever)):
        with pytest.raises(RecursionError):
            function(0, X)
    eager = depths.index(0, 1) - 1
    if KEEPS_LIMIT:
        assert eager - 20 < depths[-1] < eager + 20


def endless(n: int) -> Any:
    return endless(n + 1)


def caught() -> str:
    try:
        return str(endless(0))
    except RecursionError as error:
        # Where frames of ours count, one of them may be the one too many, and the text says so.
        return str(error) if KEEPS_LIMIT else type(error).__name__


@program((X,), breaks=None)
def test_endless_recursion_reaches_its_handler_in_a_frame_that_goes_on(x: Tensor) -> Any:
    print("from here on in pieces")
    return caught(), caught(), x + 1


def in_except(log: list[Any]) -> None:
    log.append(0)
    try:
        raise KeyError
    except KeyError:
        in_except(log)


def after_except(log: list[Any]) -> None:
    log.append(0)
    try:
        raise KeyError
    except KeyError:
        pass
    after_except(log)


def in_both(log: list[Any]) -> None:
    log.append(0)
    try:
        in_both(log)
    except RecursionError:
        in_both(log)


def with_few_frames_left(run: Any, count: int) -> Any:
    """What a recursion does when so many more frames are allowed."""
    log: list[Any] = []
    limit, depth = sys.getrecursionlimit(), 1
    while True:
        try:
            sys.setrecursionlimit(depth)
            break
        except RecursionError:
            depth += 1
    sys.setrecursionlimit(depth + count)
    try:
        run(log)
    except RecursionError as error:
        log.append(str(error))
    finally:
        sys.setrecursionlimit(limit)
    return log


@pytest.mark.skipif(not KEEPS_LIMIT, reason="frames of ours count")
@pytest.mark.parametrize(("run", "left"), [(in_except, 5), (after_except, 40), (in_both, 9)])
def test_a_limit_set_while_captured_code_runs(run: Any, left: int) -> None:
    for _ in range(20):  # CPython goes one frame further once it has adapted the code
        expected = with_few_frames_left(run, left)
    everything = dynacap.compile(with_few_frames_left, backend="eager")
    assert [everything(run, left) for _ in range(3)] == [expected] * 3
    assert with_few_frames_left(dynacap.compile(run, backend="eager"), left) == expected


def test_a_limit_that_leaves_few_frames_meets_the_programs_handlers() -> None:
    before = sys.getrecursionlimit()
    run = dynacap.compile(with_few_frames_left, backend="eager")
    for _ in range(3):
        assert "recursion" in run(in_except, 10)[-1]
        assert sys.getrecursionlimit() == before


def looks(log: list[Any]) -> None:
    sys._getframe()
    log.append(0)
    looks(log)


@pytest.mark.skipif(not KEEPS_LIMIT, reason="frames of ours count")
def test_frames_that_look_at_themselves_count_once() -> None:
    expected: list[Any] = []
    with pytest.raises(RecursionError):
        looks(expected)
    for _ in range(3):
        log: list[Any] = []
        with pytest.raises(RecursionError):
            dynacap.compile(looks, backend="eager")(log)
        assert abs(len(log) - len(expected)) <= 1
