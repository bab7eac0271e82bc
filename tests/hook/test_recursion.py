"""Deep recursion works as in eager Python, and ends where it ends there."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dynacap.hook import Hook

Function = Callable[..., Any]


def count(n: int) -> int:
    return 0 if n == 0 else 1 + count(n - 1)


def through_map(n: int) -> int:
    return 0 if n == 0 else 1 + next(map(through_map, [n - 1]))


def in_thread(work: Callable[[], Any], stack: int = 64) -> Any:
    """The result of ``work``, run with a stack of so many megabytes and no frames below it."""
    results: list[Any] = []
    before = threading.stack_size(stack << 20)
    try:
        thread = threading.Thread(target=lambda: results.append(work()))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return results[0]


@contextmanager
def limit(frames: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class Driver:
    """Replaces each frame of ``count`` by frames of its own which then run the user's code."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.replaced = 0

    def __call__(self, function: Any) -> Function | None:
        return self.instead if function is count else None

    def instead(self, function: Function, n: int) -> int:
        self.replaced += 1
        return self.between(n)

    def between(self, n: int) -> int:
        token = self.hook.enter(self)
        try:
            return step(n)
        finally:
            self.hook.exit(token)


def step(n: int) -> int:
    return 0 if n == 0 else 1 + count(n - 1)


def deepest(call: Function, most: int = 3000) -> int:
    """The greatest argument that raises no RecursionError, by bisection."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        try:
            call(middle)
        except RecursionError:
            high = middle - 1
        else:
            low = middle
    return low


def test_default_limit(hook: Hook) -> None:
    def work() -> Any:
        with hook.active(lambda function: None):
            return count(900)

    assert in_thread(work) == 900


def test_raised_limit(hook: Hook) -> None:
    def work() -> Any:
        with hook.active(lambda function: None):
            return count(20_000)

    with limit(30_000):
        assert in_thread(work) == 20_000
        assert in_thread(work, stack=8) == 20_000


def test_callback_that_replaces_each_frame(hook: Hook) -> None:
    if not hook.capabilities.keeps_recursion_limit:
        pytest.skip("frames of the driver count against the limit")
    driver = Driver(hook)

    def work(n: int) -> Any:
        with hook.active(driver):
            return count(n)

    assert in_thread(lambda: work(900), stack=8) == 900
    assert driver.replaced > 50
    with limit(30_000):
        assert in_thread(lambda: work(20_000), stack=8) == 20_000


def test_limit_is_met_at_the_same_depth(hook: Hook) -> None:
    if not hook.capabilities.keeps_recursion_limit:
        pytest.skip("frames of the driver count against the limit")
    driver = Driver(hook)

    def work(callback: Any) -> int:
        with hook.active(callback):
            return deepest(count)

    for frames in (100, 150, 1000):
        with limit(frames):
            eager = in_thread(lambda: work(None))
            assert in_thread(lambda: work(lambda function: None)) == eager
            assert in_thread(lambda: work(driver)) == eager


def test_recursion_through_c(hook: Hook) -> None:
    def work(callback: Any) -> int:
        with hook.active(callback):
            return through_map(300)

    assert in_thread(lambda: work(lambda function: None)) == 300


def test_recursion_error_leaves_the_hook_in_order(hook: Hook) -> None:
    asked: list[str] = []

    def callback(function: Any) -> None:
        asked.append(function.__name__)

    def work() -> bool:
        with hook.active(callback):
            with pytest.raises(RecursionError):
                count(100_000)
            with hook.active(callback):
                asked.clear()
                count(2)
            return hook.is_active()

    assert in_thread(work) is True
    assert asked == ["count"] * 3


def test_compiled_function_that_calls_itself(hook: Hook) -> None:
    def table(function: Any, n: int) -> int:
        return 0 if n == 0 else 1 + compiled(n - 1)

    def recursive(n: int) -> Any:
        return 0 if n == 0 else 1 + compiled(n - 1)

    compiled: Any = hook.compiled_function(recursive, table)  # type: ignore[arg-type]
    assert in_thread(lambda: compiled(150), stack=8) == 150
    if hook.capabilities.keeps_recursion_limit:
        assert in_thread(lambda: compiled(900), stack=8) == 900
        with limit(30_000):
            assert in_thread(lambda: compiled(4_000), stack=8) == 4_000


def test_compiled_function_without_end(hook: Hook) -> None:
    def table(function: Any, n: int) -> int:
        return 1 + compiled(n)

    def recursive(n: int) -> Any:
        return 1 + compiled(n)

    def work() -> str:
        with pytest.raises(RecursionError) as caught:
            compiled(1)
        return str(caught.value)

    compiled: Any = hook.compiled_function(recursive, table)  # type: ignore[arg-type]
    with limit(2_000):
        assert in_thread(work, stack=8)
    if hook.capabilities.keeps_recursion_limit:
        with limit(1_000_000):
            assert in_thread(work, stack=8)
