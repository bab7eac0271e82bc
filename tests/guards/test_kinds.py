"""The table of guard kinds: what each takes and what it refuses, the same for both checkers."""

import collections
import functools
import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dynacap.guards import (
    Checker,
    ClassLacks,
    ConstEq,
    DictKeys,
    Guard,
    GuardSet,
    HasKey,
    IdIs,
    LacksKey,
    Length,
    Local,
    NotAliased,
    Predicate,
    SameObject,
    SetEq,
    Source,
    TypeIs,
)
from dynacap.guards.array_kind import Array
from dynacap.guards.iterators import ItemsAhead
from dynacap.guards.ref import Ref

X, Y, Z = Local(0, "x"), Local(1, "y"), Local(2, "z")


class Liar:
    """Claims to be an int and equal to everything, and complains when it is asked."""

    asked: list[str] = []  # noqa: RUF012

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        self.asked.append("__class__")
        return int

    def __eq__(self, other: object) -> bool:
        self.asked.append("__eq__")
        return True

    def __hash__(self) -> int:
        self.asked.append("__hash__")
        return hash("a")

    def __len__(self) -> int:
        self.asked.append("__len__")
        return 3

    def __bool__(self) -> bool:
        self.asked.append("__bool__")
        return True

    def __repr__(self) -> str:
        self.asked.append("__repr__")
        raise RuntimeError("no repr")

    def __getattribute__(self, name: str) -> Any:
        if name != "asked":
            type(self).asked.append(name)
        return object.__getattribute__(self, name)


class IntChild(int):
    def __eq__(self, other: object) -> bool:
        raise AssertionError("a guard compared")

    __hash__ = int.__hash__


class DictChild(dict[Any, Any]):
    def __len__(self) -> int:
        raise AssertionError("a guard asked for the length")

    def __iter__(self) -> Any:
        raise AssertionError("a guard iterated")

    def __getitem__(self, key: object) -> Any:
        raise AssertionError("a guard got an item")


class ListChild(list[Any]):
    def __len__(self) -> int:
        raise AssertionError("a guard asked for the length")


class Plain:
    attribute = 1


class PlainChild(Plain):
    own = 2


class Unordered:
    """A key that hashes like a string."""

    def __hash__(self) -> int:
        return hash("a")


def function() -> None: ...


def ordered(*keys: str) -> Any:
    return collections.OrderedDict.fromkeys(keys)


def moved(*keys: str) -> Any:
    """An OrderedDict whose order is no longer that of its storage."""
    made = ordered(*keys)
    made.move_to_end(keys[0])
    return made


@dataclass
class Row:
    """A guard, values it holds for, values it does not hold for."""

    name: str
    guard: Callable[[Source], Guard]
    good: list[Any]
    bad: list[Any]


A_KEY = Plain()
NAN = float("nan")
TABLE = [
    Row("type", lambda s: TypeIs(s, int), [1, 10**30], [True, IntChild(1), "1", Liar(), None]),
    Row("heap type", lambda s: TypeIs(s, Plain), [Plain()], [PlainChild(), Plain, Liar()]),
    Row("function", lambda s: IdIs(s, function), [function], [lambda: None, len, Liar()]),
    Row("class", lambda s: IdIs(s, Plain), [Plain], [PlainChild, Plain()]),
    Row("builtin", lambda s: IdIs(s, len), [len], [abs]),
    Row("module", lambda s: IdIs(s, math), [math], [types, None]),
    Row("none by identity", lambda s: IdIs(s, None), [None], [0, False]),
    Row("int", lambda s: ConstEq(s, 1), [1, 3 - 2], [2, True, 1.0, IntChild(1), Liar(), None]),
    Row("big int", lambda s: ConstEq(s, 10**40), [10**40], [10**40 + 1, float(10**40)]),
    Row("bool", lambda s: ConstEq(s, True), [True], [False, 1, 1.0]),
    Row("none", lambda s: ConstEq(s, None), [None], [False, 0, ()]),
    Row("zero", lambda s: ConstEq(s, 0.0), [0.0], [-0.0, 0, False]),
    Row("negative zero", lambda s: ConstEq(s, -0.0), [-0.0], [0.0, 0]),
    Row("nan", lambda s: ConstEq(s, NAN), [NAN, float("nan")], [-NAN, math.inf, 0.0]),
    Row("complex", lambda s: ConstEq(s, 1 + 0j), [1 + 0j], [complex(1, -0.0), complex(NAN, 0), 1]),
    Row("str", lambda s: ConstEq(s, "añ"), ["añ", "".join(["a", "ñ"])], ["an", b"a", ""]),
    Row("bytes", lambda s: ConstEq(s, b"ab"), [b"ab", bytes([97, 98])], [b"a", "ab"]),
    Row("ellipsis", lambda s: ConstEq(s, ...), [...], [NotImplemented]),
    Row(
        "tuple",
        lambda s: ConstEq(s, (1, ("a", None, 2.5))),
        [(1, ("a", None, 2.5))],
        [(1, ("a", None, 2)), (True, ("a", None, 2.5)), [1, ("a", None, 2.5)], (1,), (1, Liar())],
    ),
    Row(
        "frozenset",
        lambda s: ConstEq(s, frozenset({1, "a"})),
        [frozenset({"a", 1})],
        [frozenset({1.0, "a"}), {1, "a"}, frozenset({1})],
    ),
    Row(
        "slice",
        lambda s: ConstEq(s, slice(1, None, 2)),
        [slice(1, None, 2)],
        [slice(1, None), slice(True, None, 2)],
    ),
    Row("range", lambda s: ConstEq(s, range(0, 4, 2)), [range(0, 4, 2)], [range(0, 3, 2)]),
    Row("no range", lambda s: ConstEq(s, range(0)), [range(0)], [range(1, 1)]),
    Row(
        "length",
        lambda s: Length(s, 2),
        [
            *([1, 2], (1, 2), {1: 1, 2: 2}, {1, 2}, "ab", b"ab", collections.deque([1, 2])),
            *(DictChild(a=1, b=2), ListChild([1, 2]), bytearray(2), frozenset({1, 2})),
        ],
        [[1], {}, "abc", 2, None, Liar(), Plain()],
    ),
    Row(
        "ahead",
        lambda s: ItemsAhead(s, 2, False),
        [
            *(
                iter([1, 2]),
                iter((1, 2)),
                iter("ab"),
                iter(range(2)),
                iter({1, 2}),
                reversed([1, 2]),
            ),
            *(iter({1: 1, 2: 2}), iter({1: 1, 2: 2}.items()), iter(ListChild([1, 2])), iter(b"ab")),
        ],
        [iter([1]), iter(()), [1, 2], None, zip([1, 2]), Liar(), iter(range(3))],
    ),
    Row(
        "ahead at least",
        lambda s: ItemsAhead(s, 2, True),
        [iter([1, 2, 3]), iter(range(2)), reversed(range(9))],
        [iter([1]), iter(""), 3, iter(int, 1)],
    ),
    Row("empty", lambda s: Length(s, 0), [{}, [], ordered()], [{1: 1}, None]),
    Row(
        "keys",
        lambda s: DictKeys(s, ("a", 1, A_KEY)),
        [{"a": 0, 1: 0, A_KEY: 0}, DictChild({"a": 0, 1: 0, A_KEY: 0})],
        [
            *({1: 0, "a": 0, A_KEY: 0}, {"a": 0, True: 0, A_KEY: 0}, {"a": 0, 1: 0, Plain(): 0}),
            *({"a": 0, 1: 0}, {Liar(): 0, 1: 0, A_KEY: 0}, ["a", 1, A_KEY], None),
        ],
    ),
    Row(
        "order of an OrderedDict",
        lambda s: DictKeys(s, ("b", "c", "a")),
        [moved("a", "b", "c"), ordered("b", "c", "a"), dict.fromkeys("bca")],
        [ordered("a", "b", "c"), moved("b", "c", "a")],
    ),
    Row(
        "key",
        lambda s: HasKey(s, "a"),
        [{"a": 1}, {"b": 1, "a": None}, DictChild(a=1), {1: 1, "a": 2}],
        [{}, {"b": 1}, ["a"], {"A": 1}],
    ),
    Row(
        "no key",
        lambda s: LacksKey(s, "a"),
        [{}, {"b": 1}, DictChild(b=1)],
        [{"a": 1}, {"b": 1, "a": None}, ["b"], None, {1: 1, "a": 2}],
    ),
    Row("int key", lambda s: HasKey(s, 1), [{1: 0}, {"a": 0, 1: 0}], [{True: 0}, {1.0: 0}, {}]),
    Row(
        "no int key",
        lambda s: LacksKey(s, 1),
        [{}, {"a": 1, 2: 0}, {A_KEY: 0}, {(1,): 0}],
        [{1: 0}, {True: 0}, {1.0: 0}, {"a": 1, 1 + 0j: 0}, {Liar(): 0}, {"a"}],
    ),
    Row(
        "no pair",
        lambda s: LacksKey(s, (1, 2)),
        [{}, {(1, 3): 0}, {1: 0}],
        [{(1, 2): 0}, {(True, 2.0): 0}, {(Liar(),): 0}],
    ),
    Row("object key", lambda s: HasKey(s, A_KEY), [{A_KEY: 0}], [{Plain(): 0}, {Liar(): 0}]),
    Row("no object key", lambda s: LacksKey(s, A_KEY), [{Plain(): 0}, {"a": 1}], [{A_KEY: 0}]),
    Row(
        "class without",
        lambda s: ClassLacks(s, "own"),
        [Plain, int, type("Other", (Plain,), {})],
        [PlainChild, type("Other", (PlainChild,), {}), PlainChild(), None],
    ),
    Row(
        "set",
        lambda s: SetEq(s, {Liar, 8}),
        [{Liar, 8}, frozenset([Liar, 8])],
        [{Liar}, {8}, {Liar, 9}, {Liar, 8, 9}, {int, 8}, {Liar(), 8}, [Liar, 8]],
    ),
    Row(
        "set",
        lambda s: SetEq(s, set((8, 0))),
        [set((8, 0)), frozenset((8, 0)), type("Walked", (set,), {"__iter__": None})((8, 0))],
        [{8}, set((0, 8)), {8, 0, 2}, {8.0, 0}, {8, Liar()}, [8, 0], None],
    ),
    Row(
        "array",
        lambda s: Array(s, Ref(np.ndarray), np.dtype("f8"), (2, 3), (24, 8), True),
        [np.zeros((2, 3)), np.ones((4, 3))[:2]],
        [
            np.zeros((2, 3), "f4"),
            np.zeros(6),
            np.zeros((3, 2)).T,
            np.zeros((2, 3)).tolist(),
            np.broadcast_to(np.zeros((2, 3)), (2, 3)),
            np.matrix(np.zeros((2, 3))),
            None,
            Liar(),
        ],
    ),
    Row(
        "scalar",
        lambda s: ConstEq(s, np.float64(0)),
        [np.float64(0)],
        [0.0, np.float32(0), np.float64(-0.0), np.zeros(()), False, None],
    ),
    Row("nan", lambda s: ConstEq(s, np.float32("nan")), [np.float32("nan")], [np.float32(1)]),
    Row(
        "predicate",
        lambda s: Predicate((s,), lambda v: v > 2, "is above 2"),
        [3, 3.5],
        [2, "3", None],
    ),
]
CASES = [
    pytest.param(row, value, expected, id=f"{row.name}-{expected}-{number}")
    for row in TABLE
    for expected, values in ((True, row.good), (False, row.bad))
    for number, value in enumerate(values)
]


@pytest.mark.parametrize(("row", "value", "expected"), CASES)
def test_kind(
    make_checker: Callable[..., Checker], row: Row, value: object, expected: bool
) -> None:
    checker = make_checker(GuardSet([row.guard(X)]), [X])
    Liar.asked.clear()
    for _ in range(3):
        assert checker.check((value,)) == ((value,) if expected else None)
    assert (checker.explain((value,)) is None) == expected
    if row.name != "predicate":  # which runs whatever it is given
        assert Liar.asked == [], "a guard ran the user's code"


def test_kinds_agree_in_turn(make_checker: Callable[..., Checker]) -> None:
    """One checker that sees good and bad values by turns is not confused by the last one."""
    for row in TABLE:
        checker = make_checker(GuardSet([row.guard(X)]))
        for good in row.good:
            for bad in row.bad:
                assert checker.check((good,)) == ()
                assert checker.check((bad,)) is None


def test_relations(make_checker: Callable[..., Checker]) -> None:
    a, b, c = [], [], []  # type: ignore[var-annotated]
    same = make_checker(GuardSet([SameObject(X, Y)]))
    assert same.check((a, a)) == ()
    assert same.check((a, b)) is None
    distinct = make_checker(GuardSet([NotAliased((X, Y, Z))]))
    assert distinct.check((a, b, c)) == ()
    assert distinct.check((a, b, a)) is None
    assert distinct.check((b, b, a)) is None
    both = make_checker(GuardSet([Predicate((X, Y), lambda x, y: x < y, "are in order")]))
    assert both.check((1, 2)) == ()
    assert both.check((2, 1)) is None
    assert both.check((2, "1")) is None


def test_many_distinct(make_checker: Callable[..., Checker]) -> None:
    sources = tuple(Local(i, f"x{i}") for i in range(100))
    checker = make_checker(GuardSet([NotAliased(sources)]))
    values = [object() for _ in sources]
    assert checker.check(tuple(values)) == ()
    values[17] = values[81]
    assert checker.check(tuple(values)) is None


@pytest.mark.parametrize("raised", [ValueError, MemoryError, SystemExit, RecursionError])
def test_exception_in_a_predicate_is_a_no(
    make_checker: Callable[..., Checker], raised: type[BaseException]
) -> None:
    def test(value: object) -> bool:
        raise raised("on purpose")

    checker = make_checker(GuardSet([Predicate((X,), test, "is fine")]))
    assert checker.check((1,)) is None


def test_keyboard_interrupt_goes_on(make_checker: Callable[..., Checker]) -> None:
    def test(value: object) -> bool:
        raise KeyboardInterrupt

    checker = make_checker(GuardSet([Predicate((X,), test, "is fine")]))
    with pytest.raises(KeyboardInterrupt):
        checker.check((1,))


def test_one_source_with_many_guards(make_checker: Callable[..., Checker]) -> None:
    guards = GuardSet([TypeIs(X, dict), Length(X, 2), HasKey(X, "a"), LacksKey(X, "b")])
    checker = make_checker(guards, [X])
    good = {"a": 1, "c": 2}
    assert checker.check((good,)) == (good,)
    for bad in ({"a": 1, "b": 2}, {"a": 1}, {"c": 1, "d": 2}, DictChild(good)):
        assert checker.check((bad,)) is None


def test_partial_is_seen_by_its_type(make_checker: Callable[..., Checker]) -> None:
    checker = make_checker(GuardSet([TypeIs(X, functools.partial)]))
    assert checker.check((functools.partial(len),)) == ()
    assert checker.check((len,)) is None
