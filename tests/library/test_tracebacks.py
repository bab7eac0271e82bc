"""Tracebacks of exceptions that were raised while capturing; functions under a trace function."""

import sys
import traceback
import types
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.hook import choose_hook
from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


class Looks:
    """A context manager that looks into the traceback."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __enter__(self) -> "Looks":
        return self

    def __exit__(self, kind: Any, value: Any, tb: types.TracebackType | None) -> bool:
        assert tb is not None
        self.seen.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
        traceback.clear_frames(tb)
        return True


@program((X,), breaks=None)
def test_exit_looks_into_the_traceback(x: Tensor) -> Any:
    looks = Looks()
    with looks:
        {}.pop("missing")
    with looks:
        raise KeyError
    return x + len(looks.seen), looks.seen


@program((X,), breaks=None)
def test_the_context_of_what_the_library_raises(x: Tensor) -> Any:
    try:
        try:
            raise ValueError("first")
        except ValueError:
            {}["second"]  # type: ignore[misc]
    except KeyError as error:
        return repr(error.__context__), error.__traceback__ is not None, x + 1
    return None


def inner(error: BaseException) -> None:
    raise error


def entries(tb: types.TracebackType | None) -> list[tuple[str, int]]:
    """Function and line of each entry, as a reporter would show them."""
    return [(frame.name, frame.lineno or 0) for frame in traceback.extract_tb(tb)]


@program((X,), breaks=None)
def test_the_traceback_of_a_handled_exception(x: Tensor) -> Any:
    try:
        inner(KeyError("k"))
    except KeyError as error:
        tb = error.__traceback__
    assert tb is not None
    return x + 1, tb.tb_next is None, entries(tb)


@program((X,), breaks=None)
def test_an_exception_that_escapes_shows_its_whole_way(x: Tensor) -> Any:
    found = None
    try:
        inner(KeyError("k"))
    except KeyError as error:
        found = error
    print("a break, after which the exception is an object from outside")
    return x + 1, entries(found.__traceback__), repr(traceback.format_exception(found))


@program((X,), breaks=None)
def test_a_traceback_points_at_the_part_of_the_line(x: Tensor) -> Any:
    found = None
    try:
        x = x + len([inner(KeyError("k")), 1])
    except KeyError as error:
        found = error
    print("a break")
    return x + 1, repr(traceback.format_exception(found))


@program((X,), breaks=None)
def test_with_traceback_goes_on_from_another(x: Tensor) -> Any:
    def get() -> types.TracebackType | None:
        try:
            raise OSError
        except OSError as error:
            return error.__traceback__

    tb = get()
    try:
        raise IndexError().with_traceback(tb)
    except IndexError as error:
        own: Any = error.__traceback__
        return x + 1, own.tb_next is tb, entries(own)


@program((X, StopIteration("made outside")), (X, ValueError("made outside")), breaks=None)
def test_an_exception_from_outside_passes_a_manager(x: Tensor, error: Exception) -> Any:
    looks = Looks()
    with looks:
        raise error
    return x + 1, looks.seen, len(entries(error.__traceback__))


class MakesNone(Exception):
    """Its class makes no exceptions."""

    def __new__(cls, *args: Any) -> Any:
        return cls


@program((X,), breaks=None)
def test_a_class_that_makes_no_exception_is_thrown(x: Tensor) -> Any:
    def numbers() -> Any:
        yield 1

    texts = []
    try:
        numbers().throw(MakesNone)
    except TypeError as error:
        texts.append(str(error))
    try:
        raise MakesNone
    except TypeError as error:
        texts.append(str(error))
    return x + 1, texts


def traced(x: Tensor) -> Tensor:
    y = x + 1
    for _ in range(2):
        y = also_traced(y)
    return y


def also_traced(x: Tensor) -> Tensor:
    return x * 2


@program((X, []), breaks=None)
def test_functions_under_a_trace_function(x: Tensor, log: list[Any]) -> Any:
    """It is told of each line: while there is one, frames run as they are."""

    def note(frame: Any, event: str, arg: Any) -> Any:
        within = frame.f_lineno > frame.f_code.co_firstlineno  # not where a hook in Python stands
        if event == "line" and within and frame.f_code.co_filename == __file__:
            log.append((frame.f_code.co_name, frame.f_lineno))
        return note

    x = traced(x)
    sys.settrace(note)
    x = traced(x)
    sys.settrace(None)
    return traced(x)


@dynacap.disable
def watch(log: list[Any]) -> None:
    def tracer(frame: types.FrameType, event: str, arg: object) -> Any:
        if frame.f_code.co_name != "doubled":
            return None
        log.append((frame.f_code.co_name, event, frame.f_lineno))
        return tracer

    sys.settrace(tracer)


def doubled(x: Tensor) -> Tensor:
    y = x + x
    return y * 1


def watches(x: Tensor, log: list[Any]) -> Tensor:
    x = x + 1
    watch(log)
    return doubled(x)


@pytest.mark.skipif(
    not choose_hook().capabilities.replaces_running_frame, reason="it has the trace function"
)
@program((X, []), (X, []), (X, []), breaks=None)
def test_a_trace_function_that_appears_is_told_of_what_follows(x: Tensor, log: list[Any]) -> Any:
    before = sys.gettrace()
    try:
        y = watches(x, log) + 1
        y = doubled(y)
    finally:
        sys.settrace(before)
    return y
