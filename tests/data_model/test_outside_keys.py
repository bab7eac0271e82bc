"""Keys of dicts from outside that are equal to those asked for without being them."""

from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, check_same, program, scenario

X = torch.arange(3.0)


class A: ...


class B(A): ...


def by_types(x: Tensor, table: dict[Any, Any], a: object, b: object) -> Any:
    found = table.get((type(a), type(b)), 0)
    return x + found, (type(b), type(a)) in table


def test_pairs_of_classes() -> None:
    check_same(by_types, (X, {(A, B): 2}, A(), B()), (X, {(A, B): 2}, B(), A()))


@scenario()
def test_pairs_of_classes_that_come_later() -> Scenario:
    table: dict[Any, Any] = {}

    def function(x: Tensor) -> Any:
        key = (type(x), A)
        if key not in table:
            table[key] = len(table) + 1
        return x * table[key], list(table)

    def before(i: int) -> None:
        if i == 2:
            table.clear()
            table[B, B] = 7

    return Scenario(function, [call(X)] * 4, before=before)


@program(
    (X, {1: 5}, 1.0),
    (X, {True: 6}, 1),
    (X, {1.0: 7}, True),
    (X, {2: 5}, 1.0),
    (X, {(1, 2.0): 3}, (1.0, 2)),
    (X, {None: 1}, None),
)
def test_numbers_that_are_equal(x: Tensor, table: dict[Any, Any], key: Any) -> Any:
    return x * table.get(key, 0), key in table


@scenario()
def test_equal_number_that_comes_later() -> Scenario:
    table: dict[Any, Any] = {2.0: 1}

    def function(x: Tensor, key: float) -> Any:
        return x + table.get(1.0, 0), table.get(2, 0)

    def before(i: int) -> None:
        if i == 1:
            table[1] = 4

    return Scenario(function, [call(X, 1.0)] * 3, before=before)
