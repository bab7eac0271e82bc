"""Attributes by function, questions about classes, descriptors, enums and dataclasses."""

import abc
import collections.abc
import copy
import dataclasses
import enum
import functools
import types
import typing
import weakref
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import torch
from torch import Tensor, nn

import dynacap
from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


def caught(function: Any, *args: Any, **kwargs: Any) -> str:
    try:
        return repr(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Base:
    """Fields, a property that fails, a class attribute."""

    kind = "base"

    def __init__(self, size: int = 1) -> None:
        self.size = size

    @property
    def broken(self) -> int:
        raise AttributeError("broken inside")

    def grow(self, by: int = 1) -> int:
        self.size += by
        return self.size

    @classmethod
    def make(cls, *args: Any) -> "Base":
        return cls(*args)

    @staticmethod
    def helper(n: int) -> int:
        return n * 2


class Derived(Base):
    """Calls its base in all the ways there are."""

    kind = "derived"

    def __init__(self, size: int = 2, label: str = "d") -> None:
        super().__init__(size)
        self.label = label

    def grow(self, by: int = 1) -> int:
        return super().grow(by) + super(Derived, self).grow(0) + Base.grow(self, 0)

    @classmethod
    def make(cls, *args: Any) -> "Base":
        made = super().make(*args)
        made.size += 100
        return made


class Word:
    """What a function says of being abstract, whose truth is a matter of opinion."""

    def __init__(self, holds: bool) -> None:
        self.holds = holds

    def __bool__(self) -> bool:
        if not self.holds:
            raise ValueError("nothing is known")
        return True


def plainly(self: Any) -> None: ...


def marked(self: Any) -> None: ...


def unsure(self: Any) -> None: ...


vars(marked)["__isabstractmethod__"] = Word(True)
vars(unsure)["__isabstractmethod__"] = Word(False)


class Lacking:
    """Properties that lack a part; one of them never had a name."""

    named = property()
    of_class = classmethod(marked)
    of_none = staticmethod(plainly)
    doubted = property(plainly, unsure)


vars_of_lacking = [vars(Lacking)[name] for name in ("named", "of_class", "of_none", "doubted")]
Lacking.loose = property()  # type: ignore[attr-defined]


@program((X, Lacking()), breaks=None)
def test_properties_that_lack_a_part(x: Tensor, obj: Any) -> Any:
    found = [
        caught(use, obj, name, *rest)
        for name in ("named", "loose")
        for use, rest in ((getattr, ()), (setattr, (1,)), (delattr, ()))
    ]
    abstract = [caught(getattr, raw, "__isabstractmethod__") for raw in vars_of_lacking]
    return x + 1, found, abstract


@program((X,))
def test_attribute_functions(x: Tensor) -> Any:
    b, d = Base(), Derived.make(5)
    setattr(b, "extra", 4)  # noqa: B010
    delattr(d, "label")
    return (
        getattr(b, "extra"),
        getattr(b, "none", 7),
        hasattr(b, "size"),
        hasattr(b, "broken"),
        getattr(b, "broken", "default"),  # noqa: B009
        hasattr(d, "label"),
        vars(b),
        b.__dict__,
        d.size,
        d.grow(),
        b.kind,
        type(d).kind,
        d.__class__.__name__,
        Base.helper(3),
        b.helper(4),
        caught(getattr, b, "zzz"),
        caught(delattr, b, "zzz"),
        caught(setattr, b, "broken", 1),
        d.make(1).size,
        type(b) is Base,
        type(d).__mro__ == (Derived, Base, object),
        Derived.__bases__,
        callable(b),
        callable(Base),
        callable(len),
        x + 1,
    )


@runtime_checkable
class Closable(Protocol):
    """Has a close method."""

    def close(self) -> None: ...


class Door:
    """Closes."""

    def close(self) -> None:
        pass


class Abstract(abc.ABC):
    """Cannot be made."""

    @abc.abstractmethod
    def method(self) -> int: ...


class Concrete(Abstract):
    """Can."""

    def method(self) -> int:
        return 3


class Even(type):
    """A metaclass that decides membership."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, int) and instance % 2 == 0

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return subclass is int


class EvenNumber(metaclass=Even):
    """Even numbers."""


@program((X, nn.Linear(2, 2), [1]))
def test_isinstance(x: Tensor, layer: nn.Linear, items: list[int]) -> Any:
    d = Derived()
    return (
        isinstance(d, Base),
        isinstance(d, (int, Derived)),
        isinstance(d, int | Base),
        isinstance(1, bool),
        isinstance(True, int),
        isinstance(items, Sequence),
        isinstance({}, Mapping),
        isinstance("", Iterable),
        isinstance(5, Sized),
        isinstance(None, type(None)),
        isinstance(Door(), Closable),
        isinstance(d, Closable),
        isinstance(x, Tensor),
        isinstance(layer.weight, nn.Parameter),
        isinstance(x, nn.Parameter),
        isinstance(layer, nn.Module),
        isinstance(4, EvenNumber),
        isinstance(3, EvenNumber),
        issubclass(int, EvenNumber),
        issubclass(str, EvenNumber),
        issubclass(Derived, Base),
        issubclass(bool, (str, int)),
        issubclass(list, Sequence),
        isinstance(Base, type),
        isinstance(len, types.BuiltinFunctionType),
        isinstance(Concrete(), Abstract),
        caught(Abstract),
        caught(isinstance, 1, 5),
        caught(issubclass, 1, int),
        x + 1,
    )


class Typed:
    """A descriptor that checks."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = "_" + name

    def __get__(self, obj: Any, owner: type | None = None) -> Any:
        return self if obj is None else getattr(obj, self.name, "unset")

    def __set__(self, obj: Any, value: Any) -> None:
        if not isinstance(value, int):
            raise TypeError(f"{self.name} wants an int")
        setattr(obj, self.name, value)


class Point:
    """Uses the descriptor, slots of a kind, cached properties."""

    x = Typed()
    made = 0

    def __init__(self, x: Any) -> None:
        self.x = x
        self.calls = 0

    @functools.cached_property
    def doubled(self) -> int:
        self.calls += 1
        return int(self.x) * 2

    def __getattr__(self, name: str) -> str:
        if name.startswith("no_"):
            return f"made up {name}"
        raise AttributeError(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x

    def __hash__(self) -> int:
        return hash(self.x)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs


@program((X,))
def test_descriptors(x: Tensor) -> Any:
    p = Point(3)
    p.x = 4
    return (
        p.x,
        p.doubled,
        p.doubled,
        p.calls,
        p.no_such,
        caught(getattr, p, "yes"),
        caught(Point, "s"),
        p == Point(4),
        p != Point(5),
        hash(p) == hash(4),
        p(1, k=2),
        type(p).__dict__["made"] if False else 0,
        isinstance(Point.x, Typed),
        x + 1,
    )


class Shade(enum.Enum):
    """Colours."""

    DARK = 1
    LIGHT = "light"

    @property
    def loud(self) -> str:
        return self.name + "!"

    @classmethod
    def best(cls) -> "Shade":
        return cls.LIGHT


class Size(enum.IntEnum):
    """Numbers."""

    SMALL = 1
    BIG = 10


class Mode(str, enum.Enum):
    """Texts."""

    FAST = "fast"
    SLOW = "slow"


class Perm(enum.Flag):
    """Flags."""

    R = enum.auto()
    W = enum.auto()
    RW = R | W


@program((X, Shade.DARK), (X, Shade.LIGHT))
def test_enums(x: Tensor, shade: Shade) -> Any:
    table = {Shade.DARK: "d", Shade.LIGHT: "l"}
    return (
        shade.name,
        shade.value,
        shade.loud,
        shade is Shade.DARK,
        shade == Shade.LIGHT,
        Shade(1),
        Shade["LIGHT"],
        list(Shade),
        len(Shade),
        table[shade],
        Shade.best(),
        [s.name for s in Shade],
        Size.BIG + 1,
        Size.SMALL < Size.BIG,
        Size(10),
        f"{Size.BIG}",
        f"{shade}",
        repr(shade),
        str(Mode.FAST),
        Mode.FAST == "fast",
        Mode("slow"),
        Mode.FAST.upper(),
        Mode.FAST in ("fast",),
        Perm.R | Perm.W,
        Perm.R in Perm.RW,
        bool(Perm.R & Perm.W),
        Perm.RW ^ Perm.R,
        isinstance(shade, Shade),
        caught(Shade, 99),
        hash(Shade.DARK) == hash(Shade.DARK),
        shade in Shade,
        x * Size.BIG,
    )


@dataclasses.dataclass
class Config:
    """Plain."""

    width: int
    names: list[str] = dataclasses.field(default_factory=list)
    inner: "Config | None" = None

    def __post_init__(self) -> None:
        self.area = self.width**2


@dataclasses.dataclass(frozen=True, order=True)
class Key:
    """Frozen and ordered."""

    a: int
    b: str = "b"


@dataclasses.dataclass(slots=True)
class Slim:
    """With slots."""

    a: Any
    b: int = 0


class Pair(NamedTuple):
    """A typed named tuple."""

    left: int
    right: Any = None

    def both(self) -> tuple[int, Any]:
        return self.left, self.right


@program((X,))
def test_dataclasses(x: Tensor) -> Any:
    c = Config(3, ["a"], Config(1))
    k = Key(1)
    s = Slim(x)
    s.b += 2
    return (
        c,
        c.area,
        dataclasses.replace(c, width=5).area,
        dataclasses.asdict(c),
        dataclasses.astuple(k),
        [f.name for f in dataclasses.fields(c)],
        dataclasses.is_dataclass(c),
        repr(c),
        repr(k),
        k < Key(2),
        k == Key(1),
        k != Key(1, "c"),
        c == Config(3, ["a"], Config(1)),
        s.b,
        caught(setattr, k, "a", 2),
        Pair(1).both(),
        Pair(1, x),
        Pair(2)._replace(right=3),
        cast("Any", 5),
        x + s.a,
    )


@program((X,))
def test_made_inside(x: Tensor) -> Any:
    n = types.SimpleNamespace(a=1, b=x)
    n.c = n.a + 1
    method = types.MethodType(lambda self, k: (self, k), 5)
    bound = Derived(3).grow
    return (
        n,
        n.c,
        method(2),
        method.__self__,
        bound(),
        bound.__name__,
        bound.__func__ is Derived.grow,
        Derived.grow.__qualname__,
        x + 1,
    )


class Ratio(float):
    """A float with a name."""

    def __new__(cls, value: float, name: str = "r") -> "Ratio":
        made = super().__new__(cls, value)
        made.name = name  # type: ignore[attr-defined]
        return made


@program((X,), breaks=None)
def test_subclasses_of_numbers(x: Tensor) -> Any:
    r = Ratio(1.5, "half again")
    return float(r), r.name, r + 1, x * r  # type: ignore[attr-defined]


@typing.runtime_checkable
class Named(typing.Protocol):
    """With a member that is no method, so that it answers for instances alone."""

    name: str = ""


class Inherits(Named):
    """Follows by inheritance, without the member of its own."""

    def __getattribute__(self, key: str) -> Any:
        if key == "name":
            raise AttributeError(key)
        return super().__getattribute__(key)


class Registered:
    """Follows since it is registered."""


Named.register(Registered)


@program((X,))
def test_protocols_that_are_inherited_or_registered(x: Tensor) -> Any:
    other = object()
    return (
        x + 1,
        isinstance(Inherits(), Named),
        isinstance(Registered(), Named),
        isinstance(other, Named),
    )


@program((X,), breaks=None)
def test_a_classmethod_that_is_marked_final(x: Tensor) -> Any:
    made: Any = typing.final(classmethod(abs))
    return x + 1, made.__final__


@program((X,), breaks=None)
def test_subscripts_that_are_refused(x: Tensor) -> Any:
    try:
        subscripted: Any = typing.List  # noqa: UP006
        return subscripted["/T"], x  # noqa: F722
    except SyntaxError as error:
        return x + 1, str(error)


class Dies(list[int]):
    """Tells of its death."""

    deaths: typing.ClassVar[list[int]] = []

    def __del__(self) -> None:
        self.deaths.append(len(self))


@program((X,), breaks=None)
def test_what_an_iterator_holds_dies_when_it_is_exhausted(x: Tensor) -> Any:
    Dies.deaths.clear()
    iterator = iter(Dies([1, 2]))
    total = sum(iterator)
    y = x + total
    dynacap.graph_break()
    return y, list(Dies.deaths)


@program((X,))
def test_frozensets_in_frozensets(x: Tensor) -> Any:
    made = frozenset[Any]()
    for _ in range(100):
        made = frozenset([made, frozenset([made])])
    return x + 1, hash(made) == hash(made), len(made)


@program((X,), breaks=None)
def test_attributes_behind_a_weak_proxy(x: Tensor) -> Any:
    class Pair:
        x = 0

    target = Pair()
    proxy = weakref.proxy(target)
    proxy.x = 3
    seen = target.x, proxy.x, isinstance(proxy, Pair), hasattr(proxy, "z"), type(proxy).__name__
    del target
    try:
        return proxy.x
    except ReferenceError as error:
        return seen, str(error), x + 1


class Keeps(dict[Any, Any]):
    """A dict that a weak reference can point to."""


@program((X,), breaks=None)
def test_what_only_a_local_holds_lives_until_the_end(x: Tensor) -> Any:
    def both(first: Any, second: Any) -> int:
        known = weakref.WeakKeyDictionary[Any, int]()
        known[first] = 1
        known[second] = 2
        return len(known)

    class Pair:
        pass

    held, number = Keeps(a=1), type("Number", (float,), {})(2.0)
    to_held, to_number = weakref.ref(held), weakref.ref(number)
    pair = Pair()
    proxy = weakref.proxy(pair)
    count = weakref.getweakrefcount(pair)
    del proxy
    return (
        to_held() is None,
        to_number() is None,
        both(Pair(), Pair()),
        (count, weakref.getweakrefcount(pair)),
        x + 1,
    )


@program((X,), breaks=None)
def test_a_field_of_a_type_in_c_that_is_read_only(x: Tensor) -> Any:
    def target() -> None:
        pass

    reference: Any = weakref.ref(target, print)
    try:
        reference.__callback__ = None
    except AttributeError as error:
        return str(error), x + 1


@program((X, None), breaks=1)
def test_none_that_only_a_local_holds(x: Tensor, unused: None) -> Any:
    dynacap.graph_break()
    return x + 1


class Called(collections.abc.Callable):  # type: ignore[misc, type-arg]
    def __call__(self) -> None: ...


@program((X,), breaks=None)
def test_an_alias_of_a_callable_class_makes_its_instances(x: Tensor) -> Any:
    alias = cast(Any, Called)[[int], int]
    dynacap.graph_break()
    return x + 1, alias.__origin__, type(alias())


class Uncopied:
    """Hides how it is reduced."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__reduce"):
            raise AttributeError(name)
        return object.__getattribute__(self, name)


@program((X,), breaks=None)
def test_copies_of_what_hides_its_methods(x: Tensor) -> Any:
    return caught(copy.copy, Uncopied())[:30], caught(copy.deepcopy, Uncopied())[:30], x + 1


def taken_away() -> Any:
    class Refused:
        def __new__(cls, *args: Any) -> Any:
            raise AssertionError

    class Restored(Refused):
        __new__ = object.__new__  # type: ignore[assignment]

        def __init__(self, value: int) -> None:
            self.value = value

    del Restored.__new__, Refused.__new__
    return Restored


RESTORED = taken_away()


@program((X,), breaks=None)
def test_a_class_whose_new_was_taken_away_takes_no_arguments(x: Tensor) -> Any:
    try:
        return RESTORED(3).value
    except TypeError as error:
        return str(error), x + 1


ANY: Any = typing.TypeVar("ANY")
CALLED: Any = typing.ParamSpec("CALLED")


@program((X,), (X,))
def test_aliases_of_type_variables(x: Tensor) -> Any:
    def take(a: list[ANY], b: dict[str, ANY]) -> tuple[ANY, ...]:
        return (x, a, b)

    kinds: Any = list
    return x + 1, kinds[ANY], kinds[ANY], take, take.__annotations__, CALLED
