"""Keys of dicts from outside that are equal to those asked for without being them."""

import types
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
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


KEPT = A()
MAKERS: dict[str, Any] = {"object": A, "tensor": X.clone, "def": lambda: lambda: None}
LOOKS = {
    "get": lambda keys, o: dict.fromkeys(keys, 1).get(o),
    "in a dict": lambda keys, o: o in dict.fromkeys(keys),
    "in a set": lambda keys, o: o in set(keys),
    "added": lambda keys, o: len({*keys, o}),
    "stored": lambda keys, o: len({**dict.fromkeys(keys, 1), o: 2}),
    "equal": lambda keys, o: dict.fromkeys(keys, 1) == {o: 1},
    "pairs": lambda keys, o: {(key, 1): 1 for key in keys}.get((o, 1)),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_another_object_then_the_same(look: Any, make: Any) -> None:
    """Objects that were no keys of a container made inside may be so in a later call."""

    def function(x: Tensor, keys: list[Any], o: Any) -> Any:
        return x + 1, look(keys, o)

    key, other = make(), make()
    check_same(function, (X, [key], other), (X, [key], key), (X, [other, key], key))


OUTSIDE = {
    "get": lambda table, o: table.get(o),
    "in": lambda table, o: o in table,
    "pop": lambda table, o: table.pop(o, None),
    "setdefault": lambda table, o: table.setdefault(o, 3),
    "set": lambda table, o: table.update({o: 4}),
    "equal": lambda table, o: table == {o: 1},
    "keys": lambda table, o: o in table.keys(),
}


@pytest.mark.parametrize("look", OUTSIDE.values(), ids=OUTSIDE)
def test_another_object_than_the_keys_of_a_dict_from_outside(look: Any) -> None:
    def function(x: Tensor, table: dict[Any, int], o: Any) -> Any:
        return x + 1, look(table, o), list(table.values())

    key = A()
    check_same(function, (X, {key: 1}, A()), (X, {key: 1}, key), (X, {key: 1}, A()))


def test_a_global_among_the_keys() -> None:
    def function(x: Tensor, o: object) -> Any:
        return x + 1, {KEPT: 1}.get(o), o in {KEPT}

    compiled, plain = dynacap.compile(function, backend="eager"), function
    for o in (A(), KEPT, A()):
        assert compiled(X, o)[1:] == plain(X, o)[1:]


class LikeOne:
    """Equal to 1, as it says itself."""

    def __eq__(self, other: object) -> bool:
        return other == 1

    def __hash__(self) -> int:
        return hash(1)


def _comes_later(asked: Any, comes: Any) -> Scenario:
    table: dict[Any, Any] = {}

    def function(x: Tensor) -> Any:
        return x + table.get(asked, 0), asked in table

    def before(i: int) -> None:
        table.update({comes: 4} if i == 1 else {})

    return Scenario(function, [call(X)] * 3, before=before)


@scenario()
def test_true_comes_where_one_was_missing() -> Scenario:
    return _comes_later(1, True)


@scenario()
def test_a_number_comes_that_is_equal_to_the_missing_one() -> Scenario:
    return _comes_later(0.0, False)


@scenario()
def test_a_pair_comes_that_is_equal_to_the_missing_one() -> Scenario:
    return _comes_later((1, 2), (True, 2.0))


@scenario()
def test_what_says_itself_to_be_the_missing_number_comes() -> Scenario:
    return _comes_later(1, LikeOne())


NUMBERED = {
    "get": lambda table, n: table.get(n),
    "item": lambda table, n: table[n] if n in table else None,
    "setdefault": lambda table, n: (table.setdefault(n, 3), len(table)),
    "stored": lambda table, n: (table.update({n: 4}), len(table)),
    "pop": lambda table, n: (table.pop(n, None), len(table)),
    "in a set made of them": lambda table, n: n in set(table),
    "in a set": lambda table, n: n in ADDRESSES,
    "of a pair": lambda table, n: PAIRS.get((1, n)),
    "asked for by one of them": lambda table, n: {n: 1}.get(FOUND.value),
}
FOUND = types.SimpleNamespace(value=hash(KEPT))
ADDRESSES, PAIRS = {id(KEPT), hash(KEPT)}, {(1, id(KEPT)): 2, (1, hash(KEPT)): 3}


@pytest.mark.parametrize("number", [id, hash])
@pytest.mark.parametrize("look", NUMBERED.values(), ids=NUMBERED)
def test_addresses_among_numbers_from_outside(look: Any, number: Any) -> None:
    """``GradScaler`` keeps its state by ``id(optimizer)``."""
    other = A()

    def function(x: Tensor, table: dict[int, int]) -> Any:
        return x + 1, look(table, number(KEPT)), look(table, number(other))

    compiled, plain = dynacap.compile(function, backend="eager"), function
    for numbers in ((), (KEPT,), (other, KEPT), (other,)):
        tables = [{number(each): i for i, each in enumerate(numbers)} for _ in range(2)]
        assert compiled(X, tables[0])[1:] == plain(X, tables[1])[1:]
        assert list(tables[0].items()) == list(tables[1].items())
