"""What C asks of the program's objects, in C's order, and what it warns of."""

import functools
import gc
import itertools
import math
import operator
import sys
import warnings
from collections.abc import Container, Iterable
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import program

X = torch.arange(3.0)


class Integer(int):
    """What a conversion should not give, and may."""


class Number:
    """Converts to a number of a class of the program's."""

    def __int__(self) -> int:
        return Integer(7)

    __index__ = __int__

    def __float__(self) -> float:
        return type("Real", (float,), {})(7.5)


def warned(function: Any, *args: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(*args)
    return result, type(result), [(each.category, str(each.message)) for each in caught]


@program((X,), (X,), breaks=None)
def test_what_conversions_warn_of(x: Tensor) -> Any:
    return x + 1, warned(int, Number()), warned(float, Number()), warned(operator.index, Number())


def says(value: Any) -> bool:
    return True if value else False


@program((X,), (X,), breaks=None)
def test_the_truth_of_not_implemented(x: Tensor) -> Any:
    try:
        return x + 1, warned(says, NotImplemented)
    except TypeError as error:
        return str(error)


class Hinted:
    """Notes what it is asked."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def __iter__(self) -> Any:
        self.asked.append("iter")
        return iter([1, 2])

    def __length_hint__(self) -> int:
        self.asked.append("hint")
        return 2


class Bound:
    """A descriptor that notes that it is bound."""

    def __get__(self, obj: Any, owner: Any) -> Any:
        obj.asked.append("bound")
        return lambda: 3


class Described(Hinted):
    """Says how much there is by way of a descriptor."""

    __length_hint__ = Bound()  # type: ignore[assignment]


@program((X,), (X,))
def test_the_length_of_what_is_listed(x: Tensor) -> Any:
    asked: list[str] = []
    first, _ = Hinted(asked)
    found = [list(Hinted(asked)), (*Hinted(asked), 3), tuple(Hinted(asked)), sorted(Hinted(asked))]
    found.append(list(Described(asked)))
    found.append(list(itertools.product(Hinted(asked))))
    asked.append("set")
    found.append({*Hinted(asked)})
    return x + first, found, asked


class Once(Hinted):
    """Its own iterator, which is asked how much is left where C lists it."""

    def __iter__(self) -> Any:
        self.asked.append("iter")
        return self

    def __next__(self) -> str:
        self.asked.append("next")
        if self.asked.count("next") > 3:
            raise StopIteration
        return f"k{len(self.asked)}"


class Keyed:
    """A mapping whose keys are an iterator."""

    def __init__(self, asked: list[str]) -> None:
        self.asked = asked

    def keys(self) -> Any:
        return Once(self.asked)

    def __getitem__(self, key: str) -> str:
        self.asked.append(key)
        return key


def into_slice(given: Any) -> Any:
    found = [0, 1]
    found[:1] = given
    return found


def starred(given: Any) -> Any:
    first, *rest = given
    return first, rest


def as_arguments(given: Any) -> Any:
    return (lambda *args: args)(*given)


def merged(asked: list[str]) -> Any:
    return {**Keyed(asked)}


@program((X,), (X,))
def test_what_is_listed_by_its_iterator(x: Tensor) -> Any:
    found = []
    for function in into_slice, starred, as_arguments, itertools.product, list:
        asked: list[str] = []
        found.append(([*function(Once(asked))], asked))
    asked = []
    return x + 1, found, merged(asked), asked


def wrong_number(given: Any) -> str:
    try:
        _a, _b = given
    except ValueError as error:
        return str(error)
    return ""


@program((X,), (X,))
def test_what_unpacking_says_of_a_wrong_number(x: Tensor) -> Any:
    three = {"a": 1, "b": 2, "c": 3}
    made = [three, [*three], (*three,), {*three}, iter([*three]), "abc", [1], (), {}, iter([1])]
    return x + 1, [wrong_number(each) for each in made]


class Echo:
    """Gives back what it is asked for."""

    def __getitem__(self, key: Any) -> Any:
        return key


def twice() -> Any:
    return [Echo()[1:2] for _ in range(2)]


@program((X,), (X,))
def test_which_slices_are_one(x: Tensor) -> Any:
    (first, second), third = twice(), slice(1, 2)
    again = [slice(*[1, 2]) for _ in range(2)]
    return x + 1, first, second, third, first is second, first is third, again, again[0] is again[1]


@program((X,), (X,))
def test_unpacking_takes_one_more_than_it_needs(x: Tensor) -> Any:
    taken = []

    def numbers() -> Any:
        for number in range(9):
            taken.append(number)
            yield number

    try:
        _a, _b = numbers()
    except ValueError as error:
        return x + 1, str(error), taken


class Half(float):
    """Is made anew from what the maker of floats makes."""

    def __new__(cls, value: float) -> Any:
        made = float.__new__(cls, value / 2)
        made.given = value  # type: ignore[attr-defined]
        return made


class Count(int):
    """As it is, with a note."""

    def __init__(self, value: int) -> None:
        self.noted = value


@program((X,), (X,))
def test_makers_of_subclasses_call_the_class(x: Tensor) -> Any:
    half, count = Half.fromhex("0x1p1"), Count.from_bytes(b"\x02", "big")
    return x + half, half, half.given, count, count.noted, type(count), float.fromhex("0x1p1")  # type: ignore[attr-defined]


class Kept:
    """A class whose attribute is set in ways that Python refuses."""

    value = 1


@program((X,), (X,), breaks=None)
def test_methods_of_object_refuse_classes(x: Tensor) -> Any:
    found: list[Any] = []
    for change in (
        lambda: object.__setattr__(Kept, "value", 2),
        lambda: object.__delattr__(Kept, "value"),
    ):
        try:
            change()
        except TypeError as error:
            found.append(str(error))
    return x + Kept.value, found


class MakesNothing(Exception):
    """Makes no exception where one is asked for."""

    @classmethod
    def __new__(cls, *args: Any) -> Any:
        return None


@program((X,), (X,), breaks=None)
def test_a_cause_that_is_none(x: Tensor) -> Any:
    try:
        raise IndexError from MakesNothing
    except (TypeError, IndexError) as error:
        return x + 1, type(error), str(error).replace("<class ", "")


@program((X,), (X,), breaks=None)
def test_ranges_longer_than_len_can_say(x: Tensor) -> Any:
    numbers = iter(range(sys.maxsize - 1, 2 * sys.maxsize, sys.maxsize // 3))
    great = iter(range(0, sys.maxsize * 4))
    return x + 1, list(numbers), next(great), next(great)


WIDE = {f"key {number}": number for number in range(2_000)}


@program((X, WIDE), (X, {**WIDE, "more": 1}), (X, WIDE))
def test_a_wide_dict(x: Tensor, wide: dict[str, int]) -> Any:
    total = 0
    for value in list(wide.values()):
        total += value
    return x + total, len(wide)


class Plain:
    """Shows its address."""


@program((X,), (X,), breaks=None)
def test_text_that_shows_addresses(x: Tensor) -> Any:
    made = {"a": Plain()}
    return x + 1, "{a!r}".format_map(made) == repr(made["a"])


class Pair(complex):
    """A number of the program's own."""


@program((X,), (X,))
def test_fields_of_subclasses_of_numbers(x: Tensor) -> Any:
    try:
        made = Pair(1.0, 2.0)
        return x + 1, made.real, made.imag
    except AttributeError:
        return None


def hashes(x: Tensor, number: float) -> Any:
    return x + 1, hash(number) == object.__hash__(number)


@program((X,), (X,), breaks=None)
def test_the_hash_of_nan_is_its_address(x: Tensor) -> Any:
    return [hashes(x, float("nan"))[1] for _ in range(2)], hash(3.0)


@program((X, float("nan")), (X, float("nan")), breaks=None)
def test_the_hash_of_nan_from_outside(x: Tensor, number: float) -> Any:
    return x + 1, hash(number) == object.__hash__(number)


class Odd:
    """A name of an attribute that is no text."""

    asked = 0

    def __hash__(self) -> int:
        return hash("value")

    def __eq__(self, other: object) -> bool:
        Odd.asked += 1
        return False


_NAMES: Any = {Odd(): 1, "value": 2}
Named: Any = type("Named", (), _NAMES)


def asked_of_a_class(x: Tensor) -> Any:
    before = Odd.asked
    found = Named.value
    return x + found, Odd.asked >= before


@program((X,), (X,), breaks=None)
def test_classes_with_names_that_are_no_text(x: Tensor) -> Any:
    return asked_of_a_class(x)


@functools.singledispatch
def dispatched(obj: Any) -> str:
    return "any"


class Both:
    """Registered for two abstract classes, neither of which comes first."""


Iterable.register(Both)
Container.register(Both)
dispatched.register(Iterable, lambda obj: "iterable")
dispatched.register(Container, lambda obj: "container")


@program((X,), (X,), breaks=None)
def test_a_dispatch_that_is_ambiguous(x: Tensor) -> Any:
    try:
        return x + 1, dispatched(3), dispatched([]), dispatched(Both())
    except RuntimeError as error:
        return x + 2, str(error).partition(":")[0]


@program((X,), (X,), breaks=None)
def test_annotations_of_methods_of_classes(x: Tensor) -> Any:
    def function(obj: int) -> int:
        """Say so."""
        return obj

    found = [classmethod(function), staticmethod(function)]
    return x + 1, [(each.__annotations__, each.__doc__, each.__name__) for each in found]


@program((X,), (X,), breaks=None)
def test_a_tee_of_a_tee(x: Tensor) -> Any:
    first, second = itertools.tee("abc")
    sys.getsizeof(first)  # breaks
    again, more = itertools.tee(first)
    return x + 1, first is again, [*second], [*again], [*more]


LOG: list[str] = []


class Dies:
    """Says when it dies."""

    def __del__(self) -> None:
        LOG.append("died")


@program((X,), (X,), watch=("LOG",), breaks=None)
def test_what_a_container_holds_dies_with_it(x: Tensor) -> Any:
    made = [Dies(), Dies()]
    LOG.append("made")
    del made
    LOG.append("list")
    return x + len(LOG)


class Text(str):
    """Has room for a finalizer."""

    def __del__(self) -> None:
        LOG.append("text")


@program((X,), (X,), watch=("LOG",), breaks=None)
def test_iterators_let_go_at_their_end(x: Tensor) -> Any:
    letters = reversed(Text("ab"))
    found = [*letters]
    gc.collect()
    LOG.append("end")
    return x + 1, found, next(letters, None)


class Halves:
    """Adds and multiplies, also from the right."""

    def __init__(self, halves: int) -> None:
        self.halves = halves

    def __add__(self, other: Any) -> "Halves":
        return Halves(self.halves + (other.halves if isinstance(other, Halves) else 2 * other))

    def __mul__(self, other: Any) -> "Halves":
        return Halves(self.halves * (other.halves if isinstance(other, Halves) else 2 * other))

    __radd__, __rmul__ = __add__, __mul__


@program((X,), breaks=None)
def test_c_adds_and_multiplies(x: Tensor) -> Any:
    halves = [Halves(1), Halves(3)]
    sums: Any = getattr(math, "sumprod", lambda *_: Halves(0))  # since 3.12
    found: list[Any] = [math.prod(halves), sum(halves), sums(halves, [2, Halves(5)])]
    return [each.halves for each in found], x + 1


class Secretive(type):
    """Its classes do not say where they were made."""

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        raise ZeroDivisionError


NAMELESS: Any = Secretive("Nameless", (), {})


@program((X,), breaks=None)
def test_names_of_a_class_that_its_metaclass_hides(x: Tensor) -> Any:
    try:
        return int | NAMELESS()
    except (TypeError, ZeroDivisionError) as error:
        return repr(error), x + 1
