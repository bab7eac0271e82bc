"""What the hook takes it gives back: references, functions, code objects, memory."""

import gc
import sys
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dynacap.config import config
from dynacap.hook import NEVER, Hook

Function = Callable[..., Any]
CALLS = 1_000


class Thing:
    """Something that can be referred to weakly, and is never cached."""


def user(x: Any = None, *args: Any, k: Any = None, **kw: Any) -> Any:
    return x


def closed_over(free: Any) -> Function:
    def closure(x: Any = None) -> Any:
        def inner() -> Any:
            return x, free

        return inner

    return closure


def instead(function: Any, x: Any, *rest: Any) -> Any:
    return x


def failing(function: Any, *flat: Any) -> Any:
    raise KeyError(flat)


def failing_call(callback: Any) -> Any:
    raise LookupError


def swallow(call: Function, *args: Any, **kwargs: Any) -> None:
    try:
        call(*args, **kwargs)
    except KeyError:
        pass


def counts(*things: Any) -> list[int]:
    gc.collect()
    return [sys.getrefcount(thing) for thing in things]


@pytest.mark.parametrize("how", ["none", "replaced", "failing", "never", "callback fails"])
def test_references_are_given_back(hook: Hook, replace: Function, how: str) -> None:
    x, extra, value = Thing(), Thing(), Thing()
    closure = closed_over(value)
    answers: dict[str, Any] = {"none": None, "replaced": instead, "failing": failing,
                               "never": NEVER, "callback fails": None}  # fmt: skip

    def answer(function: Any) -> Any:
        if function is not user and function is not closure:
            return None
        return failing_call(function) if how == "callback fails" else answers[how]

    replace(user, instead)
    replace(closure, instead)

    def work(times: int) -> None:
        with config.patch(raise_internal_errors=False), hook.active(answer):
            for _ in range(times):
                swallow(user, x, extra, k=value, z=extra)
                swallow(closure, x)

    things = (x, extra, value, user, closure, user.__code__, closure.__code__, instead, answer)
    work(20)
    before = counts(*things)
    work(CALLS)
    assert counts(*things) == before


def test_memory_does_not_grow(hook: Hook, replace: Function) -> None:
    compiled: Any = hook.compiled_function(user, instead)  # type: ignore[arg-type]
    callback = replace(user, instead)

    def work() -> None:
        with hook.active(callback):
            for i in range(CALLS):
                user(i, i + 1, k=[i], z=(i,))
                compiled(i, i + 1, k=[i], z=(i,))
                hook.exit(hook.enter(None))
        callback.asked.clear()

    work()
    tracemalloc.start()
    try:
        work()
        gc.collect()
        first, _ = tracemalloc.get_traced_memory()
        work()
        gc.collect()
        second, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert second - first < 5_000


@pytest.mark.parametrize("table", [instead, failing])
def test_compiled_function_gives_back(hook: Hook, table: Any) -> None:
    x, default = Thing(), Thing()

    def f(x: Any, y: Any = default, *args: Any, k: Any = default, **kw: Any) -> Any: ...

    compiled: Any = hook.compiled_function(f, table)  # type: ignore[arg-type]

    def work(times: int) -> None:
        for _ in range(times):
            swallow(compiled, x)
            swallow(compiled, x, x, x, k=x, z=x)
            with pytest.raises(TypeError):
                compiled(k=x, z=x)
            with pytest.raises(TypeError):
                compiled(x, x=x)

    work(5)
    before = counts(x, default, f, compiled, table)
    work(CALLS // 10)
    assert counts(x, default, f, compiled, table) == before


def test_function_is_freed(hook: Hook, replace: Function) -> None:
    def make() -> Any:
        def recursive(n: int = 0) -> Any:
            return recursive(n - 1) if n else n

        return recursive

    function = make()
    callback = replace(function, lambda function, n: ("instead", n))
    with hook.active(callback):
        assert function(3) == ("instead", 3)
    callback.asked.clear()
    callback.function = None
    gone = weakref.ref(function)
    gone_code = weakref.ref(function.__code__)
    del function
    gc.collect()
    assert gone() is None
    if not hook.capabilities.keeps_code:
        assert gone_code() is None


def test_argument_outlives_the_call_no_longer_than_in_python(hook: Hook, replace: Function) -> None:
    callback = replace(user, lambda *flat: None)
    thing = Thing()
    gone = weakref.ref(thing)
    with hook.active(callback):
        user(thing)
        del thing
        assert gone() is None


def test_frame_kept_by_a_traceback(hook: Hook, replace: Function) -> None:
    callback = replace(user, failing)
    thing = Thing()
    gone = weakref.ref(thing)
    kept: BaseException | None = None
    with hook.active(callback):
        try:
            user(thing)
        except KeyError as error:
            kept = error
    del thing
    assert gone() is not None
    assert kept is not None
    del kept
    gc.collect()
    assert gone() is None
