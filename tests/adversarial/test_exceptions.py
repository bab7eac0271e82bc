"""Exceptions: what is kept on them, what is handled where, and the texts of failed calls."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import Branch, differences, program, snapshot

X = torch.arange(6.0).reshape(2, 3)


class Failure(Exception):
    """Has a slot of its own."""

    __slots__ = ("code",)

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.code = code


class Guarded:
    """A property that fails, and what is asked next."""

    @property
    def inner(self) -> int:
        raise AttributeError("inner")

    @property
    def other(self) -> int:
        raise ValueError("other")

    def __getattr__(self, name: str) -> Any:
        if name == "given":
            return 5
        raise AttributeError(f"no {name}")


class Meta(type):
    """The same for a class."""

    @property
    def inner(cls) -> int:
        raise AttributeError("inner")

    def __getattr__(cls, name: str) -> str:
        return f"{name} of the class"


class Made(metaclass=Meta):
    """A class with it."""


def caught(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


@program((X,))
def test_failed_property_goes_on_to_getattr(x: Tensor) -> Any:
    one: Any = Guarded()
    found = (
        one.given,
        hasattr(one, "inner"),
        getattr(one, "inner", 7),
        caught(lambda: one.inner),
        caught(lambda: one.other),
        caught(lambda: one.missing),
        Made.inner,
    )
    return x + one.given, found


@program((X, []))
def test_names_on_errors(x: Tensor, log: list[Any]) -> Any:
    none: Any = None
    try:
        none.missing  # noqa: B018
    except AttributeError as error:
        log.append((str(error), error.name, error.obj))
    try:
        undefined  # type: ignore[name-defined] # noqa: B018
    except NameError as error:
        log.append((str(error), error.name))
    return x + 1


@program((X, []))
def test_slots_of_exceptions_that_are_kept(x: Tensor, log: list[Any]) -> Any:
    try:
        raise Failure("text", 3)
    except Failure as error:
        log.append(error)
        log.append(error.code)
    return x + log[-1]


@program((X, [], ValueError("outside")), breaks=None)
def test_outside_exception_gets_a_context(x: Tensor, log: list[Any], outside: Any) -> Any:
    try:
        raise outside
    except ValueError as error:
        log.append((error is outside, error.__context__, error.__suppress_context__))
    try:
        try:
            raise KeyError(1)
        except KeyError:
            raise outside from None
    except ValueError as error:
        log.append((error.__context__, error.__cause__, error.__suppress_context__))
    return x + 1


def handling(log: list[Any]) -> Iterator[int]:
    try:
        raise KeyError("mine")
    except KeyError as mine:
        log.append(sys.exc_info()[1] is mine)
        yield 1
        log.append(sys.exc_info()[1] is mine)
        try:
            raise ValueError("nested")
        except ValueError as nested:
            log.append(nested.__context__ is mine)
        yield 2
        raise


@program((X, []))
def test_generator_handles_its_own_exception(x: Tensor, log: list[Any]) -> Any:
    values = handling(log)
    total = next(values)
    try:
        raise IndexError("outer")
    except IndexError as outer:
        total += next(values)
        log.append(sys.exc_info()[1] is outer)
        try:
            next(values)
        except KeyError as mine:
            log.append(repr(mine))
    log.append(sys.exc_info()[1])
    return x + total


@program((X, []))
def test_exception_thrown_into_a_handler(x: Tensor, log: list[Any]) -> Any:
    values: Any = handling(log)
    next(values)
    try:
        values.throw(ValueError("thrown"))
    except ValueError as error:
        log.append((error, error.__context__))
    return x + 1


@program((X, []), breaks=None)
def test_handler_needs_what_the_call_does_not(x: Tensor, log: list[Any]) -> Any:
    def fails(depth: int) -> None:
        print(end="")
        if depth:
            fails(depth - 1)
        raise ValueError(depth)

    try:
        fails(2)
    except ValueError as error:
        return x + 1, error.args
    return x


@program((X,))
def test_calls_that_do_not_fit(x: Tensor) -> Any:
    def many(p: int, q: int = 2, /, r: int = 3, *s: int, k: int, m: int = 5, **z: int) -> Any:
        return p, q, r, s, k, m, z

    def one(u: int) -> int:
        return u

    def named(*, u: int, v: int = 1) -> int:
        return u

    def positional(u: int, /) -> int:
        return u

    calls: list[Any] = [
        lambda: many(),  # type: ignore[call-arg]
        lambda: many(1),  # type: ignore[call-arg]
        lambda: many(1, 2, 3, k=1, r=4),  # type: ignore[misc]
        lambda: many(1, k=1, q=9),
        lambda: many(1, k=1, p=7),
        lambda: one(),  # type: ignore[call-arg]
        lambda: one(1, 2),  # type: ignore[call-arg]
        lambda: one(1, u=2),  # type: ignore[misc]
        lambda: one(v=2),  # type: ignore[call-arg]
        lambda: named(v=1),  # type: ignore[call-arg]
        lambda: named(w=1),  # type: ignore[call-arg]
        lambda: named(1),  # type: ignore[call-arg]
        lambda: positional(u=1),  # type: ignore[call-arg]
    ]
    return x + 1, [caught(call) for call in calls]


@program((X, 5), (X, [1]), (X, {1: 2, 3: 4}), (X, None))
def test_texts_of_failed_operations(x: Tensor, value: Any) -> Any:
    def two() -> Any:
        first, second = value
        return first, second

    def starred() -> Any:
        first, *rest, last = value
        return first, rest, last

    return x + 1, caught(two), caught(starred), caught(lambda: [1] * "a")  # type: ignore[operator]


@program((X, []))
def test_causes_that_are_none(x: Tensor, log: list[Any]) -> Any:
    def wrong_cause() -> None:
        raise ValueError("v") from 5  # type: ignore[misc]

    number: Any = 5

    def wrong() -> None:
        raise number

    return x + 1, caught(wrong_cause), caught(wrong)


def from_a_handler(function: Any) -> Any:
    """Compiled code is called by a frame that handles an exception, and by one that does not."""

    def calling(x: Tensor, log: list[Any], inside: bool) -> Any:
        if not inside:
            return function(x, log)
        try:
            raise ValueError("of the caller")
        except ValueError:
            return function(x, log)

    return calling


def reraising(x: Tensor, log: list[Any]) -> Any:
    try:
        raise
    except RuntimeError as error:
        return x + 1, str(error)
    except ValueError:
        return x - 1


def missing(x: Tensor, log: list[Any]) -> Any:
    try:
        return dict[int, int]()[1]
    except KeyError as error:
        log.append(error)
        log.append(error.__context__)
    return x + 1


@pytest.mark.parametrize("function", [reraising, missing])
def test_caller_that_handles_an_exception(function: Any) -> None:
    found = []
    for target in (function, dynacap.compile(function)):
        calling = from_a_handler(target)
        log: list[Any] = []
        results = [calling(X, log, inside) for inside in (False, True, False)]
        found.append(snapshot(results=results, log=log))
    assert not list(differences(Branch("", found[0]), Branch("", found[1])))


def fails(x: Any) -> Any:
    try:
        return x["no"] + x
    finally:
        x = None


def passes_on(x: Any) -> Any:
    try:
        return fails(x)
    except ZeroDivisionError:
        return x


def lines_of(error: BaseException) -> Any:
    trace, found = error.__traceback__, []
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_name, trace.tb_lineno))
        trace = trace.tb_next
    return found


@program((X, []), breaks=None)
def test_traceback_of_what_was_raised_while_capturing(x: Tensor, log: list[Any]) -> Any:
    """All frames through which an exception came are in it, raised again or not."""
    try:
        passes_on({})
    except KeyError as error:
        kept: Any = error
        log.append(lines_of(error))
    try:
        try:
            raise kept
        except KeyError:
            x = x + 1
            raise
    except KeyError as error:
        log.append(lines_of(error))
    return x * 2


@contextlib.contextmanager
def raises_at_exit(error: Exception) -> Iterator[None]:
    try:
        yield
    finally:
        raise error


class NoInstance(Exception):
    def __new__(cls, *args: Any) -> Any:
        return cls


@program((X, []), breaks=1)
def test_exceptions_thrown_into_generators(x: Tensor, log: list[Any]) -> Any:
    """What their callers handle is no context of theirs; one that cannot be made is an error."""
    chain: BaseException | None = None
    try:
        with contextlib.ExitStack() as stack:
            for number in (4, 3, 2):
                stack.enter_context(raises_at_exit(ValueError(number)))
            raise ValueError(1)
    except ValueError as error:
        chain = error
        while chain is not None:
            log.append(chain.args)
            chain = chain.__context__

    def waiting() -> Iterator[Any]:
        try:
            yield x + 1
        except TypeError as error:
            log.append(str(error))

    generator: Any = waiting()
    y = next(generator)
    try:
        generator.throw(NoInstance)
    except StopIteration:
        log.append("stopped")
    return y * 2
