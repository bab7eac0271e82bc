"""Index arithmetic says what integer arithmetic says, and undoes reshapes."""

import itertools
import random

import pytest

from dynacap.backends.native.loops.index import Axis, Index, Quotient

pytestmark = pytest.mark.torch  # the package that it lies in loads torch


def value(index: Index, at: dict[Axis, int]) -> int:
    """What an index comes to for given counters."""
    total = index.const
    for atom, factor in index.terms.items():
        if isinstance(atom, Quotient):
            total += factor * (value(atom.dividend, at) // atom.divisor)
        else:
            total += factor * at[atom]
    return total


def test_a_split_and_joined_counter_is_itself() -> None:
    i = Index.of(Axis(24, "i"))
    assert (i // 4) * 4 + i % 4 == i
    assert (i // 12) * 12 + (i // 4 % 3) * 4 + i % 4 == i


def test_division_drops_what_stays_below_and_keeps_what_does_not() -> None:
    i, j = Index.of(Axis(3, "i")), Index.of(Axis(4, "j"))
    flat = i * 4 + j
    assert flat // 4 == i
    assert flat % 4 == j
    assert str((flat + 1) // 4) == "i + (j + 1)/4"
    assert str((i * 4 + j) // 8) == "(i)/2"


@pytest.mark.parametrize("seed", range(40))
def test_simplified_arithmetic_agrees_with_integers(seed: int) -> None:
    rng = random.Random(seed)
    axes = [Axis(rng.choice([1, 2, 3, 4, 6])) for _ in range(3)]
    index = Index({axis: rng.choice([1, 2, 3, 4, 12]) for axis in axes}, rng.randrange(5))
    steps = [(rng.choice("/%*+"), rng.choice([2, 3, 4, 6])) for _ in range(5)]
    plain = {"/": lambda a, b: a // b, "%": lambda a, b: a % b, "*": lambda a, b: a * b}
    plain["+"] = lambda a, b: a + b
    result = index
    for sign, number in steps:
        result = plain[sign](result, number)
    low, high = result.bounds()
    for counters in itertools.product(*(range(axis.size) for axis in axes)):
        at = dict(zip(axes, counters, strict=True))
        expected = value(index, at)
        for sign, number in steps:
            expected = plain[sign](expected, number)
        assert value(result, at) == expected
        assert low <= expected <= high
