"""Smaller modules: re, bisect, inspect, sys, types; class attributes and identities."""

import bisect
import collections
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)
WORD = re.compile(r"[a-z]+")
TABLE = {"a": 1}


@program((X,))
def test_regular_expressions(x: Tensor) -> Any:
    found = WORD.search("12 ab cd")
    assert found is not None
    return (
        found.group(),
        found.span(),
        WORD.findall("ab cd"),
        re.sub("a", "b", "banana"),
        re.split(r"\s+", "a b  c"),
        bool(re.match("x", "y")),
        re.escape("a.b"),
        re.compile("x+").pattern,
        x + len(WORD.pattern),
    )


@program((X,))
def test_bisect(x: Tensor) -> Any:
    items = [1, 3, 3, 5]
    bisect.insort(items, 4)
    bisect.insort_left(items, 3)
    return (
        items,
        bisect.bisect(items, 3),
        bisect.bisect_left(items, 3),
        bisect.bisect_right(["a", "bb"], 1, key=len),
        bisect.bisect_left(items, 3, 2, 4),
        x + 1,
    )


def with_parameters(a: int, b: int = 2, *rest: Any, c: Any = None, **more: Any) -> None:
    """Only looked at."""


@program((X,))
def test_signatures(x: Tensor) -> Any:
    signature = inspect.signature(with_parameters)
    names = signature.parameters
    return (
        list(names),
        len(names),
        "b" in names,
        names["b"].default,
        [p.name for p in names.values() if p.kind is inspect.Parameter.KEYWORD_ONLY],
        set(names) >= {"a"},
        len(inspect.signature(torch.nn.Linear.forward).parameters),
        x + 1,
    )


@program((X,))
def test_proxies_and_globals(x: Tensor) -> Any:
    proxy = types.MappingProxyType({"a": 1, "b": x})
    return (
        proxy["a"],
        len(proxy),
        "b" in proxy,
        list(proxy),
        proxy.get("z", 5),
        dict(proxy.items()) == {"a": 1, "b": x},
        globals()["TABLE"]["a"],
        proxy,
        x + 1,
    )


@program((X,))
def test_the_handled_exception(x: Tensor) -> Any:
    before = sys.exc_info()
    try:
        raise ValueError("a")
    except ValueError as error:
        kind, value, _ = sys.exc_info()
        inside = kind is ValueError, value is error, sys.exception() is error
    return before, inside, sys.exception(), x + 1


class Registry:
    """Counts in its class."""

    made = 0
    names: list[str] = []

    def __init__(self, name: str) -> None:
        type(self).made += 1
        self.names.append(name)


class Inherited(Registry):
    """Counts for itself from the first time on."""


@scenario()
def test_class_attributes() -> Scenario:
    Registry.made, Registry.names = 0, []
    if "made" in vars(Inherited):
        del Inherited.made

    def function(x: Tensor) -> Any:
        Registry("a")
        Inherited("b")
        Inherited("c")
        return Registry.made, Inherited.made, x + Registry.made

    state: Callable[[int, Any], Any] = lambda i, r: (  # noqa: E731
        Registry.made,
        vars(Inherited).get("made"),
        list(Registry.names),
    )
    return Scenario(function, [call(X), call(X)], after=state)


class Thing:
    """Has no hash of its own."""


@program((X, [Thing(), Thing()]), (X, [Thing()] * 2))
def test_identities(x: Tensor, things: list[Thing]) -> Any:
    a, b = things
    seen = {id(a): "a"}
    seen[id(b)] = "b"
    return id(a) == id(b), len(seen), seen[id(a)], hash(a) == hash(b), len({a, b}), x + len(seen)


@program(
    call(X, collections.deque([1, 2])),
    call(X, collections.deque([1, 2], 2)),
    call(X, collections.deque([1, 2], 5)),
)
def test_a_deques_maximal_length_matters(x: Tensor, d: Any) -> Any:
    d.append(3)
    return list(d), d.maxlen, x + 1


@program(call(X, {"a": 1}), call(X, {}), call(X, {"b": 2}), call(X, {"a": None}))
def test_presence_matters_though_the_value_does_not(x: Tensor, d: dict[str, Any]) -> Any:
    return "a" in d, d.get("b") is None, x + 1


def _raises_half_way() -> Any:
    yield 1
    yield 2
    raise ValueError("half way")


@program((X, [0], {0}, {0: 0}))
def test_half_done_updates(x: Tensor, items: list[int], members: set[int], table: Any) -> Any:
    caught = []
    for update in (
        items.extend,
        members.update,
        lambda pairs: table.update((n, n) for n in pairs),
    ):
        try:
            update(_raises_half_way())
        except ValueError as error:
            caught.append(str(error))
    try:
        items.sort(key=lambda n: 1 / n)
    except ZeroDivisionError:
        caught.append("sort")
    return caught, x + 1
