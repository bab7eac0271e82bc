"""Coroutines that are driven inside captured code: awaited, sent to, thrown into, closed."""

import gc
import sys
import types
import warnings
from collections.abc import Callable, Generator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(3.0)


def drive(coroutine: Any, *sent: Any) -> Any:
    """What a coroutine waits for, one after the other, and what it gives in the end."""
    waited = []
    try:
        waited.append(coroutine.send(None))
        for each in sent:
            waited.append(coroutine.send(each))
    except StopIteration as end:
        return waited, end.value
    return waited, "waits"


@types.coroutine
def switch(x: Any) -> Generator[Any, Any, Any]:
    got = yield x
    return got


class Later:
    """An awaitable of the user's own."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __await__(self) -> Generator[Any, Any, Any]:
        got = yield self.value
        return got, self.value


async def doubled(x: Tensor) -> Tensor:
    return x * 2


async def awaits(x: Tensor) -> Any:
    y = await doubled(x)
    got = await switch(y + 1)
    own = await Later(got)
    return y - got, own


@program((X,))
def test_a_chain_of_awaits(x: Tensor) -> Any:
    return drive(awaits(x + 1), torch.ones(3), 5, 6), drive(awaits(x)), drive(awaits(x), 2.0)


class Managed:
    def __init__(self, log: list[Any], swallow: bool = False) -> None:
        self.log, self.swallow = log, swallow

    async def __aenter__(self) -> Any:
        self.log.append("in")
        return await switch("entered")

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        self.log.append(("out", kind, error))
        await switch("left")
        return self.swallow


async def with_managers(x: Tensor, log: list[Any], swallow: bool, fail: bool) -> Any:
    async with Managed(log, swallow) as got, Managed(log) as other:
        log.append((got, other))
        if fail:
            raise ValueError("inside")
        x = x + got
    return x


@program(*((X, swallow, fail) for swallow in (True, False) for fail in (True, False)))
def test_async_with(x: Tensor, swallow: bool, fail: bool) -> Any:
    log: list[Any] = []
    try:
        return drive(with_managers(x * 2, log, swallow, fail), 1, 2, 3, 4), log
    except ValueError as error:
        return x, error, log


class Counts:
    def __init__(self, x: Tensor, end: int) -> None:
        self.x, self.at, self.end = x, 0, end

    def __aiter__(self) -> "Counts":
        return self

    async def __anext__(self) -> Tensor:
        self.at += 1
        if self.at > self.end:
            raise StopAsyncIteration
        if self.at == 4:
            raise KeyError(4)
        return await switch(self.x + self.at)


async def loops(x: Tensor, end: int) -> Any:
    total: Any = x
    async for each in Counts(x, end):
        total = total + each
    else:
        total = total * 2
    listed = [each async for each in Counts(x, 2) if each is not None]
    return total, listed


@program((X, 2), (X, 0), (X, 5))
def test_async_for(x: Tensor, end: int) -> Any:
    try:
        return drive(loops(x, end), 1, 2, 3, 4, 5)
    except KeyError as error:
        return x, error


async def catches(x: Tensor, log: list[Any]) -> Any:
    try:
        return await switch(x)
    except ValueError as error:
        log.append(error)
        return await switch(x * 3)
    finally:
        log.append("finally")


async def around(x: Tensor, log: list[Any]) -> Any:
    try:
        return await catches(x, log)
    except GeneratorExit:
        log.append("exit")
        raise


@program((X,))
def test_throwing_and_closing(x: Tensor) -> Any:
    log: list[Any] = []
    thrown, closed, new = around(x, log), around(x + 1, log), around(x, log)
    first = thrown.send(None)
    second = thrown.throw(ValueError("thrown"))
    closed.send(None)
    closed.close()
    new.close()
    try:
        thrown.send(7)
    except StopIteration as end:
        return first, second, end.value, log
    return None


async def stops(x: Tensor) -> Any:
    raise StopIteration(x)


async def recursive(held: list[Any]) -> Any:
    return held[0].send(None)


async def ignores(x: Tensor) -> Any:
    while True:
        try:
            await switch(x)
        except GeneratorExit:
            pass


def twice(coroutine: Any) -> Any:
    drive(coroutine, 1)
    return drive(coroutine)


def together(x: Tensor) -> Any:
    inner = switch(x)
    shared = around(x, [])
    shared.send(None)

    async def waits() -> Any:
        return await shared

    try:
        return drive(waits())
    finally:
        shared.close()
        inner.close()


def itself() -> Any:
    held: list[Any] = []
    held.append(recursive(held))
    return drive(held[0])


def closed_badly(x: Tensor) -> Any:
    coroutine = ignores(x)
    coroutine.send(None)
    coroutine.close()


async def awaits_a(thing: Any) -> Any:
    return await thing


async def enters_a(thing: Any) -> Any:
    async with thing:
        return 1


async def loops_over_a(thing: Any) -> Any:
    async for each in thing:
        return each


class Wrong:
    def __await__(self) -> Any:
        return 3

    def __aiter__(self) -> Any:
        return 3


REFUSED: tuple[Callable[[Tensor], Any], ...] = (
    lambda x: drive(stops(x)),
    lambda x: twice(doubled(x)),
    lambda x: itself(),
    lambda x: together(x),
    lambda x: drive(awaits_a(3)),
    lambda x: drive(awaits_a(Wrong())),
    lambda x: drive(enters_a(3)),
    lambda x: drive(loops_over_a([1])),
    lambda x: drive(loops_over_a(Wrong())),
    lambda x: list(drive(awaits_a(Later(x)))),
)


@program(*((X, refused) for refused in REFUSED), breaks=None)
def test_what_is_refused(x: Tensor, refused: Callable[[Tensor], Any]) -> Any:
    try:
        return x + 1, refused(x)
    except Exception as error:
        return x * 2, error, error.__cause__


@program((X,), breaks=None)
def test_coroutines_are_no_iterators(x: Tensor) -> Any:
    found = []
    for ask in (iter, next, list, len):
        coroutine: Any = doubled(x)
        try:
            ask(coroutine)
        except TypeError as error:
            found.append(str(error))
        coroutine.close()
    return x + 1, found


@program((X,), breaks=None)
def test_coroutines_across_breaks(x: Tensor) -> Any:
    """They go on from where they stand: those not begun, those that wait, those at their end."""
    new, waits, over, handling = awaits(x), awaits(x + 1), awaits(x), around(x, [])
    waits.send(None)
    over.close()
    handling.send(None)
    handling.throw(ValueError())
    torch._dynamo.graph_break()
    x = x * 2
    return drive(new, 1.0, 2, 3), waits.send(2), drive(waits, 3), over.cr_frame, drive(handling, 1)


@program((X,), breaks=None)
def test_a_break_inside(x: Tensor) -> Any:
    async def breaks() -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        z = await doubled(y)
        torch._dynamo.graph_break()
        return z + 1

    return drive(breaks()), drive(awaits_a(breaks()))


def begun(coroutine: Any, *sent: Any) -> Any:
    for each in sent:
        coroutine.send(each)
    return coroutine


OUTSIDE: tuple[Callable[[], Any], ...] = (
    lambda: awaits(X),
    lambda: begun(awaits(X), None),
    lambda: begun(awaits(X), None, 2.0),
    lambda: switch(X),
    lambda: begun(around(X, []), None),
)


async def adds(x: Tensor, thing: Any) -> Any:
    return x + 1, await thing


@pytest.mark.parametrize("make", OUTSIDE)
@pytest.mark.parametrize("closes", [False, True])
def test_those_from_outside_go_on(make: Callable[[], Any], closes: bool) -> None:
    def goes_on(coroutine: Any, x: Tensor) -> Any:
        y = x * 2
        if closes:
            return y, coroutine.close()
        try:
            return y, coroutine.send(1.0), coroutine.send(3.0)
        except (StopIteration, RuntimeError, TypeError) as end:
            return y, type(end), end.args

    def awaited(coroutine: Any, x: Tensor) -> Any:
        try:
            return drive(adds(x, coroutine), 3.0, 4, 5)
        except RuntimeError as error:
            return x, error.args

    for function in (goes_on, awaited):
        compiled: Any = dynacap.compile(function, backend="eager")
        for _ in range(3):
            mine, eager = make(), make()
            for _ in range(3):
                assert str(compiled(mine, X)) == str(function(eager, X))
            assert str(mine)[:20] == str(eager)[:20]
            mine.close(), eager.close()


def never_awaited(x: Tensor) -> Tensor:
    doubled(x)  # type: ignore[unused-coroutine]
    kept = doubled(x + 1)
    x = x * 2
    del kept
    return x + 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_coroutine_that_is_never_awaited_is_warned_of() -> None:
    def texts(function: Any) -> list[str]:
        found = []
        for _ in range(2):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                function(X)
                gc.collect()
            found += [str(each.message) for each in caught]
        return found

    assert texts(dynacap.compile(never_awaited, backend="eager")) == texts(never_awaited)
    assert len(texts(never_awaited)) == 4


def test_origins_are_those_of_eager() -> None:
    def inner(x: Tensor) -> Any:
        return doubled(x + 1)

    def made(x: Tensor) -> Any:
        return inner(x * 2)

    def origins(function: Any) -> list[Any]:
        found = []
        for depth in (0, 1, 2, 0, 1, 2):
            sys.set_coroutine_origin_tracking_depth(depth)
            coroutine = function(X)
            found.append([each[1:] for each in coroutine.cr_origin or ()])
            coroutine.close()
        return found

    try:
        assert origins(dynacap.compile(made, backend="eager")) == origins(made)
    finally:
        sys.set_coroutine_origin_tracking_depth(0)
