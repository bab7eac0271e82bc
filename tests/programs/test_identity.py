"""Objects that are the same in eager are the same after: tuples too, and what holds itself."""

import functools
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


class Thing:
    """A user's object."""

    def method(self) -> Any:
        return self


@program((X,))
def test_a_tuple_that_is_used_twice(x: Tensor) -> Any:
    pair = (x + 1, 2)
    thing = Thing()
    thing.first, thing.second = pair, [pair]  # type: ignore[attr-defined]
    return pair, pair, thing, {"k": pair}, (pair, (pair,))


@program((X, Thing()))
def test_a_tuple_in_two_places_outside(x: Tensor, thing: Any) -> Any:
    pair = (x, 2)
    thing.first, thing.second = pair, [pair]
    return x + 1


@program((X,))
def test_a_tuple_in_what_it_holds(x: Tensor) -> Any:
    mapping: dict[str, Any] = {}
    items: list[Any] = []
    thing = Thing()
    whole = (mapping, x + 1, items, thing, {thing})
    mapping["whole"] = mapping[whole[1:2] and "again"] = whole
    items.append(whole)
    thing.whole = whole  # type: ignore[attr-defined]
    return whole


@program((X,))
def test_a_tuple_in_the_closure_of_what_it_holds(x: Tensor) -> Any:
    whole = (lambda: whole, x + 1)
    return whole, whole[0]() is whole


@program((X,))
def test_a_bound_method_on_its_own_object(x: Tensor) -> Any:
    thing = Thing()
    bound = thing.method
    thing.kept = bound  # type: ignore[attr-defined]
    return bound, x + 1, thing


@program((X,))
def test_a_partial_of_what_refers_to_it(x: Tensor) -> Any:
    def ask() -> Any:
        return bound

    bound = functools.partial(ask)
    return bound, x + 1


@program((X,))
def test_a_slice_of_what_holds_it(x: Tensor) -> Any:
    thing = Thing()
    thing.cut = slice(thing, (thing,))  # type: ignore[attr-defined]
    return thing.cut, x + 1  # type: ignore[attr-defined]


@program((X,))
def test_knots_of_several(x: Tensor) -> Any:
    first, second = Thing(), Thing()
    left = (first, second, x + 1)
    right = (second, left, [left, first])
    first.both = (left, right)  # type: ignore[attr-defined]
    second.both = [(left, right), first.both]  # type: ignore[attr-defined]
    return right, left, first.both  # type: ignore[attr-defined]


@program((X,), breaks=None)
def test_knots_across_a_break(x: Tensor) -> Any:
    def ask() -> Any:
        return whole

    thing = Thing()
    whole = (thing, ask, x + 1)
    thing.whole = whole  # type: ignore[attr-defined]
    print("break")
    return whole, ask() is whole, thing.whole is whole, whole[2] * 2  # type: ignore[attr-defined]
