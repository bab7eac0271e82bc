"""Effects that were once left behind wrongly, each in its smallest form."""

from typing import Any

import torch
from torch import Tensor

import dynacap
from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)
made: list[int] = []


class Slots:
    """An object without a dict; `right` is not set."""

    __slots__ = ("left", "right")


class Key:
    """A key that says when it is hashed and compared."""

    def __init__(self, log: list[Any], name: str) -> None:
        self.log, self.name = log, name

    def __hash__(self) -> int:
        self.log.append("hash")
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        self.log.append("eq")
        return isinstance(other, Key) and self.name == other.name


class Dies:
    """Says when it dies."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("died")


class Tags(set[Any]):
    """A set that counts how often it is made."""

    def __init__(self, items: Any = ()) -> None:
        super().__init__(items)
        made.append(1)


@program((X, Slots()))
def test_slot_set_and_deleted_that_was_not_set(x: Tensor, one: Slots) -> Any:
    one.right = 1  # type: ignore[attr-defined]
    del one.right  # type: ignore[attr-defined]
    return x + 1


@scenario(breaks=None)
def test_keys_that_tell_of_being_hashed() -> Scenario:
    log: list[Any] = []
    table = {Key(log, "a"): 1}

    def function(x: Tensor) -> Any:
        table[Key(log, "a")] = 2
        table[Key(log, "b")] = 3
        return x + len(table)

    return Scenario(function, [call(X.clone())] * 2, watch=lambda: log)


@program((X, []), breaks=None)
def test_temporary_dies_before_the_next_line(x: Tensor, log: list[Any]) -> Any:
    one = Dies(log)
    del one
    log.append("after")
    return x + 1


@program((X, [], {}), breaks=None)
def test_overwritten_item_dies_before_the_next_line(x: Tensor, log: Any, held: Any) -> Any:
    held["one"] = Dies(log)
    log.append("held")
    held["one"] = None
    log.append("after")
    return x + 1


def listed(x: Tensor, numbers: set[int]) -> Any:
    return x + 1, list(numbers)


@scenario()
def test_equal_sets_that_show_another_order() -> Scenario:
    calls = [call(X, {0, 8}), call(X, {8, 0}), call(X, {0, 8})]
    return Scenario(listed, calls, after=lambda index, result: list(calls[index].args[1]))


@scenario()
def test_order_of_a_set_after_its_changes() -> Scenario:
    def function(x: Tensor, numbers: set[int]) -> Any:
        numbers.discard(8)
        numbers.add(16)
        numbers |= {24, 9}
        numbers.symmetric_difference_update([1, 5])
        inside = set(range(40))
        for number in range(38):
            inside.discard(number)
        inside |= {64, 1}
        return x + 1, inside, frozenset(inside)

    def after(index: int, result: Any) -> Any:
        return [list(one) for one in (calls[index].args[1], *result[1:])]

    calls = [call(X, {8, 0}), call(X, set(range(0, 90, 8)))]
    return Scenario(function, calls, after=after)


@program((X,))
def test_order_of_a_set_made_from_constants(x: Tensor) -> Any:
    numbers = {30, 1, 17, 8, 9, 25}
    more = {*numbers, 33, 16}
    return x + 1, list(numbers), sorted(more), [*more], str(more)


@program((X, {1, 2, 3}), breaks=None)
def test_a_set_knows_where_it_last_popped(x: Tensor, numbers: set[int]) -> Any:
    first = numbers.pop()
    numbers.clear()
    numbers.update({1, 2, 3})
    return x + 1, first, numbers.pop()


@program((X,), watch=["made"])
def test_set_of_a_subclass_is_made_once(x: Tensor) -> Any:
    tags = Tags([1, 2])
    tags.add(3)
    return x + len(tags), tags, len(made)


def test_a_key_that_is_gone_when_the_effects_come() -> None:
    """As by a finalizer that the garbage collector runs in another thread."""
    cache = {"kept": 1, "taken": 2}

    def backend(module: Any, example_inputs: Any) -> Any:
        def run(*given: Any) -> Any:
            cache.pop("taken", None)
            return module(*given)

        return run

    def function(x: Tensor) -> Any:
        return x + 1, cache.pop("taken", None)

    cache["taken"] = 3
    result, found = dynacap.compile(function, backend=backend)(X)
    assert torch.equal(result, X + 1)
    assert (found, cache) == (3, {"kept": 1})
