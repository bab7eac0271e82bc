"""The differential helpers see what they are there to see: each bad compiler is caught."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import (
    Scenario,
    Tolerance,
    call,
    capture_all,
    check_scenario,
    compare,
    snapshot,
)

pytestmark = pytest.mark.torch
AnyFunction = Callable[..., Any]


def base(x: Tensor, log: list[Any]) -> Any:
    """What the bad compilers spoil: a view, an effect, output, random numbers."""
    log.append("called")
    print("hello")
    return x[0], log, torch.rand(1), random.random()


def build() -> Scenario:
    x = torch.arange(4.0).reshape(2, 2).requires_grad_()
    return Scenario(base, [call(x, []), call(x, [])])


def build_raising() -> Scenario:
    def function(x: Tensor) -> Tensor:
        raise KeyError("which", 3)

    return Scenario(function, [call(torch.ones(1))])


def spoil(change: Callable[[Any, tuple[Any, ...]], Any]) -> Callable[[AnyFunction], AnyFunction]:
    """A compiler whose functions return something else, or do something besides."""

    def compile(function: AnyFunction) -> AnyFunction:
        return lambda *args: change(function(*args), args)

    return compile


def leave_grad_off(result: Any, args: tuple[Any, ...]) -> Any:
    torch.set_grad_enabled(False)
    return result


def draw(result: Any, args: tuple[Any, ...]) -> Any:
    torch.rand(1)
    return result


def shout(result: Any, args: tuple[Any, ...]) -> Any:
    print("extra")
    return result


def tag(result: Any, args: tuple[Any, ...]) -> Any:
    args[0].left_behind = True
    return result


def forget(result: Any, args: tuple[Any, ...]) -> Any:
    args[1].clear()
    return result


BAD: dict[str, Callable[[Any, tuple[Any, ...]], Any]] = {
    "a value": lambda r, a: (r[0] + 1e-3, *r[1:]),
    "a data type": lambda r, a: (r[0].double(), *r[1:]),
    "a shape": lambda r, a: (r[0][None], *r[1:]),
    "a stride": lambda r, a: (a[0].t()[0], *r[1:]),
    "gradients": lambda r, a: (r[0].detach(), *r[1:]),
    "memory shared with an argument": lambda r, a: (r[0].clone(), *r[1:]),
    "identity with an argument": lambda r, a: (r[0], list(r[1]), *r[2:]),
    "the type of a container": lambda r, a: list(r),
    "a missing result": lambda r, a: r[:3],
    "grad mode": leave_grad_off,
    "random state": draw,
    "printed text": shout,
    "an attribute": tag,
    "a mutation undone": forget,
}


@pytest.mark.parametrize("what", BAD)
def test_each_spoiled_run_is_seen(what: str) -> None:
    try:
        outcome = compare(build, spoil(BAD[what]), counters=dict)
    finally:
        torch.set_grad_enabled(True)
    assert outcome.problems, what


def test_an_honest_compiler_passes() -> None:
    assert compare(build, lambda function: function, counters=dict).problems == ()


def test_objects_kept_from_call_to_call_are_seen() -> None:
    def make() -> Scenario:
        return Scenario(lambda: torch.ones(2), [call(), call()])

    kept = torch.ones(2)
    problems = compare(make, lambda function: lambda: kept, counters=dict).problems
    assert any("all calls" in line for line in problems)
    assert not any(line.startswith("call ") for line in problems)


@pytest.mark.parametrize(
    "error", [ValueError("which", 3), KeyError("which"), KeyError("other", 3)], ids=repr
)
def test_another_exception_is_seen(error: Exception) -> None:
    def compile(function: AnyFunction) -> AnyFunction:
        def run(*args: Any) -> Any:
            raise error

        return run

    assert compare(build_raising, compile, counters=dict).problems


def test_swallowed_exception_is_seen() -> None:
    outcome = compare(build_raising, lambda function: lambda x: None, counters=dict)
    assert "raised" in outcome.problems[0]


def test_chained_exceptions_are_compared() -> None:
    def chained(context: Exception) -> Exception:
        error = ValueError("top")
        error.__context__ = context
        return error

    first, second = snapshot(e=chained(KeyError("a"))), snapshot(e=chained(KeyError("b")))
    assert first != second
    assert first == snapshot(e=chained(KeyError("a")))


def test_aliasing_is_described_by_where_it_was_first_met() -> None:
    x = torch.ones(3)
    described = snapshot(a=x, b=[x, x[1:]])
    text = repr(described["b"])
    assert "Again(path='a')" in text
    assert "'shares memory with': Leaf(value='a')" in text


def test_tolerance_is_for_numbers_that_round() -> None:
    def make() -> Scenario:
        return Scenario(lambda: torch.tensor([1.0]), [call()])

    near = spoil(lambda result, args: result + 5e-6)
    assert compare(make, near, tolerance=Tolerance(10.0), counters=dict).problems == ()
    far = spoil(lambda result, args: result + 1e-3)
    assert compare(make, far, tolerance=Tolerance(10.0), counters=dict).problems


def test_expected_counts_are_held() -> None:
    with pytest.raises(AssertionError, match="instead of 3"):
        check_scenario(build, lambda function: function, breaks=3)


@pytest.mark.parametrize("dear", [True, False])
def test_what_is_captured_anew_each_time_is_left_alone_where_that_is_dear(
    dear: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_all, "DEAR", 1e-6 if dear else 1e9)
    monkeypatch.setattr(capture_all, "ENTRIES", 6)

    def look(seen: dict[str, int]) -> int:
        return len(seen)

    own = look.__code__  # the hook in Python gives the function another
    everything = capture_all.CaptureAll(lambda function, code: code is own)
    everything.take(look)
    with everything.active():
        found = [look({str(k): k}) for k in range(10)]
    assert found == [1] * 10
    frames = everything.frames_of(own)
    assert frames.whole == (2 if dear else 6)
    assert frames.breaks == ({capture_all.NEVER_AGAIN: 1} if dear else {})


def test_what_runs_again_may_be_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_all, "DEAR", 1e-6)

    def look(k: int) -> int:
        return k + 1

    own = look.__code__  # the hook in Python gives the function another
    everything = capture_all.CaptureAll(lambda function, code: code is own)
    everything.take(look)
    with everything.active(), dynacap.config.patch(specialize_int=True):
        found = [look(k // 2) for k in range(12)]
    assert found == [k // 2 + 1 for k in range(12)]
    assert everything.frames_of(own).whole == 6
