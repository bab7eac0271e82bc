"""Breaks that were taken before: the hook goes on by itself, and nothing else than that changes."""

import gc
import types
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.driver import Driver
from dynacap.hook import choose_hook
from dynacap.testing import call, program

X = torch.arange(4.0)


@dynacap.disable
def say(what: object) -> object:
    print("say", what)
    return what


@dynacap.disable
def fail_at(number: int, bad: int) -> int:
    if number == bad:
        raise ValueError(f"{number} is bad")
    return number


def inner(x: Tensor, number: int, bad: int) -> Tensor:
    y = x + 1
    fail_at(number, bad)
    return y * 2


@program(*((X, n) for n in range(6)), breaks=None)
def test_a_waiting_frame_takes_the_exception(x: Tensor, bad: int) -> Any:
    seen: list[Any] = []
    for number in range(5):
        try:
            x = inner(x, number, bad)
        except ValueError as error:
            seen.append((str(error), error.__context__, type(error.__traceback__).__name__))
    return x, seen


@program(*((X, n) for n in (9, 0, 9, 1)), breaks=None)
def test_a_waiting_frame_handles_one_meanwhile(x: Tensor, bad: int) -> Any:
    try:
        raise KeyError("first")
    except KeyError:
        try:
            return inner(x, bad, 1)
        except ValueError as error:
            return repr(error.__context__), x + 1


@program((X, True), (X, True), (X, False), (X, True), (X, False), breaks=None)
def test_the_other_branch_comes_later(x: Tensor, flag: bool) -> Any:
    y = x + 1
    if say(flag):
        y = y * 2
    return y - 1


@program(*((X + n,) for n in range(4)), breaks=None)
def test_the_last_instruction_returns(x: Tensor) -> Any:
    def wrapped(y: Tensor) -> object:
        return say(y.sum() + 1)

    return wrapped(x), wrapped(x * 2)


def deep(x: Tensor, depth: int) -> Tensor:
    if depth == 0:
        say("bottom")
        return x
    return deep(x + 1, depth - 1) * 2


@program(*(call(X, depth) for depth in (3, 3, 3, 40, 40, 3)), breaks=None)
def test_frames_that_wait(x: Tensor, depth: int) -> Any:
    return deep(x, depth)


class Thing:
    def __del__(self) -> None:
        print("dies")


@program(*[(X,)] * 4, breaks=None)
def test_what_the_frame_lets_go_of_dies_there(x: Tensor) -> Any:
    thing = Thing()
    say("alive")
    x = x + 1
    del thing
    say("gone")
    return x * 2


def test_functions_of_one_code_have_their_own_globals() -> None:
    def scaled(x: Tensor) -> Any:
        y = x + 1
        told(y.shape)  # noqa: F821  # type: ignore[name-defined]
        return y * factor  # noqa: F821  # type: ignore[name-defined]

    told_to: list[Any] = []

    def made(name: str, factor: int) -> Any:
        @dynacap.disable
        def told(what: object) -> None:
            told_to.append((name, what))

        return types.FunctionType(scaled.__code__, {"told": told, "factor": factor})

    first, second = made("first", 2), made("second", 3)

    @dynacap.compile(backend="eager")
    def both(x: Tensor) -> Any:
        return first(x), second(x)

    for _ in range(4):
        told_to.clear()
        found = both(X)
        assert torch.equal(found[0], (X + 1) * 2)
        assert torch.equal(found[1], (X + 1) * 3)
        assert [name for name, _ in told_to] == ["first", "second"]


def broken(x: Tensor) -> Tensor:
    y = x + 1
    dynacap.graph_break()
    return y * 2


@pytest.fixture
def compiled() -> Iterator[Any]:
    yield dynacap.compile(broken, backend="eager")
    dynacap.reset()


def test_reset_forgets_the_paths(compiled: Any) -> None:
    for _ in range(3):
        for _ in range(3):
            assert torch.equal(compiled(X), (X + 1) * 2)
        dynacap.reset()
    assert torch.equal(compiled(X[:3]), (X[:3] + 1) * 2)


def test_nothing_is_kept_alive(compiled: Any) -> None:
    for _ in range(4):
        x = X.clone()
        seen = weakref.ref(x)
        compiled(x)
        del x
        assert seen() is None


def test_a_compiled_function_that_went_on_alone_can_die() -> None:
    def made() -> Any:
        def local(x: Tensor) -> Tensor:
            y = x + 1
            dynacap.graph_break()
            return y * 2

        function = dynacap.compile(local, backend="eager")
        for _ in range(4):
            function(X)
        return weakref.ref(function)

    dead = made()
    gc.collect()
    assert dead() is None


def test_a_value_that_the_breaking_call_changes() -> None:
    holder: dict[str, Any] = {}

    @dynacap.disable
    def change(box: list[Any]) -> None:
        box[0] = len(holder)
        holder[str(len(holder))] = weakref.ref(box[1])

    @dynacap.compile(backend="eager")
    def run(x: Tensor) -> Any:
        box = [None, x + 1]
        change(box)
        return box[0], box[1] * 2

    for number in range(4):
        count, y = run(X)
        assert count == number
        assert torch.equal(y, (X + 1) * 2)
    assert all(ref() is None for ref in holder.values())


def test_the_first_call_follows_what_it_learned_itself(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def function(x: Tensor) -> Tensor:
        for number in range(40):
            x = x + 1
            say(number)
        return x

    advanced: list[Any] = []
    advance = Driver._advance

    def counted(*given: Any) -> Any:
        advanced.append(given[1])
        return advance(*given)

    monkeypatch.setattr(Driver, "_advance", counted)
    assert torch.equal(dynacap.compile(function)(X), X + 40)
    assert capsys.readouterr().out == "".join(f"say {number}\n" for number in range(40))
    alone = choose_hook().capabilities.replaces_running_frame
    assert (len(advanced) < 10) is alone
