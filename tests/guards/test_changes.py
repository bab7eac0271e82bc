"""Every kind of change under guarded objects is noticed, however warm the checker is.

Each row builds objects, guards them, checks often enough for whatever the checker remembers, makes
one change, and expects a no; changes that matter to no guard must leave a yes.
"""

import collections
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from dynacap.guards import (
    Attr,
    CellContents,
    Checker,
    ClassAttr,
    ClassLacks,
    ClosureCell,
    ConstEq,
    DictItem,
    DictKey,
    DictKeys,
    FunctionDefault,
    FunctionGlobals,
    Guard,
    GuardSet,
    IdIs,
    InstanceDict,
    LacksKey,
    Length,
    Local,
    SeqItem,
    Source,
    SuperAttr,
    TypeIs,
    TypeOf,
)

X = Local(0, "x")
LAYERS = DictItem(InstanceDict(X), "layers")
FIRST = SeqItem(LAYERS, 0)


def attribute(source: Source, name: str) -> Source:
    return DictItem(InstanceDict(source), name)


class World:
    """A model with layers, fresh for each test: its classes, functions and module too."""

    def __init__(self) -> None:
        namespace = types.ModuleType("namespace")
        exec(SOURCE, namespace.__dict__)
        self.names = namespace
        self.model = namespace.Model()

    def guards(self) -> list[Guard]:
        names, model = self.names, self.model
        forward = ClassAttr(TypeOf(FIRST), "forward")
        function = attribute(X, "function")
        code = Attr(function, "__code__")
        return [
            TypeIs(X, names.Model),
            TypeIs(LAYERS, list),
            Length(LAYERS, 3),
            TypeIs(FIRST, names.Layer),
            ConstEq(attribute(FIRST, "size"), 4),
            ConstEq(attribute(FIRST, "training"), True),
            LacksKey(InstanceDict(FIRST), "forward"),
            Length(attribute(FIRST, "hooks"), 0),
            ConstEq(SeqItem(attribute(FIRST, "shape"), 1), 3),
            TypeIs(attribute(FIRST, "shape"), tuple),
            IdIs(forward, names.Layer.__dict__["forward"]),
            IdIs(ClassAttr(TypeOf(FIRST), "inherited"), names.Base.__dict__["inherited"]),
            IdIs(
                SuperAttr(TypeOf(FIRST), names.Layer, "inherited"),
                names.Base.__dict__["inherited"],
            ),
            ClassLacks(TypeOf(FIRST), "__getattr__"),
            ConstEq(DictItem(FunctionGlobals(forward), "SCALE"), 2),
            IdIs(DictItem(FunctionGlobals(forward), "helper"), names.helper),
            LacksKey(FunctionGlobals(forward), "len"),
            IdIs(function, model.function),
            IdIs(code, model.function.__code__),
            ConstEq(CellContents(ClosureCell(function, 0, "factor"), "factor"), 10),
            ConstEq(FunctionDefault(function, 0), 1),
            ConstEq(DictItem(Attr(function, "__kwdefaults__"), "b"), 2),
            DictKeys(attribute(X, "parts"), ("one", "two")),
            ConstEq(attribute(DictItem(attribute(X, "parts"), "two"), "size"), 4),
            TypeIs(attribute(X, "plain"), names.Base),
            TypeIs(attribute(X, "module"), types.ModuleType),
            ConstEq(attribute(attribute(X, "module"), "value"), 1),
            DictKeys(attribute(X, "ordered"), ("a", "b")),
            ConstEq(DictKey(attribute(X, "ordered"), 0), "a"),
            IdIs(attribute(X, "sentinel"), model.sentinel),
        ]

    def slots(self) -> list[Source]:
        return [attribute(FIRST, "weight"), X, attribute(FIRST, "anything")]


SOURCE = """
import collections, types

SCALE = 2

def helper(): ...

class Base:
    def inherited(self): ...

class Mixin:
    def inherited(self): ...

class Layer(Base):
    def __init__(self):
        self.size = 4
        self.training = True
        self.hooks = {}
        self.shape = (2, 3)
        self.weight = object()
        self.anything = object()

    def forward(self, x):
        return helper() + SCALE + len(x)

class OtherLayer(Layer):
    pass

class ModuleChild(types.ModuleType):
    pass

def make(factor):
    def function(a=1, *, b=2):
        return factor
    def rebind(value):
        nonlocal factor
        factor = value
    return function, rebind

class Model:
    def __init__(self):
        self.layers = [Layer(), Layer(), Layer()]
        self.parts = {"one": Layer(), "two": Layer()}
        self.function, self.rebind = make(10)
        self.plain = Base()
        self.module = types.ModuleType("module")
        self.module.value = 1
        self.ordered = collections.OrderedDict(a=1, b=2)
        self.sentinel = object()

Base.__module__ = "namespace"
"""


def other_model(w: World) -> object:
    return World().model


def reclass_argument(w: World) -> None:
    w.model.__class__ = type("Renamed", (w.names.Model,), {})


def replace_dict(w: World) -> None:
    w.model.layers[0].__dict__ = {**w.model.layers[0].__dict__, "size": 5}


def replace_all(w: World) -> None:
    w.model.__dict__ = dict(World().model.__dict__)


def set_through_dict(w: World) -> None:
    w.model.layers[0].__dict__["size"] = 5


def code_of_another(w: World) -> None:
    w.model.function.__code__ = w.names.make(3)[0].__code__.replace(co_name="another")


def set_bases(w: World) -> None:
    w.names.Layer.__bases__ = (w.names.Mixin, w.names.Base)


def from_a_thread(w: World) -> None:
    thread = threading.Thread(target=lambda: setattr(w.model.layers[0], "training", False))
    thread.start()
    thread.join()


def clear_and_fill(w: World) -> None:
    attributes = w.model.layers[0].__dict__
    saved = dict(attributes)
    attributes.clear()
    attributes.update(saved, size=5)


def pop(w: World) -> None:
    del w.model.layers[0].__dict__["size"]


def reclass_module(w: World) -> None:
    w.model.module.__class__ = w.names.ModuleChild


def unsubclass(w: World) -> object:
    return w.names.Layer()


NOTICED: list[Callable[[World], object]] = [
    other_model,
    reclass_argument,
    replace_dict,
    replace_all,
    set_through_dict,
    code_of_another,
    set_bases,
    from_a_thread,
    clear_and_fill,
    pop,
    reclass_module,
    unsubclass,
    lambda w: setattr(w.model.layers[0], "size", 5),
    lambda w: setattr(w.model.layers[0], "size", 4.0),
    lambda w: setattr(w.model.layers[0], "size", w),
    lambda w: delattr(w.model.layers[0], "size"),
    lambda w: delattr(w.model.layers[0], "weight"),
    lambda w: delattr(w.model, "layers"),
    lambda w: setattr(w.model.layers[0], "training", False),
    lambda w: setattr(w.model.layers[0], "forward", lambda x: x),
    lambda w: setattr(w.model.layers[0], "shape", (2, 4)),
    lambda w: setattr(w.model.layers[0], "shape", [2, 3]),
    lambda w: w.model.layers[0].hooks.update(a=1),
    lambda w: setattr(w.model.layers[0], "hooks", {1: 1}),
    lambda w: setattr(w.model.layers[0], "__class__", w.names.OtherLayer),
    lambda w: setattr(w.model.plain, "__class__", w.names.Mixin),
    lambda w: w.model.layers.append(1),
    lambda w: w.model.layers.pop(),
    lambda w: w.model.layers.insert(0, w.names.OtherLayer()),
    lambda w: w.model.layers.__setitem__(0, w.names.OtherLayer()),
    lambda w: setattr(w.model, "layers", tuple(w.model.layers)),
    lambda w: setattr(w.names.Layer, "forward", lambda self, x: x),
    lambda w: delattr(w.names.Layer, "forward"),
    lambda w: setattr(w.names.Layer, "inherited", lambda self: 0),
    lambda w: setattr(w.names.Base, "inherited", lambda self: 0),
    lambda w: setattr(w.names.Base, "__getattr__", lambda self, name: 0),
    lambda w: setattr(w.names, "SCALE", 3),
    lambda w: delattr(w.names, "SCALE"),
    lambda w: setattr(w.names, "helper", lambda: 0),
    lambda w: setattr(w.names, "len", lambda x: 0),
    lambda w: w.model.rebind(11),
    lambda w: setattr(w.model.function, "__defaults__", (2,)),
    lambda w: setattr(w.model.function, "__defaults__", None),
    lambda w: setattr(w.model.function, "__kwdefaults__", {"b": 3}),
    lambda w: w.model.function.__kwdefaults__.update(b=3),
    lambda w: setattr(w.model, "function", w.names.make(10)[0]),
    lambda w: w.model.parts.update(three=1),
    lambda w: w.model.parts.update(two=w.names.OtherLayer.__new__(w.names.OtherLayer)),
    lambda w: w.model.parts.update(one=w.model.parts.pop("one")),
    lambda w: setattr(w.model.parts["two"], "size", 3),
    lambda w: setattr(w.model.module, "value", 2),
    lambda w: w.model.ordered.move_to_end("a"),
    lambda w: setattr(w.model, "sentinel", object()),
]
HARMLESS: list[Callable[[World], object]] = [
    lambda w: None,
    lambda w: setattr(w.model, "new", 1),
    lambda w: setattr(w.model.layers[0], "size", 4),
    lambda w: setattr(w.model.layers[0], "shape", (9, 3)),
    lambda w: setattr(w.model.layers[0], "weight", object()),
    lambda w: setattr(w.model.layers[1], "size", 7),
    lambda w: w.model.layers.__setitem__(0, w.names.Layer()),
    lambda w: setattr(w.model, "layers", list(w.model.layers)),
    lambda w: setattr(w.names, "OTHER", 1),
    lambda w: setattr(w.names.Layer, "other", 1),
    lambda w: setattr(w.names.Base, "other", 1),
    lambda w: setattr(w.model.function, "__defaults__", (1, 5)),
    lambda w: w.model.rebind(10),
    lambda w: setattr(w.model.layers[0], "__dict__", dict(w.model.layers[0].__dict__)),
    lambda w: w.model.parts.update(one=w.names.Layer()),
    lambda w: setattr(w.model.layers[0], "hooks", {}),
    lambda w: w.model.ordered.update(a=5),
]


def warm(world: World, make_checker: Callable[..., Checker], times: int) -> Checker:
    checker = make_checker(GuardSet(world.guards()), world.slots())
    for _ in range(times):
        expect_slots(world, checker)
    return checker


def expect_slots(world: World, checker: Checker) -> None:
    first = world.model.layers[0]
    found = checker.check((world.model,))
    assert found is not None, checker.explain((world.model,))
    assert [id(value) for value in found] == [
        id(first.weight),
        id(world.model),
        id(first.anything),
    ]


@pytest.mark.parametrize("times", [0, 1, 20])
@pytest.mark.parametrize("number", range(len(NOTICED)))
def test_noticed(make_checker: Callable[..., Checker], number: int, times: int) -> None:
    world = World()
    checker = warm(world, make_checker, times)
    replaced = NOTICED[number](world)
    is_other = isinstance(replaced, (world.names.Layer, types.SimpleNamespace)) or (
        type(replaced).__name__ == "Model"
    )
    flat = (replaced,) if is_other else (world.model,)
    for _ in range(3):
        assert checker.check(flat) is None
    failure = checker.explain(flat)
    assert failure is not None
    assert "expected that" in str(failure)


@pytest.mark.parametrize("times", [1, 20])
@pytest.mark.parametrize("number", range(len(HARMLESS)))
def test_harmless(make_checker: Callable[..., Checker], number: int, times: int) -> None:
    world = World()
    checker = warm(world, make_checker, times)
    HARMLESS[number](world)
    for _ in range(3):
        expect_slots(world, checker)


@pytest.mark.parametrize("number", range(len(HARMLESS)))
def test_harmless_then_noticed(make_checker: Callable[..., Checker], number: int) -> None:
    """What was remembered before a harmless change does not hide the next."""
    for change in NOTICED[12:16]:
        world = World()
        checker = warm(world, make_checker, 3)
        HARMLESS[number](world)
        expect_slots(world, checker)
        change(world)
        assert checker.check((world.model,)) is None


def test_changed_and_changed_back(make_checker: Callable[..., Checker]) -> None:
    world = World()
    checker = warm(world, make_checker, 3)
    layer = world.model.layers[0]
    for _ in range(5):
        layer.training = False
        assert checker.check((world.model,)) is None
        layer.training = True
        expect_slots(world, checker)


def test_two_models_by_turns(make_checker: Callable[..., Checker]) -> None:
    """What is remembered of one object is not taken for true of another of the same class."""
    world = World()
    twin = World.__new__(World)
    twin.names = world.names
    twin.model = world.names.Model()
    twin.model.function, twin.model.sentinel = world.model.function, world.model.sentinel
    checker = warm(world, make_checker, 3)
    for _ in range(3):
        expect_slots(twin, checker)
        expect_slots(world, checker)
    twin.model.layers[0].size = 9
    for _ in range(3):
        assert checker.check((twin.model,)) is None
        expect_slots(world, checker)


def test_class_attribute_in_each_base(make_checker: Callable[..., Checker]) -> None:
    a: Any = type("A", (), {"value": 1})
    b: Any = type("B", (a,), {})
    c: Any = type("C", (b,), {})
    checker = make_checker(GuardSet([ConstEq(ClassAttr(TypeOf(X), "value"), 1)]))
    obj: Any = c()
    for cls in (a, b, c):
        assert checker.check((obj,)) == ()
        cls.value = 2
        assert checker.check((obj,)) is None
        cls.value = 1
        assert checker.check((obj,)) == ()


def test_every_way_to_change_a_dict(make_checker: Callable[..., Checker]) -> None:
    ways: list[Callable[[Any], object]] = [
        lambda d: d.__setitem__("a", 2),
        lambda d: d.__delitem__("a"),
        lambda d: d.pop("a"),
        lambda d: d.clear(),
        lambda d: d.update(a=2),
        lambda d: d.update([("a", 2)]),
        lambda d: d.__ior__({"a": 2}),
        lambda d: [d.popitem() for _ in range(2)],
        lambda d: (d.pop("a"), d.setdefault("a", 2)),
        lambda d: d.__init__(a=2),
        lambda d: dict.update(d, a=2),
    ]
    kinds: list[Callable[[], Any]] = [
        lambda: {"a": 1, "b": 1},
        lambda: {"a": 1, 5: 1},
        lambda: collections.defaultdict(int, a=1, b=1),
        lambda: collections.Counter(a=1, b=1),
        lambda: collections.OrderedDict(a=1, b=1),
        lambda: vars(types.SimpleNamespace(a=1, b=1)),
    ]
    for way in ways:
        for kind in kinds:
            made = kind()
            checker = make_checker(GuardSet([ConstEq(DictItem(X, "a"), 1)]), [X])
            for _ in range(3):
                assert checker.check((made,)) == (made,)
            if isinstance(made, collections.Counter) and way is ways[4]:
                continue  # which adds instead
            way(made)
            assert checker.check((made,)) is None or made["a"] == 1


def test_instance_attributes_of_every_layout(make_checker: Callable[..., Checker]) -> None:
    """Attributes kept inline, in a shared-key dict, in a dict of its own: all stores are seen."""

    class Thing:
        def __init__(self) -> None:
            self.a = 1
            self.b = 2

        def store(self, value: int) -> None:
            self.a = value

    def touch_dict(thing: Thing) -> None:
        thing.__dict__  # noqa: B018

    def many(thing: Thing) -> None:
        for i in range(60):
            setattr(thing, f"extra{i}", i)

    for prepare in (lambda thing: None, touch_dict, many):
        thing = Thing()
        prepare(thing)
        checker = make_checker(GuardSet([ConstEq(attribute(X, "a"), 1)]))
        for _ in range(40):  # enough for the interpreter to specialise the store as well
            thing.store(1)
            assert checker.check((thing,)) == ()
            thing.store(2)
            assert checker.check((thing,)) is None


def test_a_type_that_dies_is_not_mistaken(make_checker: Callable[..., Checker]) -> None:
    """A new object at a dead one's address does not pass for it."""
    for _ in range(20):
        cls = type("Temporary", (), {})
        checker = make_checker(GuardSet([TypeIs(X, cls)]))
        assert checker.check((cls(),)) == ()
        del cls
        fresh = [type("Temporary", (), {}) for _ in range(5)]
        assert all(checker.check((kind(),)) is None for kind in fresh)


def test_sys_modules_is_read_each_time(make_checker: Callable[..., Checker]) -> None:
    from_modules = DictItem(DictItem(InstanceDict(X), "modules"), "dynacap_test_module")
    checker = make_checker(GuardSet([ConstEq(from_modules, 1)]))
    sys.modules["dynacap_test_module"] = 1  # type: ignore[assignment]
    try:
        assert checker.check((sys,)) == ()
        sys.modules["dynacap_test_module"] = 2  # type: ignore[assignment]
        assert checker.check((sys,)) is None
    finally:
        del sys.modules["dynacap_test_module"]
    assert checker.check((sys,)) is None


def test_order_alone_changes(make_checker: Callable[..., Checker]) -> None:
    """An OrderedDict's order can change while its storage does not."""
    ordered = collections.OrderedDict(a=1, b=2)
    checker = make_checker(GuardSet([DictKeys(X, ("a", "b"))]))
    for _ in range(3):
        assert checker.check((ordered,)) == ()
    ordered.move_to_end("a")
    assert checker.check((ordered,)) is None
    ordered.move_to_end("b")
    assert checker.check((ordered,)) == ()
