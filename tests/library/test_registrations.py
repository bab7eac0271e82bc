"""Classes that are registered for abstract ones between two calls."""

import abc
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap

pytestmark = pytest.mark.torch
X = torch.ones(2)

ASKS = {
    "isinstance": lambda obj, base: isinstance(obj, base),
    "issubclass": lambda obj, base: issubclass(type(obj), base),
    "one of two": lambda obj, base: isinstance(obj, (Mapping, base)),
    "instancecheck": lambda obj, base: abc.ABCMeta.__instancecheck__(base, obj),
    "subclasscheck": lambda obj, base: abc.ABCMeta.__subclasscheck__(base, type(obj)),
}


def fresh() -> tuple[Any, Any]:
    """A class, and an abstract one for which it is not registered."""

    class Plain:
        pass

    class Base(abc.ABC):
        pass

    return Plain, Base


@pytest.mark.parametrize("builtin", [False, True])
@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_registered_later(ask: Any, builtin: bool) -> None:
    plain, base = fresh()
    obj = [1] if builtin else plain()

    def function(x: Tensor) -> Any:
        return x * (2 if ask(obj, base) else 3)

    compiled = dynacap.compile(function)
    for _ in range(2):
        assert torch.equal(compiled(X), X * 3)
    base.register(type(obj))
    for _ in range(2):
        assert torch.equal(compiled(X), X * 2)


@pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS)
def test_others_are_registered(ask: Any) -> None:
    plain, base = fresh()
    obj = plain()

    def function(x: Tensor) -> Any:
        return x * (2 if ask(obj, base) else 3)

    compiled = dynacap.compile(function)
    compiled(X)
    before = dynacap.counters()["frames"]
    other, of_others = fresh()
    of_others.register(other)
    base.register(other)
    for _ in range(2):
        assert torch.equal(compiled(X), X * 3)
    assert dynacap.counters()["frames"] == before
