"""The order of sets that leave a region: that of eager's, since they are made by the same steps."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dynacap.testing import Scenario, call, check_scenario

X = torch.arange(3.0)
L = [70, 3, 11, 19, 3, 43, 27, 8, 64]
# 3, 11, 19 and their kin lie in one place of a small table: who came first matters.
MADE: dict[str, Callable[..., Any]] = {
    "copy": lambda a, b, d: a.copy(),
    "set": lambda a, b, d: set(a),
    "frozenset": lambda a, b, d: frozenset(a),
    "of a list": lambda a, b, d: frozenset(L),
    "of an iterator": lambda a, b, d: frozenset(n for n in L),
    "of a dict": lambda a, b, d: (set(d), frozenset(d)),
    "or": lambda a, b, d: (a | b, b | a, a.union(L, b), {*a, *b}),
    "and": lambda a, b, d: (a & b, b & a, a.intersection(L), a.intersection(L, b)),
    "sub": lambda a, b, d: (a - b, b - a, a.difference(L), a.difference(b, L)),
    "xor": lambda a, b, d: (a ^ b, b ^ a, a.symmetric_difference(L)),
    "keys": lambda a, b, d: (d.keys() | a, d.keys() & a, d.keys() - b, d.keys() ^ b),
    "reflected": lambda a, b, d: (a | d.keys(), a & d.keys(), a - d.keys(), b ^ d.keys()),
    "items": lambda a, b, d: (d.items() | {(1, 2), (3, 3)}, d.items() - a),
}


def orders(value: Any) -> Any:
    """The elements of sets as they show them, and how large their tables are."""
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, list(value), value.__sizeof__()
    return [orders(each) for each in value] if isinstance(value, (list, tuple)) else value


def check(use: Callable[..., Any], breaks: int | None = 0) -> None:
    def build() -> Scenario:
        few = set(range(3, 200, 8))
        for n in range(35, 200, 8):
            few.discard(n)  # a table that is larger than it need be
        many = frozenset(range(60, 0, -4)) | {11, 19, 3}
        given = call(X, few, many, dict.fromkeys((27, 19, 11, 3, 35, 43, 70)))
        return Scenario(use, [given, given], after=lambda i, result: orders(result))

    check_scenario(build, breaks=breaks)


@pytest.mark.parametrize("way", MADE)
def test_made_by_an_operation(way: str) -> None:
    check(lambda x, a, b, d: (x + 1, MADE[way](a, b, d)))


@pytest.mark.parametrize("way", MADE)
def test_made_of_what_was_made(way: str) -> None:
    def use(x: Any, a: Any, b: Any, d: Any) -> Any:
        mine, other = {3, 11, 19, 27}, {n for n in L}
        other.discard(11)
        other |= a
        made = MADE[way](mine, other, d)
        mine.add(70)
        return x + 1, made, mine, other

    check(use)


def test_changed_once_it_was_made() -> None:
    def use(x: Any, a: Any, b: Any, d: Any) -> Any:
        mine = a | b
        mine -= {3, 11}
        mine.add(3)
        kept = mine.copy()
        mine.clear()
        mine.update(d, [11, 3])
        mine.add(3)
        return x + 1, mine, kept, frozenset(kept) - mine

    check(use)


class Counted(frozenset[int]):
    """A subclass, which may have attributes."""

    name = ""


def test_a_subclass() -> None:
    def use(x: Any, a: Any, b: Any, d: Any) -> Any:
        made = Counted(a)
        made.name = "n"
        return x + 1, made, made | b, type(made).__name__, made.name, made.copy()

    check(use)


def test_elements_with_a_hash_of_their_own() -> None:
    class Same:
        def __init__(self, n: int) -> None:
            self.n = n

        def __hash__(self) -> int:
            return self.n % 2

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Same) and self.n == other.n

    def use(x: Any, a: Any, b: Any, d: Any) -> Any:
        mine = {Same(n) for n in (3, 5, 2)}
        both = mine | {Same(3), Same(7)}
        return x + 1, sorted(each.n for each in both), len(mine & both), both

    def build() -> Scenario:
        return Scenario(use, [call(X, 1, 2, 3)], after=lambda i, result: len(result[-1]))

    check_scenario(build, breaks=None)
