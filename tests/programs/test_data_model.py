"""Python's data model: operators, attributes, descriptors, properties, calls, comparison, truth."""

import functools
import operator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dynacap.testing import call, program

X = torch.arange(6.0).reshape(2, 3)


class Money:
    """Arithmetic in both directions, comparison, truth, conversion."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Money):
            return NotImplemented
        return Money(self.cents + other.cents)

    def __radd__(self, other: Any) -> "Money":
        return Money(self.cents + other)

    def __iadd__(self, other: Any) -> "Money":
        self.cents += 1000
        return self

    def __rsub__(self, other: Any) -> str:
        return f"{other} less {self.cents}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and self.cents == other.cents

    def __lt__(self, other: "Money") -> bool:
        return self.cents < other.cents

    def __hash__(self) -> int:
        return hash(self.cents)

    def __bool__(self) -> bool:
        return self.cents != 0

    def __int__(self) -> int:
        return self.cents

    def __index__(self) -> int:
        return self.cents % 2

    def __neg__(self) -> "Money":
        return Money(-self.cents)

    def __repr__(self) -> str:
        return f"Money({self.cents})"


class Shelf:
    """Containment, items, length, iteration, call, attribute fallback."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.items[index] = value

    def __delitem__(self, index: Any) -> None:
        del self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: Any) -> bool:
        return item in self.items

    def __call__(self, *args: Any, scale: float = 1.0) -> Any:
        return args, scale, len(self.items)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return f"no {name}"


class Old:
    """Iterated through `__getitem__` alone."""

    def __getitem__(self, index: int) -> int:
        if index > 3:
            raise IndexError(index)
        return index * index


class Up:
    """An iterator written as a class."""

    def __init__(self, stop: int) -> None:
        self.at, self.stop = 0, stop

    def __iter__(self) -> "Up":
        return self

    def __next__(self) -> int:
        if self.at >= self.stop:
            raise StopIteration
        self.at += 1
        return self.at


class Temperature:
    """Properties with setter and deleter; class and static methods."""

    made = 0

    def __init__(self, celsius: float) -> None:
        self._celsius = celsius

    @property
    def kelvin(self) -> float:
        return self._celsius + 273

    @kelvin.setter
    def kelvin(self, value: float) -> None:
        self._celsius = value - 273

    @kelvin.deleter
    def kelvin(self) -> None:
        self._celsius = 0.0

    @classmethod
    def boiling(cls) -> "Temperature":
        return cls(100.0)

    @staticmethod
    def twice(value: float) -> float:
        return value * 2

    @functools.cached_property
    def label(self) -> str:
        type(self).made += 1
        return f"{self._celsius:.1f}C"


class Logged:
    """Every attribute access goes through the class's own methods."""

    def __init__(self) -> None:
        object.__setattr__(self, "log", [])

    def __getattribute__(self, name: str) -> Any:
        if name not in ("log", "__class__", "__dict__"):
            object.__getattribute__(self, "log").append("get " + name)
        return object.__getattribute__(self, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.log.append("set " + name)
        object.__setattr__(self, name, value)


class Base:
    """The root of a diamond."""

    tag = "base"

    def name(self) -> str:
        return "base"

    def scale(self, x: Tensor) -> Tensor:
        return x + 1


class Left(Base):
    def name(self) -> str:
        return "left<" + super().name()

    def scale(self, x: Tensor) -> Tensor:
        return super().scale(x) * 2


class Right(Base):
    def name(self) -> str:
        return "right<" + super().name()

    def scale(self, x: Tensor) -> Tensor:
        return super().scale(x) - 3


class Diamond(Left, Right):
    def name(self) -> str:
        return "diamond<" + super().name()


class Meta(type):
    """A metaclass with behaviour."""

    def __len__(cls) -> int:
        return 5

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        made.born = "through Meta"
        return made


class WithMeta(metaclass=Meta):
    pass


class Registered:
    """Subclasses announce themselves."""

    names: tuple[str, ...] = ()

    def __init_subclass__(cls, label: str = "?", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.label = label  # type: ignore[attr-defined]


class Slotted:
    __slots__ = ("left", "right")

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


class Single:
    """`__new__` decides which object comes back."""

    def __new__(cls, value: Any) -> Any:
        if value is None:
            return "nothing"
        return super().__new__(cls)

    def __init__(self, value: Any) -> None:
        self.value = value


class Point(NamedTuple):
    x: Any
    y: Any = 0

    def swapped(self) -> "Point":
        return Point(self.y, self.x)


@program((X,))
def test_reflected_operators(x: Tensor) -> tuple[Any, ...]:
    a, b = Money(3), Money(4)
    return a + b, 5 + a, 1 - b, -a, a < b, a > b, a == Money(3), a != b, x * int(a + b)


@program((X, Money(3)))
def test_inplace_operator_of_user_class(x: Tensor, m: Money) -> tuple[Any, ...]:
    same = m
    m += 5
    return m is same, x + m.cents


@program(call(X, Money(0)), call(X, Money(1)))
def test_truth_of_user_class(x: Tensor, m: Money) -> Tensor:
    if m:
        return x + 1
    return x - 1 if not m else x


@program((X, [10, 20]), breaks=None)
def test_index_method(x: Tensor, items: list[int]) -> tuple[Any, ...]:
    return x[Money(1)], items[Money(3)]  # type: ignore[call-overload]


@program((X, Shelf(1, 2, 3)))
def test_container_protocol(x: Tensor, shelf: Shelf) -> tuple[Any, ...]:
    shelf[0] = 9
    del shelf[1]
    return shelf[0], shelf[-1], len(shelf), 9 in shelf, 5 in shelf, list(shelf), x + shelf[0]


@program((X, Shelf(1)))
def test_callable_object(x: Tensor, shelf: Shelf) -> Any:
    return shelf(x + 1, scale=2.0), shelf(), callable(shelf)


@program((X, Shelf(1)))
def test_getattr_fallback(x: Tensor, shelf: Shelf) -> tuple[Any, ...]:
    return shelf.colour, getattr(shelf, "_hidden", "default"), hasattr(shelf, "_x"), x + 1


@program((X,))
def test_iteration_by_getitem(x: Tensor) -> tuple[Any, ...]:
    return list(Old()), 9 in Old(), x + sum(Old())


@program((X, Up(5)))
def test_user_iterator(x: Tensor, up: Up) -> tuple[Any, ...]:
    first = next(up)
    for value in up:
        if value == 3:
            break
    rest = list(up)
    return x * first, rest, next(up, "over")


@program((X, Temperature(20.0)))
def test_properties(x: Tensor, t: Temperature) -> tuple[Any, ...]:
    before = t.kelvin
    t.kelvin = 300
    after = t._celsius
    del t.kelvin
    return x + before, after, t._celsius, Temperature.boiling().kelvin, t.twice(3), t.label, t.label


@program((X,))
def test_own_getattribute_and_setattr(x: Tensor) -> tuple[Any, ...]:
    logged = Logged()
    logged.size = 3  # type: ignore[attr-defined]
    y = x * logged.size
    return y, logged.log


@program((X,))
def test_super_through_a_diamond(x: Tensor) -> tuple[Any, ...]:
    d = Diamond()
    return d.name(), d.scale(x), d.tag, [c.__name__ for c in type(d).__mro__]


@program((X,))
def test_super_with_arguments(x: Tensor) -> tuple[Any, ...]:
    d = Diamond()
    return super(Left, d).scale(x), super(Diamond, d).name(), Base.scale(d, x)


@program((X,))
def test_metaclass(x: Tensor) -> tuple[Any, ...]:
    made = WithMeta()
    return len(WithMeta), made.born, x + len(WithMeta)  # type: ignore[attr-defined]


@program((X,))
def test_slots(x: Tensor) -> tuple[Any, ...]:
    s = Slotted(x + 1, 2)
    s.right = s.right + 1
    try:
        s.other = 1  # type: ignore[attr-defined]
    except AttributeError as error:
        return s.left * s.right, str(error)
    return s.left, "no error"


@program((X,))
def test_a_slot_that_holds_nothing(x: Tensor) -> Any:
    s = Slotted(x, 2)
    del s.right
    try:
        return s.right
    except AttributeError as error:
        return s.left + 1, str(error), error.name, error.obj is s


@program((X,))
def test_new_decides(x: Tensor) -> tuple[Any, ...]:
    return Single(None), Single(4).value, x + Single(2).value


@program((X, Point(1, 2)))
def test_namedtuple(x: Tensor, p: Point) -> tuple[Any, ...]:
    a, b = p
    q = p._replace(x=x)
    return x * a + b, q, p.swapped(), p._asdict(), Point(3), p == (1, 2), p[0], q.x, len(p)


@program((X, 7, 2))
def test_integer_arithmetic(x: Tensor, a: int, b: int) -> tuple[Any, ...]:
    values = a // b, a % b, a**b, -a // b, a << b, a >> 1, a & b, a | b, a ^ b, ~a, a / b
    return values, divmod(a, b), abs(-a), round(2.567, 2), pow(a, b, 5), x + a


@program((X, 3))
def test_chained_comparison(x: Tensor, n: int) -> tuple[Any, ...]:
    return 1 < n < 5, 1 < n > 5, n == 3 != 4, n is not None, x if 0 <= n <= 3 else -x


@program((X, "abc"))
def test_string_methods(x: Tensor, s: str) -> tuple[Any, ...]:
    made = s.upper() + s[::-1] + s.replace("b", "-") + ",".join(s) + s * 2
    return (
        made,
        made.split(","),
        s.startswith("a"),
        "b" in s,
        f"{s!r:>6}",
        s.encode(),
        x + len(made),
    )


@program((X, 3.14159, 42))
def test_fstrings(x: Tensor, f: float, n: int) -> tuple[Any, ...]:
    width = 10
    text = f"{f:.2f}|{n:05d}|{n:>{width}}|{n!s}|{'q'!r}|{x.shape}|{x.dtype}|{n=}|{{}}|{f:{width}.3}"
    old = "%s-%03d" % ("a", n), "{} {k}".format(1, k=n)  # noqa: UP031, UP032
    return text, old, x + len(text)


@program((X,))
def test_isinstance_and_type(x: Tensor) -> tuple[Any, ...]:
    d = Diamond()
    checks = (
        isinstance(d, Right),
        isinstance(x, (int, Tensor)),
        issubclass(Diamond, Base),
        type(d) is Diamond,
        type(x) is Tensor,
        isinstance(3, int | str),
        type(d).__name__,
        isinstance(True, int),
    )
    return checks, x + sum(map(bool, checks))


@program((X,))
def test_getattr_setattr_by_name(x: Tensor) -> tuple[Any, ...]:
    d = Diamond()
    for name in ("a", "b"):
        setattr(d, name, len(name))
    got = [getattr(d, name, None) for name in ("a", "b", "c")]
    delattr(d, "a")
    return got, sorted(vars(d)), getattr(x, "T"), operator.attrgetter("tag")(d)  # noqa: B009


@program((X,))
def test_starred_calls(x: Tensor) -> tuple[Any, ...]:
    def take(a: Any, /, b: Any = 2, *rest: Any, c: Any, d: Any = 4, **more: Any) -> tuple[Any, ...]:
        return a, b, rest, c, d, more

    args, kwargs = (1, x), {"c": 3, "e": 5}
    return take(*args, *[7, 8], **kwargs), take(0, c=1), take(*args, **{**kwargs, "d": 0}, z=9)


@program((X,))
def test_wrong_call_raises(x: Tensor) -> tuple[Any, ...]:
    def two(a: Any, b: Any) -> Any:
        return a

    messages = []
    for args, kwargs in (((1,), {}), ((1, 2, 3), {}), ((1, 2), {"c": 3}), ((1,), {"a": 2})):
        try:
            two(*args, **kwargs)  # type: ignore[arg-type]
        except TypeError as error:
            messages.append(str(error))
    return messages, x + 1


@program((X,))
def test_unpacking(x: Tensor) -> tuple[Any, ...]:
    first, *middle, last = range(5)
    (a, b), c = (1, 2), 3
    row, other = x
    [p, q, r] = "xyz"
    return first, middle, last, a + b + c, row + other, p + q + r, [*middle, *[9]], {**{"a": 1}}


@program((X,))
def test_unpacking_errors(x: Tensor) -> list[str]:
    found = []
    for values in ((1,), (1, 2, 3), 5):
        try:
            first, second = values  # type: ignore[misc]
            found.append(first + second)
        except (ValueError, TypeError) as error:
            found.append(str(error))
    return found


@program((X, slice(0, 2)))
def test_slices(x: Tensor, s: slice) -> tuple[Any, ...]:
    items = [0, 1, 2, 3, 4]
    return items[s], items[::-2], x[:, s], x[0:1], s.start, s.indices(9), items[slice(None, 3)]


@program((X,))
def test_bound_methods_are_values(x: Tensor) -> tuple[Any, ...]:
    d = Diamond()
    scale = d.scale
    unbound = Diamond.scale
    return scale(x), unbound(d, x), scale.__name__, scale.__self__ is d, d.scale == d.scale


@program((X,), breaks=None)
def test_class_made_inside(x: Tensor) -> tuple[Any, ...]:
    class Local(Base):
        factor = 3

        def apply(self, t: Tensor) -> Tensor:
            return self.scale(t) * self.factor

    return Local().apply(x), Local.__name__


@program((X,), breaks=None)
def test_class_made_inside_with_keywords(x: Tensor) -> tuple[Any, ...]:
    class Named(Registered, label="mine"):
        pass

    return Named.label, x + 1  # type: ignore[attr-defined]


@program((X,))
def test_hash_and_dict_keys(x: Tensor) -> tuple[Any, ...]:
    table = {Money(1): "one", (1, 2): "pair", None: "none", torch.float32: "float"}
    found = table[Money(1)], table[1, 2], table[None], table[x.dtype]
    return found, Money(1) in {Money(1)}, x + len(table)


@program((X,))
def test_conditional_expressions_and_boolean_operators(x: Tensor) -> tuple[Any, ...]:
    n = x.shape[0]
    return n and 5, 0 or "x", not n, None or [] or 0, (n > 1 and x + 1), (n > 5 or x - 1)


@program((X,))
def test_matmul_operator_and_at(x: Tensor) -> tuple[Tensor, ...]:
    y = x @ x.T
    y @= torch.eye(2)
    return (
        y,
        -x,
        +x,
        abs(x),
        ~(x > 1),
        x // 2,
        x % 2,
        2**x,
        1 - x,
        2 / (x + 1),
        5 // (x + 1),
        7 % (x + 1),
    )


@program((X,))
def test_tensor_comparisons(x: Tensor) -> tuple[Tensor, ...]:
    return (
        x > 1,
        1 < x,
        x == 2,
        x != 2,
        x >= 3,
        (x > 1) & (x < 4),
        (x > 1) | (x < 0),
        (x > 1) ^ (x > 2),
    )


class Bare:
    """Nothing of its own, and no dict."""

    __slots__ = ()
    shared = 1


class Plain:
    """Nothing of its own."""


class OwnNew:
    """Takes arguments that it hands to ``object``, which takes none."""

    def __new__(cls, *args: Any) -> Any:
        return super().__new__(cls, *args)

    def __init__(self, *args: Any) -> None: ...


class OwnInit:
    """The same, after it is made."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)


class BadIndex:
    """An index that is no number."""

    def __index__(self) -> Any:
        return None


class Endless:
    """Calling it calls another of its kind."""


Endless.__call__ = Endless()  # type: ignore[attr-defined]


def said(call: Any) -> str:
    """What is raised."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


@program((X,))
def test_what_object_refuses(x: Tensor) -> Any:
    made = Plain()
    return (
        x + 1,
        [
            said(lambda: Plain(1)),  # type: ignore[call-arg]
            said(lambda: Plain.__new__(Plain, 1)),  # type: ignore[call-arg]
            said(lambda: made.__init__(1)),  # type: ignore[misc]
            said(lambda: object.__init__(made, 1)),  # type: ignore[call-arg]
            said(lambda: OwnNew(1)),
            said(lambda: OwnInit(1)),
            said(lambda: delattr(Bare(), "shared")),
            said(lambda: delattr(Bare(), "other")),
            said(lambda: [1, 2][BadIndex()]),
            said(lambda: (1, 2)[: BadIndex()]),
        ],
    )


@program((X,), breaks=None)
def test_calls_that_lead_to_one_another_for_ever(x: Tensor) -> Any:
    try:
        Endless()()  # type: ignore[operator]
    except RecursionError:
        return x + 1
