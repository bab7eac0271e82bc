"""Faults of the data model that were found, each in its smallest form."""

import enum
import io
import operator
import types
from collections import OrderedDict
from typing import Any, ClassVar

import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(3.0)


def caught(function: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


class Percent(float):
    """A number of the user's own, which tensors take as a number."""

    def __str__(self) -> str:
        return f"{100 * self:.0f}%"


class Name(str):
    """Text of the user's own, with room for attributes."""


GIVEN = Percent(0.5)


@program((X,), (X,))
def test_subclasses_of_numbers_and_text(x: Tensor) -> Any:
    made, name = Percent(0.25), Name("rate")
    name.unit = "%"  # type: ignore[attr-defined]
    return x * GIVEN, x + made, f"{made} {GIVEN} {made:.1f}", {made: 1}[0.25], name, name.upper()


@program((X, Percent(0.5)), (X, Percent(0.75)))
def test_numbers_of_another_class_are_guarded(x: Tensor, rate: Percent) -> Any:
    return x * rate, rate + 1, rate


class Meta(type):
    """Answers for its classes whatever it is asked."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 1

    def __subclasscheck__(cls, sub: type) -> bool:
        return False


class Odd(metaclass=Meta):
    """Capture must not ask its class what it equals, nor what is below it."""

    def __init__(self, size: int) -> None:
        self.size = size


class OddChild(Odd):
    """Reached by ``super()``."""

    def __init__(self) -> None:
        super().__init__(3)


@program((X,))
def test_metaclasses_are_not_asked(x: Tensor) -> Any:
    return x + Odd(2).size + OddChild().size, {Odd: 1, OddChild: 2}


class Lying(list):  # type: ignore[type-arg]
    """Says of its length and items what is not so."""

    def __len__(self) -> int:
        return 7

    def __iter__(self) -> Any:
        return iter("ab")


@program((X, Lying([1, 2])))
def test_containers_are_read_as_they_lie(x: Tensor, given: Lying) -> Any:
    return x + len(given), [*given], given[0], list.__len__(given)


class Weight:
    """Turns into numbers when a C function asks for one."""

    def __float__(self) -> float:
        return 2.25

    def __index__(self) -> int:
        return 3

    def __radd__(self, other: object) -> str:
        return "added"

    def __rmul__(self, other: object) -> str:
        return "multiplied"


@program((X,))
def test_c_functions_ask(x: Tensor) -> Any:
    import math

    w = Weight()
    return (
        x + math.sqrt(w),
        operator.mod("%d", w),
        chr(w),
        "abc".center(w),
        [1] + w,
        [1] * w,
        "ab" * w,
        ",".join(c for c in "xyz"),
        caught(lambda: "".join(w)),  # type: ignore[arg-type]
        caught(lambda: w < 1),
        caught(lambda: [].append()),  # type: ignore[call-arg]
        caught(lambda: dict.__new__(int)),  # type: ignore[type-var]
    )


@program((X, set((8, 0))), (X, set((0, 8))))
def test_order_of_sets_from_outside(x: Tensor, given: set[int]) -> Any:
    return x + 1, list(given)


class Indexed:
    """Its class is subscripted by its own method."""

    seen: list[Any] = []  # noqa: RUF012

    def __class_getitem__(cls, key: Any) -> Any:
        cls.seen.append(key)
        return cls, key


@program((X,))
def test_class_getitem_runs_once(x: Tensor) -> Any:
    Indexed.seen.clear()
    return x + 1, Indexed[int], len(Indexed.seen)  # type: ignore[misc]


@program((X,))
def test_super_of_what_does_not_fit(x: Tensor) -> Any:
    return caught(super, Odd, [x]), caught(super, Odd, Percent), caught(super, Odd, 3), x + 1


class Plain:
    """What a ``super()`` finds."""

    rate = 2


class Keeping(Plain):
    """Looks at a ``super()`` itself, also behind a break."""

    rate = 3

    def seen(self) -> Any:
        found = super()
        print("a break")
        missing = caught(getattr, found, "nothing")
        return found.rate, found, found.__class__, super().__class__, missing

    def __repr__(self) -> str:
        return "Keeping()"


@program((X,), breaks=None)
def test_super_as_an_object(x: Tensor) -> Any:
    rate, found, *rest = Keeping().seen()
    return x * rate, found.rate, repr(found), found.__self__.rate, rest  # type: ignore[attr-defined]


class OnlyLeaves:
    """Half of what ``with`` wants."""

    def __exit__(self, *args: object) -> None: ...


class OnlyEnters:
    """The other half."""

    def __enter__(self) -> None: ...


class Waits:
    """For ``async with``."""

    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *args: object) -> None: ...


def entered(manager: Any) -> None:
    with manager:
        print("not reached")


@program((X,))
def test_with_of_what_is_no_context_manager(x: Tensor) -> Any:
    managers = OnlyLeaves(), OnlyEnters(), Waits(), 3, [x]
    return [caught(entered, each) for each in managers], x + 1


@program((X,))
def test_methods_written_in_c_are_compared_by_object(x: Tensor) -> Any:
    one, other = Plain(), Plain()
    bound, text, items = super(Plain, one).__reduce__, "text", [x]
    return (
        (bound == one.__reduce__, bound == other.__reduce__, bound != one.__reduce__),
        (text.upper == text.upper, text.upper == text.lower, text.upper == "other".upper),
        (items.append == items.append, items.append == [x].append),
        x + 1,
    )


class Late:
    """What is read of it is looked at only where it is used."""

    limit: Any = None


LATE = Late()


@program((X,), breaks=None)
def test_none_that_is_let_go_of_before_it_is_looked_at(x: Tensor) -> Any:
    limit = LATE.limit
    for turn in range(2):
        print(turn)
        if turn > 5:
            print(limit)
    print("over")
    return x + 1


@program((X,), breaks=None)
def test_attributes_of_what_is_written_in_c(x: Tensor) -> Any:
    return caught(setattr, int, "unit", "%"), set_unit(complex), x + 1


def set_unit(kind: Any) -> str:
    try:
        kind.unit = "%"
    except TypeError as error:
        return str(error)
    return "set"


class Answering(dict):  # type: ignore[type-arg]
    """Globals that answer for each name that they lack, as those of annotationlib do."""

    def __missing__(self, name: str) -> str:
        return f"<{name}>"


ANSWERED: Any = types.FunctionType((lambda: (int, nothing)).__code__, Answering())  # type: ignore[name-defined]  # noqa: F821


@program((X,), breaks=None)
def test_globals_that_answer_for_what_they_lack(x: Tensor) -> Any:
    return ANSWERED(), x + 1


class Doubled:
    """A field that is only set through its descriptor."""

    def __set__(self, obj: Any, value: int) -> None:
        obj.__dict__["size"] = 2 * value


class Sized:
    size = Doubled()


class SizedMeta(type):
    size = Doubled()


class SizedClass(metaclass=SizedMeta):
    size = 7


@program((X,))
def test_descriptors_that_are_only_set(x: Tensor) -> Any:
    sized = Sized()
    unset = type(sized.size) is Doubled
    sized.size = 4
    return unset, sized.size, SizedClass.size, x + 1


class Through:
    """A special method that its ``__get__`` makes anew for each use."""

    def __init__(self, made: list[str]) -> None:
        self.made = made

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        def answer(name: str, *value: Any) -> Any:
            self.made.append(name)
            if name == "absent":
                raise AttributeError(name)
            return name

        return answer


MADE: list[str] = []


class Asked:
    __getattribute__ = __setattr__ = __delattr__ = Through(MADE)


@program((X,))
def test_attributes_through_descriptors(x: Tensor) -> Any:
    MADE.clear()
    asked = Asked()
    asked.one = asked.two
    del asked.three
    return caught(getattr, asked, "absent"), asked.four, list(MADE), x + 1


class Items(dict):  # type: ignore[type-arg]
    __setattr__ = dict.__setitem__  # type: ignore[assignment]
    __delattr__ = dict.__delitem__  # type: ignore[assignment]
    __neg__ = dict.copy


@program((X,))
def test_special_methods_that_are_others_of_c(x: Tensor) -> Any:
    items = Items(two=x)
    items.one = x + 1
    del items.two
    return items["one"], dict(-items)


class Posing:
    """Says that it is what it stands for."""

    def __init__(self, obj: Any) -> None:
        self.__obj = obj

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_Posing__"):
            return object.__getattribute__(self, name)
        return getattr(self.__obj, name)


class Base:
    def name(self) -> str:
        return "base"


class Derived(Base):
    def name(self) -> str:
        return super().name() + " derived"


class PosingText:
    __class__ = str  # type: ignore[assignment]


@program((X,))
def test_objects_that_say_what_they_are(x: Tensor) -> Any:
    posing: Any = Posing(Derived())
    kinds = [isinstance(posing, kind) for kind in (Derived, Base, Posing, str)]
    text = PosingText()
    return kinds, Derived.name(posing), isinstance(text, str), isinstance(text, int), x + 1


class Weak:
    __slots__ = ("__weakref__",)


@program((X,))
def test_slots_for_weak_references(x: Tensor) -> Any:
    weak = Weak()
    return hasattr(weak, "__weakref__"), hasattr(weak, "__dict__"), weak.__weakref__, x + 1


class Ordered(type):
    """Looks at its class before that has an order of bases."""

    def mro(cls) -> list[type]:
        seen = cls.__mro__, getattr(cls, "size", None), caught(super().mro)
        return [cls, *seen[2][1:]] if seen[0] is None and seen[1] is None else []


@program((X,), breaks=None)
def test_classes_that_are_half_made(x: Tensor) -> Any:
    made = Ordered("Made", (Sized, Base), {})
    return [base.__name__ for base in made.__mro__], x + 1


class Shortened(type):
    def mro(cls) -> list[type]:
        return super().mro()[:1] + super().mro()[2:]


class Short(Derived, metaclass=Shortened):
    pass


@program((X,))
def test_mro_is_not_what_the_class_has(x: Tensor) -> Any:
    return len(type.mro(Short)), len(Short.__mro__), len(Short.mro()), x + 1


class Hiding:
    """Keeps its attributes where ``__dict__`` does not show them."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        return {"hidden": True}


@program((X,), breaks=None)
def test_objects_are_filled_behind_their_own_attributes(x: Tensor) -> Any:
    posing, hiding = Posing(Derived()), Hiding(3)
    print("between")
    return Derived.name(posing), hiding.size, hiding.__dict__, x + 1


class Noting(types.ModuleType):
    """A module that notes what it is asked."""

    def __getattribute__(self, name: str) -> Any:
        NOTED.append(name)
        return super().__getattribute__(name)


NOTED: list[str] = []


@program((X,), breaks=None)
def test_modules_are_asked_only_by_the_program(x: Tensor) -> Any:
    NOTED.clear()
    noting: Any = Noting("noting")
    noting.size = 3
    return noting.size, list(NOTED), x + 1


class Above(type):
    """Asks for what is above its class before that is known."""

    def mro(cls) -> list[type]:
        return [cls, object] if caught(getattr, super(), "size") else []


class HalfMade(type):
    def mro(cls) -> list[type]:
        found = caught(lambda: super(cls, cls).size)  # type: ignore[misc]
        return [cls, object] if found[0] is AttributeError else []


@program((X,), breaks=None)
def test_super_of_classes_that_are_half_made(x: Tensor) -> Any:
    made = [kind("Made", (), {}).__mro__[1:] for kind in (Above, HalfMade)]
    return made, x + 1


class Color(enum.Enum):
    RED = 1
    BLUE = 3

    @classmethod
    def _missing_(cls, value: object) -> Any:
        NOTED.append(str(value))
        if value == "none":
            raise LookupError(value)
        return cls.BLUE if value == "three" else None


@program(*((X, value) for value in ("three", "four", "none", 1, "three", "four")), breaks=None)
def test_enums_that_are_asked_for_what_they_lack(x: Tensor, value: Any) -> Any:
    NOTED.clear()
    try:
        found: Any = Color(value)
    except (ValueError, LookupError) as error:
        found = type(error), str(error), type(error.__context__)
    return found, list(NOTED), x + 1


@program((X,))
def test_enums_by_the_values_that_they_have(x: Tensor) -> Any:
    return Color(1), Color(3), x + Color(3).value


@program(*((X, value) for value in (0, 3, [], "a", None)), breaks=None)
def test_not_not(x: Tensor, value: Any) -> Any:
    return not not value, x + 1


class Level(enum.IntEnum):
    LOW = 1


@program((X, 5, "first"), (X, 5, "second"), (X, 5, "third"))
def test_a_new_object_of_an_enum_is_none_of_its_members(x: Tensor, value: int, name: str) -> Any:
    made = int.__new__(Level, value)
    made.phrase = name  # type: ignore[attr-defined]
    return made is Level.LOW, vars(made), x + 1


def test_objects_of_an_enum_are_new_each_time() -> None:
    @dynacap.compile(backend="eager")
    def make(x: Tensor, value: int) -> Any:
        return int.__new__(Level, value), x + 1

    assert len({id(made) for made in [make(X, 5)[0] for _ in range(4)]}) == 4


class Colliding:
    """Keys that all have one hash, and say when they are compared."""

    asked: ClassVar[list[Any]] = []

    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        self.asked.append(1)
        return self is other


ORDERED = OrderedDict([(Colliding(), 1), (Colliding(), 2)])


@program((X,), (X,), breaks=None)
def test_an_ordered_dict_asks_its_keys_as_often_as_in_eager(x: Tensor) -> Any:
    Colliding.asked.clear()
    values = list(ORDERED.values())
    return values, len(Colliding.asked), x + 1


@program((X,), (X,), breaks=None)
def test_annotations_that_name_nothing(x: Tensor) -> Any:
    try:

        @staticmethod
        def inner(a: nothing) -> int:  # type: ignore[name-defined]
            return 0

        before = "__annotations__" in vars(inner)
        found: Any = inner.__annotations__, before
    except NameError as error:
        found = str(error)
    return found, x + 1


@program((X,), (X,), breaks=None)
def test_annotations_are_kept_as_in_eager(x: Tensor) -> Any:
    @staticmethod
    def inner(a: int) -> str:
        return ""

    return "__annotations__" in vars(inner), inner.__annotations__, x + 1


@program((X, io.StringIO()), (X, io.StringIO()), breaks=None)
def test_the_owner_of_a_method_that_is_no_class(x: Tensor, file: Any) -> Any:
    return type(caught(io.TextIOBase.read.__get__, file, "no class")).__name__, x + 1


@program((X, frozenset({1, 2})), (X, {3}), breaks=None)
def test_frozen_sets_made_inside(x: Tensor, given: Any) -> Any:
    vertices = [frozenset([a, b]) for a in (1, 2, 3) for b in (4, 5)]
    first, second, *rest = [frozenset([each, vertices[0]]) for each in vertices]
    return first ^ second, first | given, second ^ given, rest[0] & rest[1], x + 1


def test_what_a_function_in_new_reads_is_guarded() -> None:
    held = [1.0]

    class Made:
        v: float

        def __new__(cls) -> Any:
            self: Any = object.__new__(cls)
            self.v = held[0]
            return self

    namespace: dict[str, Any] = {"Made": Made}
    exec("def f(x): return x * Made().v", namespace)
    compiled = dynacap.compile(namespace["f"], backend="eager")
    x = torch.ones(2)
    assert torch.equal(compiled(x), x)
    held[0] = 5.0
    assert torch.equal(compiled(x), x * 5)
