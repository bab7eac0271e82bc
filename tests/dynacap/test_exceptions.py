"""Exceptions meet the handlers, contexts and tracebacks that they meet in eager Python."""

import contextlib
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.hook import choose_hook
from dynacap.testing import program

X = torch.arange(3.0)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


def speak(text: str) -> None:
    print(text)


def fails(x: Tensor, message: str) -> Tensor:
    print("failing")
    raise ValueError(message)


def fails_deeper(x: Tensor, message: str) -> Tensor:
    y = x + 1
    return fails(y, message) * 2


@program((X,), breaks=None)
def test_handler_of_a_waiting_frame(x: Tensor) -> Any:
    try:
        y = fails_deeper(x, "far")
    except ValueError as error:
        return x * 3, str(error)
    return y


@program((X,), breaks=None)
def test_finally_of_waiting_frames_runs_in_order(x: Tensor) -> Any:
    def inner(y: Tensor) -> Tensor:
        try:
            return fails_deeper(y, "inner")
        finally:
            speak("inner finally")

    try:
        try:
            inner(x * 2)
        finally:
            speak("outer finally")
    except ValueError as error:
        return x + 1, error.args
    return None


@program((X,), breaks=None)
def test_bare_raise_in_a_callee_of_a_handler(x: Tensor) -> Any:
    def again(y: Tensor) -> None:
        print("again", (y + 1).sum().item())
        raise

    try:
        try:
            fails(x, "first")
        except ValueError:
            again(x)
    except ValueError as error:
        return x * 2, str(error)
    return None


@program((X,), breaks=None)
def test_exc_info_in_a_callee_of_a_handler(x: Tensor) -> Any:
    def look(y: Tensor) -> Any:
        print("look", y.sum().item())
        return type(sys.exc_info()[1]).__name__

    try:
        fails(x, "seen")
    except ValueError:
        seen = look(x + 1)
    return x, seen, sys.exc_info()[0] is None


@program((X,), breaks=None)
def test_context_of_an_exception_in_a_callee_of_a_handler(x: Tensor) -> Any:
    def worse(y: Tensor) -> None:
        speak("worse")
        raise KeyError(y.shape[0])

    try:
        try:
            fails(x, "first")
        except ValueError:
            worse(x)
    except KeyError as error:
        context = error.__context__
        return x + 2, type(context).__name__, str(context), error.__suppress_context__
    return None


@program((X,), breaks=None)
def test_handlers_within_handlers(x: Tensor) -> Any:
    log = []
    try:
        fails(x, "one")
    except ValueError as one:
        log.append(str(one))
        try:
            speak("between")
            fails(x * 2, "two")
        except ValueError as two:
            log.append((str(two), str(two.__context__)))
        speak("after")
        log.append(type(sys.exc_info()[1]).__name__)
    return x * len(log), log


@program((X,), breaks=None)
def test_exception_from_a_loop_of_breaks(x: Tensor) -> Any:
    for i in range(4):
        try:
            speak(f"round {i}")
            if i == 2:
                fails(x, "round")
            x = x + i
        except ValueError:
            x = x * 10
            continue
    return x


class Swallow:
    """A context manager that eats exceptions of one kind and tells."""

    def __init__(self, kind: type[BaseException]) -> None:
        self.kind = kind

    def __enter__(self) -> "Swallow":
        print("enter")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        print("exit", kind.__name__ if kind else None, error, trace is not None)
        return kind is not None and issubclass(kind, self.kind)


@program((X,), breaks=None)
def test_exit_sees_the_exception_of_a_callee(x: Tensor) -> Any:
    with Swallow(ValueError):
        x = x + 1
        fails_deeper(x, "swallowed")
        x = x * 100
    with contextlib.suppress(KeyError):
        {}[speak("key")]  # type: ignore[index]
    return x - 1


def lines(error: BaseException) -> list[tuple[str, str]]:
    """Function and text of each entry of a traceback."""
    return [(e.name, e.line or "") for e in traceback.extract_tb(error.__traceback__)]


def run(function: Callable[..., Any], *args: Any) -> list[tuple[str, str]]:
    """The traceback of the exception that the call raises, from the function on."""
    try:
        function(*args)
    except Exception as error:
        found = lines(error)
    else:
        raise AssertionError("nothing was raised")
    return found[1:]


needs_tidy = pytest.mark.skipif(
    not choose_hook().capabilities.tidies_tracebacks, reason="this hook leaves our frames in"
)


def leaves(x: Tensor) -> Tensor:
    y = x + 1
    return fails_deeper(y, "leaves") + 1


@needs_tidy
@pytest.mark.parametrize("function", [leaves, fails_deeper, fails])
def test_traceback_of_what_leaves(function: Callable[..., Any]) -> None:
    args = (X,) if function is leaves else (X, "gone")
    compiled = dynacap.compile(function)
    for _ in range(2):
        assert run(compiled, *args) == run(function, *args)


def shows_traceback(x: Tensor) -> Any:
    try:
        fails_deeper(x + 1, "shown")
    except ValueError as error:
        return lines(error)
    return None


def test_traceback_that_a_handler_sees() -> None:
    compiled = dynacap.compile(shows_traceback)
    eager = shows_traceback(X)
    for _ in range(2):
        assert compiled(X) == eager


def test_exception_has_its_own_identity_and_notes() -> None:
    error = ValueError("kept")
    error.add_note("a note")

    def function(x: Tensor) -> Tensor:
        print("on the way")
        if x.shape[0]:
            raise error
        return x

    compiled = dynacap.compile(function)
    with pytest.raises(ValueError, match="kept") as caught:
        compiled(X)
    assert caught.value is error
    assert error.__notes__ == ["a note"]
    assert error.__context__ is None


def test_exceptions_pass_unchanged_under_fullgraph() -> None:
    def function(x: Tensor, at: int) -> Tensor:
        y = x + 1
        if at == 1:
            raise LookupError("mine")
        return y

    compiled = dynacap.compile(function, fullgraph=True)
    with pytest.raises(LookupError, match="mine"):
        compiled(X, 1)
    assert torch.equal(compiled(X, 2), X + 1)


def test_break_in_a_callee_is_told_under_fullgraph() -> None:
    def function(x: Tensor) -> Tensor:
        speak("no")
        return x + 1

    with pytest.raises(dynacap.Unsupported) as caught:
        dynacap.compile(function, fullgraph=True)(X)
    text = str(caught.value)
    assert "[print]" in text
    assert "what to do" in text
    assert text.index("in function") < text.index("in speak")
    assert "print(text)" in text


def test_exception_while_another_is_handled_by_the_caller() -> None:
    def function(x: Tensor) -> Any:
        print("look")
        info = sys.exc_info()[1]
        return x + 1, str(info)

    compiled = dynacap.compile(function)
    try:
        raise KeyError("outer")
    except KeyError:
        eager, got = function(X), compiled(X)
    assert got[1] == eager[1] == "'outer'"
