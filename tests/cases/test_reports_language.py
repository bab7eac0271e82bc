"""Programs that restate public bug reports against compilers like this one: the language.

Each names the report that it restates. Eager Python says what is right.
"""

import functools
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, scenario


def ones() -> Tensor:
    return torch.ones(2)


class Clamped:
    """A data descriptor that learns its name and keeps values between 0 and 5."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.slot = "_" + name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else getattr(instance, self.slot)

    def __set__(self, instance: Any, value: int) -> None:
        setattr(instance, self.slot, min(5, max(0, value)))


class Part:
    """Slots, one of them behind a descriptor."""

    __slots__ = ("_size", "data")
    size = Clamped()

    def __init__(self, data: Any) -> None:
        self.data = data
        self.size = 30


class Series:
    """A cached property, a class method, a static method."""

    computed = 0

    def __init__(self, stop: int) -> None:
        self.stop = stop

    @functools.cached_property
    def product(self) -> int:
        Series.computed += 1
        return functools.reduce(lambda a, b: a * b, range(1, self.stop))

    @classmethod
    def upto(cls, stop: int) -> "Series":
        return cls(stop)

    @staticmethod
    def halve(value: int) -> int:
        return value // 2


@scenario(breaks=None)
def test_generator_that_escapes_198190() -> Scenario:
    """A generator handed to the caller takes `send`, and its return value arrives."""

    def function(x: Tensor) -> Any:
        base = x * 2

        def produce() -> Any:
            factor = yield base
            if factor is not None:
                yield base * factor
            yield "last"
            return ("value", base.sum())

        return produce()

    def after(index: int, generator: Any) -> Any:
        seen: list[Any] = [type(generator).__name__, next(generator)]
        if index == 0:
            seen.append(generator.send(4))
        while True:
            try:
                seen.append(next(generator))
            except StopIteration as stop:
                return seen, stop.value

    return Scenario(function, [call(torch.arange(2.0)), call(torch.arange(2.0))], after=after)


@scenario(breaks=None)
def test_list_grows_while_walked_175855() -> Scenario:
    """What is appended to a list while a generator or a loop walks it is visited too."""

    def function(x: Tensor) -> Any:
        queue = [x.mean()]

        def visit() -> Iterator[Tensor]:
            for entry in queue:
                if len(queue) < 3:
                    queue.append(entry * 2 + len(queue))
                yield entry - 1

        visited = list(visit())
        for entry in queue:
            if len(queue) < 7:
                queue.append(entry)
        return torch.stack(visited), len(queue), torch.stack(queue)

    return Scenario(function, [call(ones())] * 2)


@scenario(breaks=None)
def test_iterators_stay_exhausted_152262() -> Scenario:
    """Iterators stay exhausted, and `iter` of a half used one goes on where it stands."""

    def function(x: Tensor) -> Any:
        forward = iter((4, 5, 6))
        spent = max(forward), list(forward), next(forward, None)
        backward = reversed([1, 2, 3])
        head, tail = next(backward), list(iter(backward))
        paired = zip("abc", (1, 2), strict=False)
        pairs = list(paired), next(paired, "done")
        numbered = enumerate("xy")
        next(numbered)
        truthy = list(map(str, filter(None, (0, 7, "", "q"))))
        return x - head, spent, tail, next(backward, "gone"), pairs, list(numbered), truthy

    return Scenario(function, [call(ones())] * 2)


@scenario(breaks=None)
def test_deep_recursion_167789() -> Scenario:
    """Recursion that plain Python allows works when compiled."""

    def walk(chain: Any, x: Tensor) -> Tensor:
        if chain is None:
            return x + 1
        rest, weight = chain
        return walk(rest, x) - weight

    def function(x: Tensor, chain: Any) -> Tensor:
        return walk(chain, x * 2)

    def chain(length: int) -> Any:
        made: Any = None
        for i in range(length):
            made = (made, i % 2)
        return made

    return Scenario(function, [call(ones(), chain(n)) for n in (3, 300, 3)])


@scenario(breaks=None)
def test_comprehension_with_break_and_walrus_174413() -> Scenario:
    """A break in a comprehension keeps `:=` names and closures over the loop variable."""

    def function(parts: list[Tensor]) -> Any:
        bias = 3
        made = [print("part", i) or (latest := part - i) for i, part in enumerate(parts)]  # type: ignore[func-returns-value]
        readers = [lambda: index for index in range(2)]  # noqa: B023
        table = {n: {m: m * bias for m in range(n)} for n in range(3)}
        total = sum((subtotal := part.sum()) for part in made)
        return made, latest, [read() for read in readers], table, total, subtotal, bias

    calls = [call([torch.ones(2), torch.zeros(2)]), call([torch.zeros(1)] + [torch.ones(2)] * 2)]
    return Scenario(function, calls)


@scenario(breaks=None)
def test_generator_close_throw_188638() -> Scenario:
    """`throw`, `close`, `yield from` with a value, and `finally` blocks of generators."""

    def function(x: Tensor) -> Any:
        events: list[Any] = []

        def leaf() -> Any:
            try:
                events.append((yield x))
                yield x * 10
            except LookupError as error:
                events.append(error.args)
                yield x * 100
            finally:
                events.append("leaf done")
            return 7

        def root() -> Any:
            events.append(("value", (yield from leaf())))
            return "root value"

        running = root()
        a, b = next(running), running.send("sent")
        c = running.throw(IndexError("thrown"))
        try:
            next(running)
        except StopIteration as stop:
            events.append(stop.value)
        closed = leaf()
        next(closed)
        closed.close()
        return a - b + c, events, next(closed, "closed for good")

    return Scenario(function, [call(ones())] * 2)


@scenario(breaks=None)
def test_exceptions_in_flight_146499() -> Scenario:
    """Context, cause, `return` in `finally`, `sys.exc_info`, and an exception that escapes."""

    def fail(kind: int) -> int:
        if kind == 1:
            raise LookupError("kind one")
        if kind == 2:
            raise OSError("kind two")
        return kind * 10

    def hidden(kind: int) -> Any:
        try:
            fail(kind)
        finally:
            if kind == 2:
                return "hidden"  # noqa: B012
        return "shown"

    def function(x: Tensor, kind: int) -> Any:
        notes: list[Any] = []
        try:
            try:
                fail(kind)
            except LookupError as error:
                raise RuntimeError("outer") from error
            else:
                notes.append("no error")
            finally:
                notes.append("cleanup")
        except RuntimeError as error:
            notes += [error.__cause__, error.__context__ is error.__cause__]
        except OSError as error:
            current = sys.exc_info()[1]
            notes += [error.__context__, current is error, error.__suppress_context__]
        notes.append(sys.exc_info()[0])
        if kind != 1:
            notes.append(hidden(kind))
        if kind == 3:
            try:
                notes[100]
            except IndexError:
                raise ArithmeticError("with context")  # noqa: B904
        return x * len(notes), notes

    return Scenario(function, [call(ones(), kind) for kind in range(4)])


@scenario(breaks=None)
def test_descriptors_and_slots_182742() -> Scenario:
    """Slots, data descriptors, cached properties, class and static methods."""

    def before(index: int) -> None:
        if index == 0:
            Series.computed = 0

    def function(x: Tensor, part: Part) -> Any:
        part.size -= 2
        part.data = part.data - x
        series = Series.upto(4)
        y = x * part.size + series.product + series.product - Series.halve(9)
        return y, "product" in vars(series), type(part).size is Part.__dict__["size"]

    calls = [call(ones(), Part(torch.zeros(2))), call(ones(), Part(torch.ones(2)))]
    return Scenario(function, calls, before=before, after=lambda i, r: Series.computed)
