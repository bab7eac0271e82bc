"""An object that is given another class or another ``__dict__``: that is told, or else compared.

What a dict holds is checked without being looked at once CPython tells of every change. So each
row here hangs the object below dicts alone, warms the checker, and changes the object in one of
the ways that there are.
"""

import abc
import ast
import collections
import ctypes
import functools
import gc
import io
import operator
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest

from dynacap.guards import (
    Checker,
    ClassAttr,
    ConstEq,
    DictItem,
    GuardSet,
    InstanceDict,
    LacksKey,
    Local,
    TypeIs,
    TypeOf,
)
from dynacap.guards.choose import C_IMPORT_ERROR

needs_c = pytest.mark.skipif(C_IMPORT_ERROR is not None, reason="needs C")

MakeChecker = Callable[..., Checker]
T = TypeVar("T")
X = Local(0, "x")
ROWS = DictItem(InstanceDict(X), "rows")
LEAF = DictItem(ROWS, "leaf")


class Root:
    def __init__(self, leaf: object) -> None:
        self.rows: dict[str, object] = {"leaf": leaf, "other": 1}


def class_statement() -> type:
    class Leaf:
        level = 1

    return Leaf


def with_slots() -> type:
    class Leaf:
        __slots__ = ("__dict__", "extra")
        level = 1

    return Leaf


def with_weak_slot() -> type:
    class Leaf:
        __slots__ = ("__dict__", "__weakref__")
        level = 1

    return Leaf


def with_class_property() -> type:
    class Leaf:
        level = 1
        shown: type = int

        @property
        def __class__(self) -> Any:
            return self.shown

        @__class__.setter
        def __class__(self, cls: type) -> None:
            object.__dict__["__class__"].__set__(self, cls)

    return Leaf


def with_setattr() -> type:
    class Leaf:
        level = 1

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)

    return Leaf


def of_bases(*bases: Any) -> Callable[[], type]:
    return lambda: types.new_class("Leaf", bases, exec_body=lambda names: names.update(level=1))


class Plain:
    pass


class Parametrized(Generic[T]):
    pass


KINDS: dict[str, Callable[[], type]] = {
    "class": class_statement,
    "subclass": of_bases(Plain),
    "slots": with_slots,
    "weak slot": with_weak_slot,
    "class property": with_class_property,
    "setattr": with_setattr,
    "abstract": of_bases(abc.ABC),
    "generic": of_bases(Parametrized),
    "dict": of_bases(dict),
    "list": of_bases(list),
    "int": of_bases(int),
    "exception": of_bases(ValueError),
    "partial": of_bases(functools.partial),
    "namespace": of_bases(types.SimpleNamespace),
    "syntax": of_bases(ast.Name),
    "module": of_bases(types.ModuleType),
}
ARGUMENTS: dict[str, tuple[object, ...]] = {"partial": (len,), "module": ("made",)}


def make(kind: str) -> tuple[Root, Any, type]:
    """A root, its leaf, and another class that the leaf can be given."""
    cls = KINDS[kind]()
    leaf: Any = cls(*ARGUMENTS.get(kind, ()))
    leaf.size = 4
    other = type("Other", (cls,), {"__slots__": ()} if kind == "slots" else {})
    if kind == "class property":
        other = class_statement()
    return Root(leaf), leaf, other


def through_c(obj: Any, name: str, value: Any) -> None:
    ctypes.pythonapi.PyObject_SetAttr(
        ctypes.py_object(obj), ctypes.py_object(name), ctypes.py_object(value)
    )


def through_generic_c(obj: Any, name: str, value: Any) -> None:
    ctypes.pythonapi.PyObject_GenericSetAttr(
        ctypes.py_object(obj), ctypes.py_object(name), ctypes.py_object(value)
    )


def descriptor_of(obj: Any, name: str) -> Any:
    kind = types.GetSetDescriptorType
    return next(vars(c)[name] for c in type(obj).__mro__ if type(vars(c).get(name)) is kind)


def through_descriptor(obj: Any, name: str, value: Any) -> None:
    descriptor_of(obj, name).__set__(obj, value)


def through_its_class(obj: Any, name: str, value: Any) -> None:
    types.GetSetDescriptorType.__set__(descriptor_of(obj, name), obj, value)


def in_a_thread(obj: Any, name: str, value: Any) -> None:
    thread = threading.Thread(target=setattr, args=(obj, name, value))
    thread.start()
    thread.join()


def in_a_statement(obj: Any, name: str, value: Any) -> None:
    for _ in range(30):  # enough for the interpreter to specialise the store
        if name == "__class__":
            obj.__class__ = value
        else:
            obj.__dict__ = value


def in_a_generator(obj: Any, name: str, value: Any) -> None:
    def steps() -> Any:
        yield
        setattr(obj, name, value)
        yield

    made = steps()
    next(made)
    next(made)


WAYS: list[Callable[[Any, str, Any], object]] = [
    setattr,
    object.__setattr__,
    in_a_statement,
    in_a_thread,
    in_a_generator,
    through_c,
    through_generic_c,
    through_descriptor,
    through_its_class,
    lambda obj, name, value: operator.methodcaller("__setattr__", name, value)(obj),
    lambda obj, name, value: functools.partial(setattr, obj, name)(value),
]


def warm(make_checker: MakeChecker, root: Root, leaf: Any) -> Checker:
    guards = GuardSet(
        [
            TypeIs(LEAF, type(leaf)),
            ConstEq(ClassAttr(TypeOf(LEAF), "level"), 1),
            ConstEq(DictItem(InstanceDict(LEAF), "size"), 4),
            LacksKey(InstanceDict(LEAF), "level"),
        ]
    )
    checker = make_checker(guards, [LEAF])
    for _ in range(4):
        assert checker.check((root,)) == (leaf,), checker.explain((root,))
    return checker


@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("kind", KINDS)
def test_class(make_checker: MakeChecker, kind: str, way: int) -> None:
    root, leaf, other = make(kind)
    checker = warm(make_checker, root, leaf)
    before = type(leaf)
    WAYS[way](leaf, "__class__", other)
    assert type(leaf) is other
    for _ in range(3):
        assert checker.check((root,)) is None
    object.__dict__["__class__"].__set__(leaf, before)
    for _ in range(3):
        assert checker.check((root,)) == (leaf,)
    object.__dict__["__class__"].__set__(leaf, other)
    assert checker.check((root,)) is None


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("way", range(len(WAYS)))
@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("namespace", "module")])
def test_dict(make_checker: MakeChecker, kind: str, way: int, held: bool) -> None:
    root, leaf, _ = make(kind)
    checker = warm(make_checker, root, leaf)
    keep = [leaf.__dict__] if held else []
    WAYS[way](leaf, "__dict__", {"size": 5})
    for _ in range(3):
        assert checker.check((root,)) is None
    WAYS[way](leaf, "__dict__", {"size": 4})
    for _ in range(3):
        assert checker.check((root,)) == (leaf,)
    if held:
        keep[0]["size"] = 7
        assert checker.check((root,)) == (leaf,)
        WAYS[way](leaf, "__dict__", keep[0])
        assert checker.check((root,)) is None


def shift(one: Any, two: Any) -> None:
    one.__dict__, two.__dict__ = two.__dict__, one.__dict__


def by_pickle(leaf: Any) -> None:
    class Loading(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            return lambda *_: leaf

    Loading(io.BytesIO(b"\x80\x04c__main__\nLeaf\n)R}\x8c\x04sizeK\x05sb.")).load()


def collected(leaf: Any) -> None:
    leaf.__dict__ = {"size": 5}
    gc.collect()


def frozen(leaf: Any) -> None:
    gc.freeze()
    leaf.size = 5
    gc.unfreeze()


def delete_dict(leaf: Any) -> None:
    del leaf.__dict__


CHANGES: dict[str, Callable[[Any], object]] = {
    "store": lambda leaf: setattr(leaf, "size", 5),
    "delete": lambda leaf: delattr(leaf, "size"),
    "shadow": lambda leaf: setattr(leaf, "level", 1),
    "clear": lambda leaf: leaf.__dict__.clear(),
    "vars": lambda leaf: vars(leaf).update(size=5),
    "merge": lambda leaf: leaf.__dict__.__ior__({"size": 5}),
    "delete dict": delete_dict,
    "pickle": by_pickle,
    "state": lambda leaf: leaf.__reduce_ex__(2)[2].update(size=9),
    "proxy": lambda leaf: setattr(weakref.proxy(leaf), "size", 5),
    "proxy dict": lambda leaf: setattr(weakref.proxy(leaf), "__dict__", {"size": 5}),
    "swap": lambda leaf: shift(leaf, type(leaf)()),
    "class attribute": lambda leaf: setattr(type(leaf), "level", 2),
    "class attribute gone": lambda leaf: delattr(type(leaf), "level"),
    "dict of its own": lambda leaf: setattr(leaf, "__dict__", collections.UserDict(size=5).data),
    "dict subclass": lambda leaf: setattr(leaf, "__dict__", collections.Counter(size=5)),
    "collected": collected,
    "frozen": frozen,
}


@pytest.mark.parametrize("name", CHANGES)
def test_attributes(make_checker: MakeChecker, name: str) -> None:
    for kind in ("class", "subclass"):
        root, leaf, _ = make(kind)
        checker = warm(make_checker, root, leaf)
        CHANGES[name](leaf)
        for _ in range(3):
            assert checker.check((root,)) is None


def test_read_eagerly_meanwhile(make_checker: MakeChecker) -> None:
    """The interpreter may change how an object keeps its attributes as it reads them."""
    root, leaf, _ = make("class")
    checker = warm(make_checker, root, leaf)
    for _ in range(50):
        assert leaf.size == 4
    assert checker.check((root,)) == (leaf,)
    leaf.size = 5
    assert checker.check((root,)) is None


def test_attributes_keep_their_order(make_checker: MakeChecker) -> None:
    """Whatever is done to a dict so that it tells of its changes, nobody sees."""

    class Many:
        def __init__(self) -> None:
            self.a, self.b, self.c = 1, 2, None
            self.size, self.z = 4, "z"

    many: Any = Many()
    del many.b
    many.b = 2
    root, attributes = Root(many), many.__dict__
    checker = make_checker(GuardSet([ConstEq(DictItem(InstanceDict(LEAF), "size"), 4)]), [LEAF])
    seen = []
    for key in attributes:
        seen.append(key)
        assert checker.check((root,)) == (many,)
    assert seen == list(attributes) == ["a", "c", "size", "z", "b"]
    assert many.__dict__ is attributes
    many.z = 3
    assert attributes == {"a": 1, "b": 2, "c": None, "size": 4, "z": 3}


def test_the_end_of_the_old_dict_runs_code(make_checker: MakeChecker) -> None:
    """What is remembered in the middle of an assignment does not miss the rest of it."""
    found: list[object] = []

    class Ends:
        def __del__(self) -> None:
            found.extend(checker.check((root,)) for _ in range(4))

    root, leaf, _ = make("class")
    checker = make_checker(GuardSet([ConstEq(DictItem(InstanceDict(LEAF), "size"), 4)]), [LEAF])
    assert checker.check((root,)) == (leaf,)
    leaf.__dict__ = {"size": 4, "ends": Ends()}
    assert checker.check((root,)) == (leaf,)
    leaf.__dict__ = {"size": 5}
    assert found == [None] * 4
    assert checker.check((root,)) is None


def test_others_have_the_setters_too(make_checker: MakeChecker) -> None:
    """Assignments that nobody watches are as before: what they refuse, return and set."""
    root, leaf, other = make("class")
    warm(make_checker, root, leaf)

    class Thing:
        pass

    thing: Any = Thing()
    for value in (1, None, [("a", 1)]):
        with pytest.raises(TypeError, match="__dict__ must be set to a dictionary"):
            thing.__dict__ = value
    with pytest.raises(TypeError, match="__class__ must be set to a class"):
        thing.__class__ = 1
    with pytest.raises(TypeError, match=r"object layout differs|only supported for"):
        thing.__class__ = int
    with pytest.raises(TypeError, match="can't delete __class__"):
        del thing.__class__
    given = {"a": 1}
    thing.__dict__ = given
    assert thing.__dict__ is given
    thing.__class__ = other
    assert type(thing) is other
    assert checker_holds(make_checker, root, leaf)


def checker_holds(make_checker: MakeChecker, root: Root, leaf: Any) -> bool:
    return warm(make_checker, root, leaf).check((root,)) == (leaf,)


def test_no_reference_is_held(make_checker: MakeChecker) -> None:
    root, leaf, _ = make("class")
    checker = warm(make_checker, root, leaf)
    ref = weakref.ref(leaf)
    del leaf
    root.rows.clear()
    gc.collect()
    assert ref() is None
    assert checker.check((root,)) is None


def test_addresses_are_used_again(make_checker: MakeChecker) -> None:
    """Objects that come to lie where watched ones died: neither trusted, nor a leak."""
    cls: Any = class_statement()
    other: Any = class_statement()
    root = Root(None)
    checker = make_checker(
        GuardSet([TypeIs(LEAF, cls), ConstEq(DictItem(InstanceDict(LEAF), "size"), 4)])
    )
    for turn in range(400):
        leaf = other() if turn % 3 == 2 else cls()
        leaf.size = 4 + (turn % 5 == 4)
        root.rows["leaf"] = leaf
        wanted = () if type(leaf) is cls and leaf.size == 4 else None
        for _ in range(3):
            assert checker.check((root,)) == wanted
        del leaf


def run_alone(source: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


PRELUDE = """
import sys, threading
from dynacap.guards import (
    ConstEq, DictItem, GuardSet, InstanceDict, Local, TypeIs)
from dynacap.guards.fast import FastChecker
class Leaf: pass
class Other: pass
class Root: pass
root, leaf = Root(), Leaf()
root.leaf, leaf.size = leaf, 4
at = DictItem(InstanceDict(Local(0, "x")), "leaf")
guards = [TypeIs(at, Leaf), ConstEq(DictItem(InstanceDict(at), "size"), 4)]
checker = FastChecker(GuardSet(guards), ())
def check(): return checker.check((root,)) == ()
assert all(check() for _ in range(4))
"""


@needs_c
def test_audit_hooks_run_in_an_assignment() -> None:
    run_alone(
        """
        seen = []
        def hook(event, args):
            if event == "object.__setattr__" and args[0] is leaf:
                seen.extend(check() for _ in range(4))
        sys.addaudithook(hook)
        leaf.__class__ = Other
        assert seen == [True] * 4 and not any(check() for _ in range(4))
        leaf.__class__ = Leaf
        assert seen == [True] * 4 + [False] * 4 and all(check() for _ in range(4))
        """
    )


@needs_c
def test_other_interpreters_assign_meanwhile() -> None:
    run_alone(
        """
        try:
            import _interpreters
        except ImportError:
            import _xxsubinterpreters as _interpreters
        code = '''if True:
            class A: pass
            class B: pass
            for i in range(20000):
                a = A()
                a.x = 1
                a.__dict__ = {"x": i}
                a.__class__ = B
                assert type(a) is B and a.x == i
        '''
        made = [_interpreters.create() for _ in range(3)]
        threads = [threading.Thread(target=_interpreters.run_string, args=(i, code)) for i in made]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert check()
            leaf.__class__ = Other
            assert not check()
            leaf.__class__ = Leaf
            leaf.__dict__ = {"size": 5}
            assert not check()
            leaf.__dict__ = {"size": 4}
        for i in made:
            _interpreters.destroy(i)
        """
    )


@needs_c
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told() -> None:
    run_alone(
        """
        import os
        child = os.fork()
        leaf.__class__ = Other
        noticed = not any(check() for _ in range(3))
        leaf.__class__ = Leaf
        leaf.__dict__ = {"size": 5}
        noticed &= not any(check() for _ in range(3))
        if child == 0:
            os._exit(not noticed)
        assert noticed and os.waitpid(child, 0)[1] == 0
        """
    )
