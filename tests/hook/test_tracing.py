"""Trace and profile functions go on working while the hook is active."""

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from dynacap.hook import Hook

Function = Callable[..., Any]
Event = tuple[str, str, int]


def user(x: int = 0) -> int:
    y = inner(x)
    return y + 1


def inner(x: int) -> int:
    return x * 2


def fails() -> None:
    raise KeyError


async def answers() -> int:
    return 1


async def waits() -> int:
    return await answers() + await answers()


class Tracer:
    """Notes the events of this file's functions."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code.co_filename == __file__:
            line = frame.f_lineno - frame.f_code.co_firstlineno
            self.events.append((event, frame.f_code.co_name, line))
        return self


class Jealous(Tracer):
    """Puts itself in place of whoever called it, as tracers in C do."""

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "call":
            sys.settrace(self)
        return super().__call__(frame, event, arg)


def watched(tracer: Any, work: Function) -> Any:
    """Run in a thread of its own: the test's thread may itself be traced."""
    results: list[Any] = []

    def run() -> None:
        sys.settrace(tracer)
        try:
            work()
            results.append(sys.gettrace())
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize("kind", [Tracer, Jealous])
def test_trace_function_sees_the_same(hook: Hook, kind: Any) -> None:
    def eager() -> None:
        user(1)
        with pytest.raises(KeyError):
            fails()

    def hooked() -> None:
        with activation:
            user(1)
            with pytest.raises(KeyError):
                fails()

    asked: list[str] = []
    activation = hook.active(lambda function: asked.append(function.__name__))
    expected, tracer = kind(), kind()
    watched(expected, eager)
    assert watched(tracer, hooked) is tracer
    assert calls_of(tracer, "user", "inner", "fails") == calls_of(
        expected, "user", "inner", "fails"
    )
    assert not asked
    assert ("call", "user", 0) in tracer.events


def calls_of(tracer: Tracer, *names: str) -> list[Event]:
    return [event for event in tracer.events if event[1] in names]


def test_what_an_await_gives_is_told_of_as_without(hook: Hook) -> None:
    def eager() -> None:
        with pytest.raises(StopIteration):
            waits().send(None)

    def hooked() -> None:
        with hook.active(lambda function: None):
            eager()

    expected, tracer = Tracer(), Tracer()
    watched(expected, eager)
    watched(tracer, hooked)
    assert calls_of(tracer, "waits", "answers") == calls_of(expected, "waits", "answers")
    assert ("call", "answers", 0) in tracer.events


def test_no_frame_is_replaced_that_is_traced(hook: Hook, replace: Function) -> None:
    def instead(function: Any, x: int) -> int:
        return 0

    def work() -> None:
        with activation:
            assert user(3) == 7

    activation = hook.active(replace(user, instead))
    with activation:
        user(3)
        assert user(3) == 0
    tracer = Tracer()
    watched(tracer, work)
    events = [event for event, name, _ in calls_of(tracer, "user", "inner")]
    assert events.count("call") >= 2
    assert "line" in events
    assert not calls_of(tracer, "instead")


def test_trace_function_set_within(hook: Hook) -> None:
    tracer = Tracer()

    def work() -> None:
        with hook.active(lambda function: None):
            user(1)
            sys.settrace(tracer)
        assert sys.gettrace() is tracer

    assert watched(None, work) is tracer


def test_trace_function_put_back_within(hook: Hook) -> None:
    def work() -> None:
        active = hook.active(lambda function: None)
        with active:
            before = sys.gettrace()
            assert sys.gettrace() is before
            sys.settrace(Tracer())
        with active:
            user(1)
            sys.settrace(before)
        assert sys.gettrace() is None
        with active:
            assert sys.gettrace() is before
            sys.settrace(Tracer())
        sys.settrace(before)
        with active:
            user(1)

    assert watched(None, work) is None


def test_no_trace_function_is_left(hook: Hook) -> None:
    def work() -> None:
        with hook.active(lambda function: None):
            user(1)
            with hook.active(None):
                user(1)

    assert watched(None, work) is None


def test_a_tracer_in_c_that_nobody_else_can_call(hook: Hook) -> None:
    record = getattr(pytest.importorskip("_testcapi"), "settrace_to_record", None)
    if record is None:
        pytest.skip("this Python's tests have none")
    events: list[Any] = []

    def work() -> None:
        record(events)
        with hook.active(lambda function: None):
            user(1)
        sys.settrace(None)

    watched(None, work)
    assert events


def test_trace_function_that_fails(hook: Hook) -> None:
    def broken(frame: FrameType, event: str, arg: Any) -> Any:
        if frame.f_code is inner.__code__:
            raise OSError("tracer")
        return None

    def work() -> None:
        with hook.active(lambda function: None), pytest.raises(OSError, match="tracer"):
            user(1)

    watched(broken, work)


def test_profile_function(hook: Hook, replace: Function) -> None:
    events: list[tuple[str, str]] = []

    def profile(frame: FrameType, event: str, arg: Any) -> None:
        if not event.startswith("c_") and frame.f_code.co_filename == __file__:
            events.append((event, frame.f_code.co_name))

    def failing(function: Any, x: int) -> Any:
        raise KeyError(x)

    def work(callback: Any) -> None:
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            with hook.active(callback):
                user(1)
        except KeyError:
            pass
        finally:
            sys.setprofile(before)

    for instead in (lambda function, x: inner(x), failing):
        work(replace(user, instead))
        ours = [event for event, name in events if name == "user"]
        assert ours == ["call", "return"] * (len(ours) // 2)
        assert ours
        events.clear()


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="no sys.monitoring")
def test_monitoring(hook: Hook, replace: Function) -> None:
    monitoring: Any = getattr(sys, "monitoring", None)
    seen: list[str] = []
    tool = monitoring.PROFILER_ID
    starts, returns = monitoring.events.PY_START, monitoring.events.PY_RETURN
    monitoring.use_tool_id(tool, "test")
    try:
        for event in (starts, returns):
            monitoring.register_callback(tool, event, lambda code, *rest: seen.append(code.co_name))
        activation = hook.active(replace(user, lambda function, x: inner(x)))
        monitoring.set_events(tool, starts | returns)
        with activation:
            user(1)
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)
    assert seen.count("user") == 2
    assert seen.count("inner") == 2
