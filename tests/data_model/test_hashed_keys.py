"""Keys that answer for their hash and equality: they are asked again when their dict is rebuilt."""

from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(3.0)


class Key:
    """Equal by number; all have the same hash, unless they refuse to say."""

    fails = False

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        if self.fails:
            raise ValueError("no hash")
        return 42

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Key) and self.number == other.number


def shown(mapping: Any) -> Any:
    return sorted((key.number, mapping[key] if type(mapping) is dict else 0) for key in mapping)


@program((X,), (X,), breaks=None)
def test_containers_are_filled_with_them(x: Tensor) -> Any:
    key = Key(1)
    numbers = {key: 1, Key(2): 2}
    numbers[Key(1)] = 3
    pair, members = {(Key(3), 1): 4}, {Key(1), Key(2), Key(1)}
    return x + 1, shown(numbers), next(iter(numbers)) is key, pair[Key(3), 1], len(members)


@program((X,), (X,), breaks=1)
def test_one_that_refuses_later(x: Tensor) -> Any:
    key = Key(1)
    found = {key: 1}
    key.fails = True
    return x + 1, len(found), [*found] == [key], found, key


@program((X,), (X,), breaks=1)
def test_two_that_become_equal(x: Tensor) -> Any:
    key = Key(1)
    found = {key: 1, Key(2): 2}
    key.number = 2
    return x + 1, len(found), [each.number for each in found], found


READY: list[bool] = []


class Late:
    """May be asked only once something else is there."""

    def __hash__(self) -> int:
        return len(READY)

    def __eq__(self, other: object) -> bool:
        return other is self


@program((X,), (X,), watch=("READY",))
def test_they_are_asked_behind_other_effects(x: Tensor) -> Any:
    READY.append(True)
    found = {Late(): 1}
    return x + 1, len(found), list(map(type, found)), found[next(iter(found))]


@program((X,), (X,), breaks=None)
def test_the_container_that_they_look_at(x: Tensor) -> Any:
    found: Any = {}

    class Looks(int):
        def __hash__(self) -> int:
            return 13

        def __eq__(self, other: object) -> bool:
            if len(found) > 1:
                found.clear()
            return False

    found = {Looks(1), Looks(2)}
    first = len(found)
    Looks(3) in found  # noqa: B015
    return x + 1, first, len(found)


@program((X,), (X,), breaks=None)
def test_a_set_that_was_cleared_asks_nobody(x: Tensor) -> Any:
    key = Key(1)
    members = {key, Key(2)}
    members.clear()
    key.fails = True
    return x + 1, members, key


@program((X,), (X,), breaks=None)
def test_iterators_and_frozen_sets_of_them(x: Tensor) -> Any:
    found = {Key(1): 2, Key(2): 3}
    keys = iter(found)
    next(keys)
    return x + 1, next(keys).number, len(frozenset(found)), found[Key(2)]


class Name(str):
    """A key like any text, but in Python; the hash of a text is larger than that of a number."""

    def __hash__(self) -> int:
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)


class Odd:
    def __hash__(self) -> int:
        return 1.5  # type: ignore[return-value]


@program((X,), (X,), breaks=None)
def test_one_that_is_equal_to_a_text(x: Tensor) -> Any:
    lengths = []
    for letter in "abcdefghij":
        found: dict[str, int] = {}
        found[Name(letter)] = 1
        found.update({letter: 2, "other": 3})
        lengths.append((len(found), len({Name(letter), letter})))
    return x + 1, lengths


@program((X,), (X,), breaks=0)
def test_a_hash_that_is_no_number(x: Tensor) -> Any:
    try:
        return {Odd(): 1}
    except TypeError as error:
        return str(error), x + 1
