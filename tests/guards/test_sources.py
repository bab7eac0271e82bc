"""Each kind of source reads what it should, says its name in the user's words, and runs nothing."""

import collections
import functools
import gc
import json
import sys
import types
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from dynacap.guards import (
    Attr,
    CellContents,
    Checker,
    ClassAttr,
    ClosureCell,
    Const,
    ConstEq,
    DequeItem,
    DictItem,
    DictKey,
    FunctionBuiltins,
    FunctionDefault,
    FunctionGlobals,
    GuardSet,
    InstanceDict,
    Local,
    SeqItem,
    Source,
    SuperAttr,
    SysModule,
    TypeOf,
)
from dynacap.guards.iterators import (
    MOST_COPIED,
    Container,
    IteratorPart,
    IteratorShape,
    NextItem,
    NextNumber,
    Position,
)

X = Local(0, "x")


class Base:
    shared: ClassVar[str] = "base"

    def method(self) -> str:
        return "base"


class Child(Base):
    shared = "child"

    def __init__(self) -> None:
        self.own = "own"

    @property
    def computed(self) -> str:
        raise AssertionError("a property ran")

    def __getattr__(self, name: str) -> str:
        raise AssertionError("__getattr__ ran")


class Slotted:
    __slots__ = ("empty", "filled")

    def __init__(self) -> None:
        self.filled = "filled"


class Open:
    pass


class Hiding(Open):
    """Hides its dict behind a property."""

    def __init__(self) -> None:
        object.__setattr__(self, "own", "own")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise AssertionError("a property ran")


class ListChild(list[Any]):
    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("__getitem__ ran")


class DictChild(dict[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("__getitem__ ran")

    def __iter__(self) -> Any:
        raise AssertionError("__iter__ ran")


def outer() -> Callable[..., object]:
    captured = "captured"

    def inner(a: int, b: str = "default", *, c: str = "keyword") -> str:
        return captured

    return inner


def unset_cell() -> Callable[..., object]:
    later = "for a while"

    def inner() -> object:
        return later  # noqa: F821

    del later
    return inner


INNER = outer()
CELL = vars(types.FunctionType)["__closure__"].__get__(INNER)[0]
SUPER = f"super({__name__}.Child, x)"
A_CLASS = Child
MOVED = collections.OrderedDict.fromkeys("abc")
MOVED.move_to_end("a")
SHARED = [1, 2]

FOUND: list[tuple[Source, object, object, str]] = [
    (X, "value", "value", "x"),
    (Const(json, "json"), None, json, "json"),
    (Const("a"), None, "a", "'a'"),
    (SysModule("json"), None, json, "sys.modules['json']"),
    (DictItem(InstanceDict(X), "own"), Child(), "own", "x.own"),
    (DictItem(InstanceDict(X), "own"), Hiding(), "own", "x.own"),
    (DictItem(InstanceDict(X), "dumps"), json, json.dumps, "x.dumps"),
    (InstanceDict(X), types.SimpleNamespace(a=1), {"a": 1}, "x.__dict__"),
    (FunctionGlobals(X), outer, globals(), "x.__globals__"),
    (DictItem(FunctionGlobals(X), "A_CLASS"), outer, Child, "A_CLASS"),
    (DictItem(FunctionBuiltins(X), "len"), outer, len, "len"),
    (ClosureCell(X, 0, "captured"), INNER, CELL, "captured"),
    (CellContents(ClosureCell(X, 0, "captured"), "captured"), INNER, "captured", "captured"),
    (FunctionDefault(X, 0), INNER, "default", "x.__defaults__[0]"),
    (DictItem(Attr(X, "__kwdefaults__"), "c"), INNER, "keyword", "x.__kwdefaults__['c']"),
    (DictItem(X, "a"), {"a": 1}, 1, "x['a']"),
    (DictItem(X, 2), {True: 0, 2: 1}, 1, "x[2]"),
    (DictItem(X, (1, "a")), {(1, "a"): 5}, 5, "x[(1, 'a')]"),
    (DictItem(X, "a"), DictChild(a=1), 1, "x['a']"),
    (DictItem(X, A_CLASS), {Base: 0, Child: 1}, 1, f"x[{__name__}.Child]"),
    (DictKey(X, 1), {"a": 0, "b": 0}, "b", "list(x)[1]"),
    (DictKey(X, 0), MOVED, "b", "list(x)[0]"),
    (DictKey(X, 2), MOVED, "a", "list(x)[2]"),
    (DictKey(X, 0), DictChild(a=1), "a", "list(x)[0]"),
    (SeqItem(X, 1), [1, 2], 2, "x[1]"),
    (SeqItem(X, 1), (1, 2), 2, "x[1]"),
    (SeqItem(X, 0), ListChild([7]), 7, "x[0]"),
    (SeqItem(SeqItem(X, 0), 0), [[7]], 7, "x[0][0]"),
    (DequeItem(X, 1), collections.deque([1, 2]), 2, "x[1]"),
    (Attr(X, "__code__"), outer, outer.__code__, "x.__code__"),
    (Attr(X, "filled"), Slotted(), "filled", "x.filled"),
    (Attr(X, "func"), functools.partial(len), len, "x.func"),
    (Attr(X, "__func__"), Child().method, Base.method, "x.__func__"),
    (Attr(X, "start"), slice(1, 2), 1, "x.start"),
    (Attr(X, "maxlen"), collections.deque(maxlen=3), 3, "x.maxlen"),
    (Attr(X, "__name__"), Child, "Child", "x.__name__"),
    (TypeOf(X), Child(), Child, "type(x)"),
    (NextItem(X, 1), iter([5, 6]), 6, "next_item(x, 1)"),
    (NextItem(X, 1), reversed([5, 6]), 5, "next_item(x, 1)"),
    (NextItem(X, 0), iter(ListChild([7])), 7, "next_item(x, 0)"),
    (NextItem(X, 1), iter({"a": 1, "b": 2}.items()), ("b", 2), "next_item(x, 1)"),
    (NextNumber(X, 2), enumerate("abc", 5), 7, "next_number(x, 2)"),
    (Container(X), iter(SHARED), SHARED, "container(x)"),
    (Position(X), iter(SHARED), 0, "position(x)"),
    (IteratorPart(X, 0), map(len, []), len, "iterator_part(x, 0)"),
    (IteratorShape(X), zip([], [], strict=True), (2, True), "iterator_shape(x)"),
    (ClassAttr(TypeOf(X), "shared"), Child(), "child", "type(x).shared"),
    (ClassAttr(X, "method"), Child, Base.method, "x.method"),
    (ClassAttr(TypeOf(X), "computed"), Child(), Child.__dict__["computed"], "type(x).computed"),
    (SuperAttr(TypeOf(X), Child, "shared"), Child(), "base", f"super({__name__}.Child, x).shared"),
    (
        SuperAttr(X, Child, "__init__"),
        Child,
        object.__init__,
        f"super({__name__}.Child, x).__init__",
    ),
]
ABSENT: list[tuple[Source, object]] = [
    (Local(1, "y"), "only one"),
    (SysModule("no such module"), None),
    (DictItem(InstanceDict(X), "other"), Child()),
    (InstanceDict(X), Slotted()),
    (InstanceDict(X), 3),
    (InstanceDict(X), Child),
    (FunctionGlobals(X), len),
    (FunctionBuiltins(X), Child()),
    (ClosureCell(X, 0, "a"), outer),
    (ClosureCell(X, 1, "a"), INNER),
    (CellContents(ClosureCell(X, 0, "later"), "later"), unset_cell()),
    (CellContents(X, "a"), 3),
    (FunctionDefault(X, 1), INNER),
    (FunctionDefault(X, 0), outer),
    (DictItem(X, "a"), {}),
    (DictItem(X, "a"), ["a"]),
    (DictItem(X, 1), {True: 1, 2.0: 2}),
    (DictKey(X, 2), {"a": 0, "b": 0}),
    (DictKey(X, 3), MOVED),
    (DictKey(X, 0), ["a"]),
    (SeqItem(X, 2), [1, 2]),
    (SeqItem(X, 2), (1, 2)),
    (SeqItem(X, 0), "ab"),
    (DequeItem(X, 2), collections.deque([1, 2])),
    (DequeItem(X, 0), [1]),
    (NextItem(X, 2), iter([5, 6])),
    (NextItem(X, 2), reversed([5, 6])),
    (NextItem(X, 0), [5, 6]),
    (NextItem(X, 0), iter(dict.fromkeys(range(MOST_COPIED + 1)))),
    (NextNumber(X, 0), zip("a", "b", strict=False)),
    (Container(X), iter((1, 2))),
    (Position(X), zip("a")),
    (IteratorPart(X, 2), zip("a", "b", strict=False)),
    (IteratorPart(X, 0), [len]),
    (IteratorShape(X), iter([])),
    (Attr(X, "empty"), Slotted()),
    (Attr(X, "computed"), Child()),
    (Attr(X, "shared"), Child()),
    (Attr(X, "nothing"), Child()),
    (ClassAttr(TypeOf(X), "own"), Child()),
    (ClassAttr(X, "shared"), Child()),
    (SuperAttr(X, Base, "shared"), Child),
    (SuperAttr(X, int, "shared"), Child),
    (SuperAttr(X, Base, "shared"), Child()),
]


@pytest.mark.parametrize(
    ("source", "value", "found", "name"),
    FOUND,
    ids=[f"{type(row[0]).__name__}-{i}" for i, row in enumerate(FOUND)],
)
def test_found(
    make_checker: Callable[..., Checker], source: Source, value: object, found: object, name: str
) -> None:
    checker = make_checker(GuardSet(), [source])
    for _ in range(3):
        slots = checker.check((value,))
        assert slots is not None
        assert slots[0] is found or slots[0] == found
    assert source.name() == name
    assert checker.explain((value,)) is None


@pytest.mark.parametrize(
    ("source", "value"),
    ABSENT,
    ids=[f"{type(row[0]).__name__}-{i}" for i, row in enumerate(ABSENT)],
)
def test_absent(make_checker: Callable[..., Checker], source: Source, value: object) -> None:
    checker = make_checker(GuardSet(), [source])
    for _ in range(3):
        assert checker.check((value,)) is None
    failure = checker.explain((value,))
    assert failure is not None
    assert "nothing there" in str(failure)


def test_names_of_module_parts() -> None:
    layers = DictItem(DictItem(InstanceDict(Local(1, "self")), "_modules"), "layers")
    layer = DictItem(DictItem(InstanceDict(layers), "_modules"), "3")
    weight = DictItem(DictItem(InstanceDict(layer), "_parameters"), "weight")
    running = DictItem(DictItem(InstanceDict(layer), "_buffers"), "running_mean")
    assert weight.name() == "self.layers[3].weight"
    assert running.name() == "self.layers[3].running_mean"
    assert (
        DictItem(DictItem(InstanceDict(layer), "_other"), "a").name()
        == "self.layers[3]._other['a']"
    )
    assert repr(weight) == "<DictItem self.layers[3].weight>"


def test_equality_is_exact() -> None:
    assert DictItem(X, "a") == DictItem(Local(0, "x"), "a")
    assert DictItem(X, 1) != DictItem(X, True)
    assert DictItem(X, 1) != DictItem(X, 1.0)
    assert DictItem(X, 0.0) != DictItem(X, -0.0)
    assert DictItem(X, Child) == DictItem(X, Child)
    assert DictItem(X, Child) != DictItem(X, Base)
    assert SeqItem(X, 1) != DequeItem(X, 1)
    assert InstanceDict(X) != InstanceDict(Local(1, "x"))
    assert Const(json) == Const(json)
    assert Const(1) != Const(True)
    assert len({SeqItem(X, 1), SeqItem(X, 1), SeqItem(X, 2)}) == 2


def test_long_paths(make_checker: Callable[..., Checker]) -> None:
    """A linked list of thousands: neither comparing nor checking nor naming recurses in C."""
    depth = 5_000
    value: Any = "end"
    first: Source = X
    second: Source = Local(0, "x")
    for _ in range(depth):
        value = [value]
        first, second = SeqItem(first, 0), SeqItem(second, 0)
    assert first == second
    checker = make_checker(GuardSet([ConstEq(first, "end")]), [second])
    for _ in range(3):
        assert checker.check((value,)) == ("end",)
    assert first.root() is X
    while isinstance(value, list):  # so that freeing it does not recurse either
        value = value[0]


def test_slots_are_given_in_order(make_checker: Callable[..., Checker]) -> None:
    obj = Child()
    own, kind = DictItem(InstanceDict(X), "own"), TypeOf(X)
    checker = make_checker(GuardSet([ConstEq(own, "own")]), [kind, own, X, own])
    assert checker.check((obj,)) == (Child, "own", obj, "own")


def test_reading_leaves_counts_alone(make_checker: Callable[..., Checker]) -> None:
    for source, value, _, _ in FOUND:
        checker = make_checker(GuardSet(), [source])
        checker.check((value,))
        gc.collect()
        before = sys.getrefcount(value)
        for _ in range(50):
            checker.check((value,))
        assert abs(sys.getrefcount(value) - before) <= 1, source
