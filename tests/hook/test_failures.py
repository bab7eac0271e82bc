"""Exceptions: of the callback, of what replaces a frame, and how their tracebacks look."""

import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

import pytest

from dynacap import log
from dynacap.config import config
from dynacap.hook import Hook

Function = Callable[..., Any]


def user(x: int = 0) -> int:
    return x + 1


def caller(x: int = 0) -> int:
    return user(x)


def fails(*flat: Any) -> Any:
    raise ValueError(flat)


def entries(error: BaseException) -> list[tuple[str, int]]:
    """Function names and lines of a traceback, outermost first."""
    return [(frame.name, frame.lineno or 0) for frame in traceback.extract_tb(error.__traceback__)]


def names(error: BaseException) -> list[str]:
    return [name for name, _ in entries(error)]


def frames(error: BaseException) -> list[FrameType]:
    found = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        found.append(step.tb_frame)
        step = step.tb_next
    return found


def test_failing_callback_is_logged_once(hook: Hook) -> None:
    def callback(function: Any) -> Any:
        raise LookupError("inner fault")

    before = len(log.records())
    with config.patch(raise_internal_errors=False), hook.active(callback):
        assert [user(1), user(2)] == [2, 3]
    new = [r for r in log.records()[before:] if r.fields.get("function") == "user"]
    assert len(new) == 1
    assert "inner fault" in new[0].message
    assert f"{__file__}:{user.__code__.co_firstlineno}" in new[0].message


def test_failing_callback_raises_when_asked_to(hook: Hook) -> None:
    def callback(function: Any) -> Any:
        raise LookupError("inner fault")

    with config.patch(raise_internal_errors=True), pytest.raises(LookupError, match="inner fault"):
        with hook.active(callback):
            user(1)
    assert user(1) == 2


def test_keyboard_interrupt_in_the_callback(hook: Hook) -> None:
    def callback(function: Any) -> Any:
        raise KeyboardInterrupt

    tracer = sys.gettrace()
    with pytest.raises(KeyboardInterrupt), hook.active(callback):
        user(1)
    assert user(1) == 2
    assert sys.gettrace() is tracer


def test_signal_during_a_replaced_frame(hook: Hook, replace: Function) -> None:
    def instead(function: Any, x: int) -> int:
        signal.raise_signal(signal.SIGINT)
        return x

    callback = replace(user, instead)
    with pytest.raises(KeyboardInterrupt), hook.active(callback):
        user(1)
    assert user(1) == 2


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_exception_passes_unchanged(hook: Hook, replace: Function, kind: Any) -> None:
    error = kind("mine")
    error.__cause__ = cause = LookupError()

    def instead(*flat: Any) -> Any:
        raise error

    callback = replace(user, instead)
    with pytest.raises(kind) as caught, hook.active(callback):
        caller(1)
    assert caught.value is error
    assert caught.value.__cause__ is cause
    assert sys.exc_info() == (None, None, None)


def test_exception_is_handled_by_the_caller(hook: Hook, replace: Function) -> None:
    def handles(x: int) -> Any:
        try:
            return user(x)
        except ValueError as error:
            return "handled", error.__context__
        finally:
            x = 0

    callback = replace(user, fails)
    with hook.active(callback):
        assert handles(1) == ("handled", None)


def test_context_is_the_exception_being_handled(hook: Hook, replace: Function) -> None:
    callback = replace(user, fails)
    outer = KeyError()

    def handles() -> None:
        try:
            raise outer
        except KeyError:
            user(1)

    with pytest.raises(ValueError, match="function user") as caught, hook.active(callback):
        handles()
    assert caught.value.__context__ is outer


def test_traceback_shows_the_function_once(hook: Hook, replace: Function) -> None:
    callback = replace(user, fails)
    with pytest.raises(ValueError, match="function user") as caught, hook.active(callback):
        caller(5)
    shown = names(caught.value)
    assert shown.count("user") == 1
    assert shown[1:3] == ["caller", "user"]
    assert shown[-1] == "fails"
    assert dict(entries(caught.value))["user"] == user.__code__.co_firstlineno
    frame = frames(caught.value)[2]
    assert frame.f_locals["x"] == 5
    assert frame.f_globals is globals()


def test_traceback_without_python_frames(hook: Hook, replace: Function) -> None:
    callback = replace(user, divmod)
    with pytest.raises(TypeError) as caught, hook.active(callback):
        user(0)
    assert "user" in names(caught.value)


def test_locals_of_a_closure_in_a_traceback(hook: Hook, replace: Function) -> None:
    free = ["free"]

    def closure(x: int = 0) -> Any:
        return lambda: (x, free)

    callback = replace(closure, fails)
    with pytest.raises(ValueError, match="closure") as caught, hook.active(callback):
        closure(3)
    shown = next(f for f in frames(caught.value) if f.f_code.co_name == "closure").f_locals
    assert shown["x"] == 3
    if hook.capabilities.replaces_running_frame:
        assert shown["free"] is free


def test_hidden_frames(hook: Hook, replace: Function) -> None:
    if not hook.capabilities.tidies_tracebacks:
        pytest.skip("the hook leaves tracebacks as they are")

    def ours(function: Any, x: int) -> Any:
        return between(x)

    def between(x: int) -> Any:
        return theirs(x)

    def theirs(x: int) -> Any:
        return innermost(x)

    def innermost(x: int) -> Any:
        raise ValueError(x)

    for hidden in (ours, between, innermost):
        hook.mark_hidden(hidden.__code__)
    callback = replace(user, ours)
    with pytest.raises(ValueError, match="1") as caught, hook.active(callback):
        caller(1)
    # The error arose in hidden code: a fault of ours is shown whole.
    assert names(caught.value)[1:] == ["caller", "user", "ours", "between", "theirs", "innermost"]
    innermost.__code__ = innermost.__code__.replace(co_name="visible")
    with pytest.raises(ValueError, match="1") as caught, hook.active(callback):
        caller(1)
    assert names(caught.value)[1:] == ["caller", "user", "theirs", "visible"]


def test_piece_of_the_function_stands_for_it(hook: Hook, replace: Function) -> None:
    if not hook.capabilities.tidies_tracebacks:
        pytest.skip("the hook leaves tracebacks as they are")

    def ours(function: Any, x: int) -> Any:
        return piece(x)

    def piece(x: int) -> Any:
        raise ValueError(x)

    hook.mark_hidden(ours.__code__)
    code = user.__code__
    piece.__code__ = piece.__code__.replace(
        co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno
    )
    callback = replace(user, ours)
    with pytest.raises(ValueError, match="1") as caught, hook.active(callback):
        caller(1)
    assert names(caught.value)[1:] == ["caller", "user"]
    compiled = hook.compiled_function(user, ours)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="1") as caught:
        compiled(1)
    assert names(caught.value)[1:] == ["user"]


def test_traceback_of_a_compiled_function(hook: Hook) -> None:
    compiled = hook.compiled_function(user, fails)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="function user") as caught:
        compiled(1)
    shown = names(caught.value)
    assert shown[-1] == "fails"
    if hook.capabilities.tidies_tracebacks:
        assert entries(caught.value)[1] == ("user", user.__code__.co_firstlineno)
    else:
        assert "user" not in shown
