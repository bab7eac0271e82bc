"""A guard set keeps order, drops doubles, answers by source, and can be taken back."""

import pytest

from dynacap.guards import ConstEq, Guard, GuardSet, Local, Origin, SameObject, TypeIs
from dynacap.guards.kinds import KINDS, register

X, Y = Local(0, "x"), Local(1, "y")


def test_order_and_doubles() -> None:
    guards = GuardSet()
    assert guards.add(ConstEq(X, 1))
    assert guards.add(TypeIs(X, int))
    assert not guards.add(ConstEq(X, 1, Origin("a.py", 1, "f")))
    assert guards.add(ConstEq(X, True))
    assert guards.add(ConstEq(X, 1.0))
    assert [type(guard) for guard in guards] == [ConstEq, TypeIs, ConstEq, ConstEq]
    assert len(guards) == 4
    assert ConstEq(X, 1) in guards
    assert ConstEq(Y, 1) not in guards


def test_by_source() -> None:
    same, one = SameObject(X, Y), ConstEq(X, 1)
    guards = GuardSet([same])
    assert guards.guards_for(X) == (same,)
    guards.add(one)
    assert guards.guards_for(X) == (same, one)
    assert guards.guards_for(Y) == (same,)
    assert guards.guards_for(Local(2, "z")) == ()


def test_rewind() -> None:
    guards = GuardSet([ConstEq(X, 1)])
    mark = len(guards)
    guards.update([ConstEq(X, 2), TypeIs(Y, int)])
    assert len(guards.guards_for(Y)) == 1
    guards.rewind(mark)
    assert list(guards) == [ConstEq(X, 1)]
    assert guards.guards_for(Y) == ()
    assert guards.add(ConstEq(X, 2))
    copy = guards.copy()
    copy.add(TypeIs(Y, int))
    assert len(guards) == 2


def test_kinds_register_themselves() -> None:
    assert KINDS["constant"] is ConstEq
    with pytest.raises(TypeError, match="taken by ConstEq"):
        register(type("Other", (Guard,), {"kind": "constant"}))
    with pytest.raises(TypeError, match="no `kind`"):
        register(type("Nameless", (Guard,), {}))
    with pytest.raises(TypeError, match="no `holds`"):
        register(type("Empty", (Guard,), {"kind": "empty"}))
    assert "empty" not in KINDS
