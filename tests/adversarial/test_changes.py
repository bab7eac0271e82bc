"""The world changes between two calls: what was read must be read anew."""

import abc
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from dynacap.testing import Scenario, call, scenario

X = torch.arange(6.0).reshape(2, 3)
Step = Callable[[], Any]


def steps(function: Any, changes: list[Step], *args: Any) -> Scenario:
    """A call before the first change and one after each."""

    def before(index: int) -> None:
        if index:
            changes[index - 1]()

    return Scenario(function, [call(X.clone(), *args)] * (len(changes) + 1), before=before)


@scenario(breaks=None)
def test_attribute_through_all_its_places() -> Scenario:
    class Plain:
        k: Any = 1

    one: Any = Plain()

    def function(x: Tensor) -> Any:
        return x + one.k

    return steps(
        function,
        [
            lambda: setattr(one, "k", 5),
            lambda: delattr(one, "k"),
            lambda: setattr(Plain, "k", 7),
            lambda: setattr(Plain, "k", property(lambda self: 11)),
            lambda: setattr(one, "__dict__", {"k": 3}),
            lambda: delattr(Plain, "k"),
            lambda: setattr(one, "__dict__", {}),
            lambda: setattr(Plain, "__getattr__", lambda self, name: 13),
        ],
    )


@scenario(breaks=None)
def test_classes_between() -> Scenario:
    class Base:
        def method(self) -> int:
            return 1

    class Middle(Base):
        pass

    class Last(Middle):
        def method(self) -> int:
            return super().method() * 10

    class Other:
        def method(self) -> int:
            return 8

    one = Last()

    def function(x: Tensor) -> Tensor:
        return x + one.method()

    return steps(
        function,
        [
            lambda: setattr(Middle, "method", lambda self: 2),
            lambda: delattr(Middle, "method"),
            lambda: setattr(Base, "method", lambda self: 4),
            lambda: setattr(Middle, "__bases__", (Other, Base)),
            lambda: setattr(one, "__class__", Middle),
        ],
    )


@scenario(breaks=None)
def test_class_becomes_a_virtual_subclass() -> Scenario:
    class Shape(abc.ABC):  # noqa: B024
        pass

    class Round:
        pass

    one = Round()

    def function(x: Tensor) -> Tensor:
        return x + 1 if isinstance(one, Shape) else x - 1

    return steps(function, [lambda: Shape.register(Round)])


@scenario(breaks=None)
def test_functions_of_torch_are_replaced() -> Scenario:
    originals = F.gelu, torch.sin

    def function(x: Tensor) -> Tensor:
        return F.gelu(x) + torch.sin(x)

    def times(x: Tensor) -> Tensor:
        return x * 100

    return steps(
        function,
        [
            lambda: setattr(F, "gelu", times),
            lambda: setattr(F, "gelu", originals[0]),
            lambda: setattr(torch, "sin", torch.cos),
            lambda: setattr(torch, "sin", originals[1]),
        ],
    )


@scenario(breaks=None)
def test_arguments_become_one_object() -> Scenario:
    def function(x: Tensor, one: dict[str, int], two: dict[str, int]) -> Tensor:
        one["k"] = one.get("k", 0) + 1
        return x + two.get("k", 0)

    first: dict[str, int] = {}
    second: dict[str, int] = {}
    pairs = [(first, second), (first, first), (first, second), (second, second), (second, first)]
    return Scenario(function, [call(X.clone(), *pair) for pair in pairs])


@scenario(breaks=None)
def test_exception_from_outside_changes() -> Scenario:
    error = ValueError("outside")

    def function(x: Tensor) -> Any:
        return x + 1, error.__context__, error.__cause__, error.__suppress_context__

    return steps(
        function,
        [
            lambda: setattr(error, "__context__", KeyError("context")),
            lambda: setattr(error, "__suppress_context__", True),
            lambda: setattr(error, "__cause__", IndexError("cause")),
            lambda: setattr(error, "__context__", None),
        ],
    )


@scenario(breaks=None)
def test_settings_of_torch_that_are_asked() -> Scenario:
    def function(x: Tensor) -> Any:
        return x + 1, torch.get_float32_matmul_precision()

    return steps(
        function,
        [
            lambda: torch.set_float32_matmul_precision("high"),
            lambda: torch.set_float32_matmul_precision("highest"),
        ],
    )


@scenario(breaks=None)
def test_containers_of_all_kinds_in_turn() -> Scenario:
    def function(x: Tensor, items: Any) -> Any:
        return x + len(items), repr(items), f"{items}", type(items).__name__, list(items)

    kinds: list[Any] = [(1, 2), torch.Size([1, 2]), [1, 2], {1: 2, 2: 3}, range(2), (1, True)]
    return Scenario(function, [call(X.clone(), kind) for kind in [*kinds, *kinds]])


@scenario(breaks=None)
def test_state_of_tensors() -> Scenario:
    weight = torch.ones(3, requires_grad=True)

    def function(x: Tensor) -> Any:
        tag = getattr(weight, "tag", None)
        return x + 1, weight.grad, weight.requires_grad, tag

    return steps(
        function,
        [
            lambda: setattr(weight, "grad", torch.ones(3)),
            lambda: setattr(weight, "tag", 5),
            lambda: setattr(weight, "grad", torch.zeros(3)),
            lambda: delattr(weight, "tag"),
            lambda: weight.requires_grad_(False),
        ],
    )
