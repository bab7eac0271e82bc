"""Random objects, guards on all that can be reached from them, random changes: both checkers agree.

After each change the Python checker, made afresh and so without a memory, says what is right.
"""

import collections
import importlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dynacap.guards import (
    Attr,
    ClassAttr,
    ConstEq,
    DictItem,
    DictKey,
    DictKeys,
    GuardSet,
    IdIs,
    InstanceDict,
    LacksKey,
    Length,
    Local,
    SeqItem,
    Source,
    TypeIs,
    TypeOf,
)
from dynacap.guards.checker import PythonChecker
from dynacap.guards.choose import C_IMPORT_ERROR
from dynacap.guards.constant import is_constant

pytestmark = [
    pytest.mark.cc,
    pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="the C checker is not built"),
]


class Thing:
    shared = 1

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


class Other(Thing):
    pass


class Slots:
    __slots__ = ("slot",)

    def __init__(self, slot: Any) -> None:
        self.slot = slot


CONSTANTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, float("nan")]),
    st.sampled_from(["a", "b", ""]),
    st.tuples(st.integers(0, 1), st.sampled_from(["a", 0.0])),
)
NAMES = st.sampled_from(["a", "b", "c"])
KEYS = st.one_of(NAMES, st.integers(0, 2), st.booleans())


def containers(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    attributes = st.dictionaries(NAMES, items, max_size=3)
    return st.one_of(
        st.lists(items, max_size=3),
        st.lists(items, max_size=3).map(tuple),
        st.dictionaries(KEYS, items, max_size=3),
        attributes.map(collections.OrderedDict),
        attributes.map(lambda d: Thing(**d)),
        attributes.map(lambda d: Other(**d)),
        items.map(Slots),
    )


VALUES = st.recursive(CONSTANTS, containers, max_leaves=12)
X = Local(0, "x")


def guard_all(guards: GuardSet, slots: list[Source], source: Source, value: Any) -> None:
    """Guards on everything that can be reached from a value."""
    if is_constant(value):
        guards.add(ConstEq(source, value))
        return
    slots.append(source)
    guards.add(TypeIs(source, type(value)))
    if isinstance(value, dict):
        guard_dict(guards, slots, source, value)
    elif isinstance(value, (list, tuple)):
        guards.add(Length(source, len(value)))
        for i, item in enumerate(value):
            guard_all(guards, slots, SeqItem(source, i), item)
    elif isinstance(value, Slots):
        guard_all(guards, slots, Attr(source, "slot"), value.slot)
    elif isinstance(value, Thing):
        guards.add(IdIs(TypeOf(source), type(value)))
        guards.add(ConstEq(ClassAttr(TypeOf(source), "shared"), type(value).shared))
        guard_dict(guards, slots, InstanceDict(source), vars(value))


def guard_dict(guards: GuardSet, slots: list[Source], source: Source, value: Any) -> None:
    if len(value) % 2:
        guards.add(DictKeys(source, tuple(value)))
        guards.add(ConstEq(DictKey(source, 0), next(iter(value))))
    guards.add(LacksKey(source, "absent"))
    for key, item in value.items():
        guard_all(guards, slots, DictItem(source, key), item)


def reachable(value: Any) -> list[Any]:
    """Every container in a value."""
    found, pending = [], [value]
    while pending:
        at = pending.pop()
        if is_constant(at):
            continue
        found.append(at)
        if isinstance(at, dict):
            pending.extend(at.values())
        elif isinstance(at, (list, tuple)):
            pending.extend(at)
        else:
            pending.extend(vars(at).values() if isinstance(at, Thing) else [at.slot])
    return found


def exchange(one: Any, two: Any) -> None:
    """Each gets the other's attributes, with the very dict."""
    one.__dict__, two.__dict__ = two.__dict__, one.__dict__


def leave_and_change(target: Any, key: str, value: Any) -> None:
    """A dict that goes on without its object, and is changed, is no change of the object."""
    before = vars(target)
    target.__dict__ = dict(before)
    before[key] = value


def change(target: Any, how: int, key: Any, value: Any) -> None:
    """One change of a container, whatever it is."""
    if isinstance(target, dict):
        ways: list[Callable[[], object]] = [
            lambda: target.__setitem__(key, value),
            lambda: target.pop(key, None),
            lambda: target.update({k: value for k in list(target)[:1]}),
            lambda: target.update({k: target.pop(k) for k in list(target)[:1]}),
            lambda: target.clear(),
        ]
    elif isinstance(target, list):
        ways = [
            lambda: target.append(value),
            lambda: target.pop() if target else None,
            lambda: target.__setitem__(slice(0, 1), [value]),
            lambda: target.reverse(),
            lambda: target.clear(),
        ]
    elif isinstance(target, Thing):
        ways = [
            lambda: setattr(target, str(key), value),
            lambda: vars(target).pop(str(key), None),
            lambda: setattr(target, "__dict__", dict(vars(target))),
            lambda: exchange(target, Other(**{str(key): value})),
            lambda: leave_and_change(target, str(key), value),
            lambda: vars(target).clear(),
            lambda: setattr(target, "__class__", Other if type(target) is Thing else Thing),
            lambda: setattr(Thing, "shared", 1 + key if isinstance(key, int) else 1),
        ]
    elif isinstance(target, Slots):
        ways = [lambda: setattr(target, "slot", value)]
    else:
        return
    ways[how % len(ways)]()


CHANGES = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 8), KEYS, st.one_of(CONSTANTS, VALUES)), max_size=8
)


@settings(max_examples=300, deadline=None)
@given(value=VALUES, changes=CHANGES)
def test_agreement(value: Any, changes: list[tuple[int, int, Any, Any]]) -> None:
    fast = importlib.import_module("dynacap.guards.fast").FastChecker
    Thing.shared = 1
    guards = GuardSet()
    slots: list[Source] = [X]
    guard_all(guards, slots, X, value)
    checker = fast(guards, slots)
    targets = reachable(value)
    for where, how, key, new in [(0, 9, None, None), *changes]:
        if how != 9 and targets:
            change(targets[where % len(targets)], how, key, new)
        right = PythonChecker(guards, slots).check((value,))
        for _ in range(3):
            found = checker.check((value,))
            assert (found is None) == (right is None), str(guards)
            if found is not None and right is not None:
                assert [id(a) for a in found] == [id(b) for b in right]
    Thing.shared = 1
