"""The table of entries: which entry runs, the order of trying, and what becomes of entries."""

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dynacap.guards import (
    Checker,
    ClassAttr,
    ConstEq,
    DictItem,
    EntryTable,
    GuardSet,
    IdIs,
    InstanceDict,
    Local,
    Predicate,
    SeqItem,
    TypeIs,
    TypeOf,
)
from dynacap.guards.checker import PythonChecker

X, Y = Local(0, "x"), Local(1, "y")
MakeChecker = Callable[..., Checker]
MakeTable = Callable[[Callable[..., object]], EntryTable]


def miss(*flat: object) -> object:
    return ("miss", *flat)


def told(name: str) -> Callable[..., object]:
    return lambda *slots: (name, *slots)


@pytest.fixture
def table(make_table: MakeTable) -> EntryTable:
    """An empty table."""
    return make_table(miss)


def test_miss_and_hit(table: EntryTable, make_checker: MakeChecker) -> None:
    assert table(1, 2) == ("miss", 1, 2)
    entry = table.add(make_checker(GuardSet([ConstEq(X, 1)]), [Y, X, Y]), told("one"))
    assert table(1, "y") == ("one", "y", 1, "y")
    assert table(2, "y") == ("miss", 2, "y")
    assert table() == ("miss",)
    assert entry.hits == 1
    assert table.miss is miss


def test_keywords_are_refused(table: EntryTable) -> None:
    with pytest.raises(TypeError):
        table(x=1)  # type: ignore[call-arg]


def test_most_recent_first(table: EntryTable, make_checker: MakeChecker) -> None:
    first, second, third = (
        table.add(make_checker(GuardSet([ConstEq(X, n)])), told(str(n))) for n in range(3)
    )
    assert table.entries == (third, second, first)
    assert table(0) == ("0",)
    assert table.entries == (first, third, second)
    assert table(2) == ("2",)
    assert table(2) == ("2",)
    assert table.entries == (third, first, second)
    assert [entry.hits for entry in table.entries] == [2, 1, 0]


def test_first_that_fits_runs(table: EntryTable, make_checker: MakeChecker) -> None:
    table.add(make_checker(GuardSet()), told("older"))
    table.add(make_checker(GuardSet()), told("newer"))
    assert table(1) == ("newer",)


def test_remove_and_clear(table: EntryTable, make_checker: MakeChecker) -> None:
    entries = [table.add(make_checker(GuardSet([ConstEq(X, n)])), told(str(n))) for n in range(4)]
    assert table.remove(entries[1])
    assert not table.remove(entries[1])
    assert not table.remove("no entry")
    assert table(1) == ("miss", 1)
    assert table(2) == ("2",)
    table.clear()
    assert table.entries == ()
    assert table(2) == ("miss", 2)


def test_many_slots_and_values(table: EntryTable, make_checker: MakeChecker) -> None:
    sources = [Local(i, f"x{i}") for i in range(300)]
    table.add(make_checker(GuardSet([ConstEq(sources[0], 0)]), sources), told("all"))
    assert table(*range(300)) == ("all", *range(300))


def test_exceptions_of_what_runs_go_on(table: EntryTable, make_checker: MakeChecker) -> None:
    def fail(*slots: object) -> object:
        raise KeyError("from fn")

    table.add(make_checker(GuardSet([ConstEq(X, 1)]), [X]), fail)
    with pytest.raises(KeyError, match="from fn"):
        table(1)
    assert table(2) == ("miss", 2)


def test_exceptions_of_miss_go_on(make_table: MakeTable) -> None:
    def fail(*flat: object) -> object:
        raise LookupError("from miss")

    with pytest.raises(LookupError, match="from miss"):
        make_table(fail)(1)


def test_keyboard_interrupt_in_a_guard(table: EntryTable, make_checker: MakeChecker) -> None:
    def interrupt(value: object) -> bool:
        raise KeyboardInterrupt

    table.add(make_checker(GuardSet([Predicate((X,), interrupt, "is fine")])), told("never"))
    with pytest.raises(KeyboardInterrupt):
        table(1)


def test_guard_that_changes_the_table(table: EntryTable, make_checker: MakeChecker) -> None:
    """A guard may run code that removes the entry under check, or every entry."""

    def clear(value: object) -> bool:
        table.clear()
        gc.collect()
        return True

    table.add(make_checker(GuardSet([ConstEq(X, 2)])), told("last"))
    table.add(make_checker(GuardSet([Predicate((X,), clear, "clears")]), [X]), told("cleared"))
    assert table(1) == ("cleared", 1)
    assert table(1) == ("miss", 1)


def test_calls_within_calls(table: EntryTable, make_checker: MakeChecker) -> None:
    def down(n: Any) -> object:
        return n if n == 0 else table(n - 1)

    table.add(make_checker(GuardSet([TypeIs(X, int)]), [X]), down)
    assert table(100) == 0


def test_function_that_removes_its_entry(table: EntryTable, make_checker: MakeChecker) -> None:
    def remove(x: object) -> object:
        table.clear()
        gc.collect()
        return x

    table.add(make_checker(GuardSet(), [X]), remove)
    del remove
    assert table(5) == 5
    assert table(5) == ("miss", 5)


class Model:
    def forward(self) -> None: ...


def guards_on(model_class: type) -> GuardSet:
    forward = ClassAttr(TypeOf(X), "forward")
    return GuardSet([TypeIs(X, model_class), IdIs(forward, model_class.__dict__["forward"])])


def test_entry_goes_when_its_object_dies(table: EntryTable, make_checker: MakeChecker) -> None:
    cls = type("Local", (Model,), {"forward": lambda self: None})
    obj = cls()
    entry = table.add(make_checker(guards_on(cls), [X]), told("hit"))
    table.add(make_checker(GuardSet([ConstEq(X, 1)])), told("stays"))
    assert table(obj) == ("hit", obj)
    assert not entry.dead
    del obj, cls
    gc.collect()
    assert entry.dead
    assert len(table.entries) == 1
    assert table(1) == ("stays",)


def test_entry_added_after_its_object_died(table: EntryTable, make_checker: MakeChecker) -> None:
    def function() -> None: ...

    checker = make_checker(GuardSet([IdIs(X, function)]))
    del function
    entry = table.add(checker, told("never"))
    assert entry.dead
    assert table.entries == ()


def test_dying_object_of_a_dying_table(make_table: MakeTable, make_checker: MakeChecker) -> None:
    def function() -> None: ...

    table = make_table(miss)
    entry = table.add(make_checker(GuardSet([IdIs(X, function)])), told("hit"))
    del table
    gc.collect()
    del function
    assert entry.dead


def test_user_objects_are_not_kept(table: EntryTable, make_checker: MakeChecker) -> None:
    class Local:
        def __init__(self) -> None:
            self.child = Model()
            self.function = lambda: None

    obj = Local()
    child, function = (DictItem(InstanceDict(X), name) for name in ("child", "function"))
    guards = GuardSet(
        [TypeIs(X, Local), TypeIs(child, Model), IdIs(function, obj.function), IdIs(X, obj)]
    )
    table.add(make_checker(guards, [child, X]), told("hit"))
    for _ in range(5):
        assert table(obj) == ("hit", obj.child, obj)
    watched = [weakref.ref(thing) for thing in (obj, obj.child, obj.function, Local)]
    del obj, Local
    gc.collect()
    assert [ref() for ref in watched] == [None] * 4
    assert table.entries == ()


def test_table_in_a_cycle_is_collected(make_table: MakeTable, make_checker: MakeChecker) -> None:
    class Holder:
        table: EntryTable

    def make() -> "weakref.ref[Holder]":
        holder = Holder()
        holder.table = make_table(lambda *flat: holder)
        holder.table.add(make_checker(GuardSet([ConstEq(X, 1)]), [X]), lambda x: holder)
        assert holder.table(1) is holder
        assert holder.table(2) is holder
        return weakref.ref(holder)

    gone = make()
    gc.collect()
    assert gone() is None


def test_no_leaks(make_table: MakeTable, make_checker: MakeChecker) -> None:
    class Thing:
        pass

    thing = Thing()
    thing.a = "value"  # type: ignore[attr-defined]
    a = DictItem(InstanceDict(X), "a")

    def round_trip() -> None:
        table = make_table(miss)
        guards = GuardSet([TypeIs(X, Thing), ConstEq(a, "value"), IdIs(TypeOf(X), Thing)])
        for _ in range(3):
            table.add(make_checker(guards, [X, a]), told("hit"))
        table.add(make_checker(GuardSet([ConstEq(X, 1)])), told("other"))
        for _ in range(5):
            assert table(thing)[0] == "hit"  # type: ignore[index]
            assert table(1) == ("other",)
            assert table(2) == ("miss", 2)
        table.remove(table.entries[0])

    for _ in range(3):
        round_trip()
    gc.collect()
    before = (sys.getrefcount(thing), sys.getrefcount(Thing), len(gc.get_objects()))
    for _ in range(50):
        round_trip()
    gc.collect()
    after = (sys.getrefcount(thing), sys.getrefcount(Thing), len(gc.get_objects()))
    assert abs(after[0] - before[0]) <= 1
    assert abs(after[1] - before[1]) <= 1
    assert after[2] - before[2] < 25


def test_threads(make_table: MakeTable, make_checker: MakeChecker) -> None:
    """Calls, additions, removals and deaths from many threads: every answer right, no crash."""
    table = make_table(lambda *flat: "miss")
    stop = threading.Event()
    wrong: list[object] = []

    def call(n: int) -> None:
        while not stop.is_set():
            answer = table(n, object())
            if answer not in (n, "miss"):
                wrong.append(answer)

    def change() -> None:
        while not stop.is_set():
            for n in range(4):
                yielding = Predicate((Y,), lambda y: [0 for _ in range(50)], "yields")
                guards = GuardSet([ConstEq(X, n), yielding])
                table.add(make_checker(guards, [X]), lambda x: x)
            cls = type("Temporary", (), {})
            table.add(make_checker(GuardSet([TypeIs(X, cls)])), told("never"))
            del cls
            for entry in table.entries[3:]:
                table.remove(entry)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=call, args=(n,)) for n in range(4)]
    threads += [threading.Thread(target=change) for _ in range(2)]
    try:
        for thread in threads:
            thread.start()
        stop.wait(1.0)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert wrong == []


def test_objects_mutated_by_a_guard(make_checker: MakeChecker) -> None:
    """Code that runs in the middle of a check takes away what the rest of it is about to read."""
    for _ in range(20):
        inner: dict[str, Any] = {"b": object()}
        outer: dict[str, Any] = {"a": object(), "inner": inner}

        def empty(value: object, outer: dict[str, Any] = outer) -> bool:
            outer.clear()
            gc.collect()
            return True

        below = DictItem(DictItem(X, "inner"), "b")
        guards = GuardSet([Predicate((DictItem(X, "a"),), empty, "empties"), TypeIs(below, object)])
        checker = make_checker(guards, [below, DictItem(X, "a")])
        del inner
        checker.check((outer,))
        assert outer == {}
        assert checker.check((outer,)) is None


def test_python_checker_in_either_table(table: EntryTable) -> None:
    table.add(PythonChecker(GuardSet([ConstEq(X, 1)]), [X]), told("python"))
    assert table(1) == ("python", 1)
    assert table(2) == ("miss", 2)


def many_guards(classes: list[type]) -> list[GuardSet]:
    """Entries told apart by constants, by several flags, by classes, and some by nothing."""
    n = len(classes)
    flags = [SeqItem(Y, bit) for bit in range(10)]
    return [
        *(GuardSet([ConstEq(X, i), TypeIs(Y, tuple)]) for i in range(n)),
        *(
            GuardSet(ConstEq(flag, bool(i >> bit & 1)) for bit, flag in enumerate(flags))
            for i in range(n)
        ),
        *(GuardSet([TypeIs(X, classes[i]), TypeIs(Y, str)]) for i in range(n)),
        GuardSet([Predicate((Y,), lambda y: y == 5, "is five")]),
    ]


def test_many_entries(table: EntryTable, make_checker: MakeChecker) -> None:
    n = 150
    classes = [type(f"Class{i}", (), {}) for i in range(n)]
    for position, each in enumerate(many_guards(classes)):
        table.add(make_checker(each), told(str(position)))
    for i in (0, 3, n - 1, 77):
        assert table(i, ()) == (str(i),)
        values = tuple(bool(i >> bit & 1) for bit in range(10))
        assert table("flags", values) == (str(n + i),)
        assert table(classes[i](), "text") == (str(2 * n + i),)
    assert table(None, 5) == (str(3 * n),)
    misses: list[tuple[object, ...]] = [
        (n, ()),
        (0.0, ()),
        (True, []),
        ("flags", (True,)),
        ("flags", "text"),
        (),
    ]
    for missed in misses:
        assert table(*missed) == ("miss", *missed)
    first = table.entries[0]
    assert first.hits == 1
    table.remove(first)
    assert table(None, 5) == ("miss", None, 5)
    table.clear()
    assert table(0, ()) == ("miss", 0, ())


def test_many_entries_by_turns(table: EntryTable, make_checker: MakeChecker) -> None:
    """The entries are listed by use, and one that is dropped is freed."""
    removed = [table.add(make_checker(GuardSet([ConstEq(X, n)])), told(str(n))) for n in range(40)]
    for n in (3, 30, 3, 17):
        assert table(n) == (str(n),)
    assert [entry.hits for entry in table.entries[:4]] == [1, 2, 1, 0]
    gone = weakref.ref(removed[17])
    table.remove(removed[17])
    del removed
    gc.collect()
    assert gone() is None
    assert table(17) == ("miss", 17)
    assert table(18) == ("18",)


def test_entries_of_objects_that_die_by_the_dozen(
    table: EntryTable, make_checker: MakeChecker
) -> None:
    classes = [type(f"Class{i}", (), {}) for i in range(30)]
    for cls in classes:
        table.add(make_checker(GuardSet([TypeIs(X, cls)])), told(cls.__name__))
    assert table(classes[7]()) == ("Class7",)
    del cls, classes[10:20]
    gc.collect()
    assert len(table.entries) == 20
    assert table(classes[-1]()) == ("Class29",)
    assert table(type("Class7", (), {}))[0] == "miss"  # type: ignore[index]
