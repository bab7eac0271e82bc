"""Comprehensions, which newer Pythons inline into the function around them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.ones(3)


@program((X,), graphs=1, breaks=0)
def test_names_keep_their_values(x: Tensor) -> Any:
    i = 7
    doubled = [x * i for i in range(3)]
    nested = [[i + j for j in range(2)] for i in range(2)]
    return doubled, nested, i, {i: j for i, j in enumerate("ab")}, {i % 2 for i in range(4)}


@program((X,), graphs=1, breaks=0)
def test_name_of_a_cell(x: Tensor) -> Any:
    k = 10

    def read() -> int:
        return k

    found = [x + k for k in range(3) if k]
    return found, read(), k


@program((X,), graphs=1, breaks=0)
def test_closures_over_the_variable(x: Tensor) -> Any:
    late = [lambda: x + i for i in range(3)]
    early = [(lambda: (x * i, j))() for i in range(2) for j in range(i + 1)]
    return [each() for each in late], early


@program((X,), breaks=3)
def test_break_where_a_cell_was(x: Tensor) -> Any:
    k = 10

    def read() -> int:
        return k

    found = [x + k for k in range(3) if print(k) is None]
    return found, read(), x * k


@program((X,), breaks=3)
def test_break_under_closures(x: Tensor) -> Any:
    found = [[(lambda: (x + a, b))() for a in range(2) if print(a) is None] for b in range(2)]
    return found, x + 1


@program((X,))
def test_exception_restores_names(x: Tensor) -> Any:
    i = 5
    try:
        found: Any = [x / (1 // (i - 1)) for i in range(3)]
    except ZeroDivisionError as error:
        found = str(error)
    return found, i, x * i


@program((X,), graphs=1, breaks=0)
def test_a_name_that_is_bound_there_alone(x: Tensor) -> Any:
    found = [x * late for late in range(2)]
    try:
        late  # type: ignore[used-before-def]  # noqa: B018
    except NameError as error:
        return found, str(error)
    late = 1
    return late


class Base:
    """Has a method that the class below extends."""

    name = "base"

    def make(self, x: Tensor, scale: int = 1) -> Tensor:
        """Scale."""
        return x * scale


class Derived(Base):
    """Calls super in each way."""

    name = "derived"

    def make(self, x: Tensor, scale: int = 1) -> Tensor:
        """Scale twice, and more."""
        whole = super().make(x, scale=scale) + super(Derived, self).make(x)
        return whole + len(super().name)


@program((X,), graphs=1, breaks=0)
def test_super(x: Tensor) -> Any:
    return Derived().make(x, 3)


def _delegates(x: Tensor) -> Iterator[Any]:
    result = yield from _fails(x)
    yield result


def _fails(x: Tensor) -> Iterator[Any]:
    try:
        yield x
    except ValueError:
        yield x + 1
    return x + 2  # type: ignore[return-value]


@program((X,), graphs=1, breaks=0)
def test_throw_through_yield_from(x: Tensor) -> Any:
    made: Any = _delegates(x)
    return next(made), made.throw(ValueError("in")), next(made), next(made, None)


@program((X,), graphs=1, breaks=0)
def test_stop_iteration_in_a_generator(x: Tensor) -> Any:
    def stops() -> Iterator[int]:
        yield 1
        raise StopIteration(3)

    try:
        return list(stops())
    except RuntimeError as error:
        cause = error.__cause__
        return str(error), repr(cause), error.__context__ is cause, x + 1


@program((X,), breaks=5)
def test_truth_of_a_comparison(x: Tensor) -> Any:
    if x.sum() > 0 and not (x.mean() < 0):
        x = x * 2
    while x.sum() < 100:
        x = x * 3 + 50
    return x, not x.sum() > 0


@program((X,), graphs=1, breaks=0)
def test_slices(x: Tensor) -> Any:
    y = x.clone()
    y[0:1] = 3
    items: list[Any] = [1, 2, 3]
    items[1:] = [x, y[1:]]
    del items[:1]
    return y, items, f"{items[0].shape!r:>20}"
