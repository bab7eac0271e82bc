"""A failure says which guard, expected and found, and the user's line; explaining never raises."""

from collections.abc import Callable
from typing import Any

from dynacap.guards import (
    Checker,
    ConstEq,
    DictItem,
    DictKeys,
    Guard,
    GuardSet,
    HasKey,
    IdIs,
    InstanceDict,
    LacksKey,
    Length,
    Local,
    NotAliased,
    Origin,
    Predicate,
    SameObject,
    SeqItem,
    SetEq,
    TypeIs,
)
from dynacap.guards.explain import failures
from dynacap.guards.plan import Plan

X, Y = Local(0, "x"), Local(1, "y")
HERE = Origin("model.py", 12, "forward")
MakeChecker = Callable[..., Checker]


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


def explained(make_checker: MakeChecker, guard: Guard, *flat: object) -> str:
    failure = make_checker(GuardSet([guard])).explain(flat)
    assert failure is not None
    assert failure.guard is guard
    return str(failure)


def test_sentences(make_checker: MakeChecker) -> None:
    def told(guard: Guard, *flat: object) -> str:
        return explained(make_checker, guard, *flat)

    assert told(ConstEq(X, 3, HERE), 4) == (
        "expected that x is 3; found 4 (needed at model.py:12 in forward)"
    )
    assert told(TypeIs(X, int), "a") == "expected that x is a int; found a str"
    assert told(Length(X, 2), [1]) == "expected that x has 2 items; found 1 items"
    assert told(DictKeys(X, ("a", 1)), {"b": 0}) == (
        "expected that x has the keys ['a', 1]; found ['b']"
    )
    assert told(HasKey(X, "a"), {"b": 0}) == "expected that x has 'a'; found the keys ['b']"
    assert told(LacksKey(X, "a"), {"a": 0}) == "expected that x has no 'a'; found the keys ['a']"
    assert told(IdIs(X, len), print) == (
        "expected that x is the same object as before, function len; found function print"
    )
    assert told(SameObject(X, Y), 1, 2) == (
        "expected that x and y are one object; found two objects"
    )
    assert told(NotAliased((X, Y)), 1, 1) == (
        "expected that x, y are distinct objects; found x and y as one object"
    )
    assert told(SetEq(X, {1}), {2}) == "expected that x has the members list of 1; found set of 2"
    assert told(Predicate((X,), lambda x: x, "is true"), 0) == "expected that x is true; found 0"


def test_absent_values(make_checker: MakeChecker) -> None:
    size = DictItem(InstanceDict(X), "size")
    assert explained(make_checker, ConstEq(size, 3), Unprintable()) == (
        "expected that x.size is 3; found nothing there"
    )
    failure = make_checker(GuardSet(), [SeqItem(X, 1)]).explain(([],))
    assert failure is not None
    assert str(failure) == "expected that x[1] is there; found nothing there"
    assert failure.guard is None


def test_nothing_to_explain(make_checker: MakeChecker) -> None:
    assert make_checker(GuardSet([ConstEq(X, 3)])).explain((3,)) is None


def test_unprintable_values(make_checker: MakeChecker) -> None:
    for value in (Unprintable(), [Unprintable()], {"a": Unprintable()}, (Unprintable(),)):
        text = explained(make_checker, ConstEq(X, 3), value)
        assert text.startswith("expected that x is 3; found ")


def test_failing_test_and_description(make_checker: MakeChecker) -> None:
    class Broken(ConstEq):
        def holds(self, *values: object) -> bool:
            raise RuntimeError("no")

        def expectation(self) -> str:
            raise RuntimeError("no")

        def finding(self, *values: object) -> str:
            raise RuntimeError("no")

    checker = make_checker(GuardSet([Broken(X, 3)]))
    assert checker.check((3,)) is None
    assert str(checker.explain((3,))) == (
        "expected that constant is as before; found something that cannot be read"
    )


def test_first_failure_and_all() -> None:
    guards = GuardSet([TypeIs(X, dict), ConstEq(DictItem(X, "a"), 1), ConstEq(Y, 2)])
    found = [str(failure) for failure in failures(Plan(guards, ()), ([], 3))]
    assert found == [
        "expected that x is a dict; found a list",
        "expected that x['a'] is 1; found nothing there",
        "expected that y is 2; found 3",
    ]


def test_guards_printed() -> None:
    guards = GuardSet([ConstEq(X, 1, HERE), TypeIs(Y, list)])
    assert str(guards) == "x is 1  # model.py:12 in forward\ny is a list"


def test_long_values_are_cut(make_checker: MakeChecker) -> None:
    long: Any = list(range(1000))
    assert len(explained(make_checker, ConstEq(X, 3), long)) < 120
    assert len(explained(make_checker, ConstEq(X, 3), "a" * 1000)) < 160
    assert len(explained(make_checker, DictKeys(X, range(1000)), {})) < 160  # type: ignore[arg-type]
