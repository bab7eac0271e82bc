"""Text made from anything, and numbers."""

import functools
import math
import operator
import reprlib
from typing import Any

import torch
from torch import Tensor

import dynacap
from dynacap.testing import program

X = torch.arange(6.0).reshape(2, 3)


def caught(function: Any, *args: Any, **kwargs: Any) -> str:
    try:
        return repr(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class Temperature:
    """Has texts of its own."""

    def __init__(self, degrees: float) -> None:
        self.degrees = degrees

    def __repr__(self) -> str:
        return f"Temperature({self.degrees!r})"

    def __str__(self) -> str:
        return f"{self.degrees} C"

    def __format__(self, spec: str) -> str:
        return format(self.degrees, spec or ".1f") + "C"

    def __int__(self) -> int:
        return int(self.degrees)

    def __float__(self) -> float:
        return float(self.degrees)

    def __index__(self) -> int:
        return int(self.degrees)

    def __round__(self, ndigits: int | None = None) -> Any:
        return "rounded", ndigits

    def __abs__(self) -> str:
        return "absolute"

    def __floor__(self) -> str:
        return "floor"

    def __bool__(self) -> bool:
        return self.degrees > 0

    def __divmod__(self, other: Any) -> str:
        return f"divmod {other}"


class Plain:
    """Has only a repr."""

    def __repr__(self) -> str:
        return "<plain>"


@program((X,))
def test_formatting(x: Tensor) -> Any:
    t, n, name = Temperature(21.5), 7, "abc"
    return (
        f"{n}",
        f"{n:>4}|{n:<4}|{n:^4}|{n:04d}",
        f"{name!r:>8}",
        f"{t}",
        f"{t!r}",
        f"{t!s}",
        f"{t:.3f}",
        f"{3.14159:.{2}f}",
        f"{[t, 1]}",
        f"{ {'k': t} }",
        f"{(t,)}",
        f"{Plain()}",
        f"{None} {True}",
        f"{x.shape[0]}x{x.shape[1]}",
        "{} {1}".replace("{1}", "{}").format(t, Plain()),
        "{0.degrees} {0!r} {k[1]}".format(t, k=[1, 2]),
        "%s %r %d %.2f" % (t, t, t, 1.5),
        "%(a)s-%(b)r" % {"a": t, "b": "q"},
        "%s" % t,
        "%5.1f|" % 2.25,
        str(t),
        repr(t),
        format(t),
        format(t, ".2f"),
        ascii("é"),
        str([t]),
        str({"a": (t,)}),
        str(5),
        str(),
        str(None),
        str(b"x"),
        str(int),
        x + 1,
    )


@program((X,))
def test_str_methods(x: Tensor) -> Any:
    s = "Hello, World"
    return (
        s.upper(),
        s.split(", "),
        s.replace("l", "L", 1),
        s.find("o"),
        s[1:4],
        s[-1],
        s.startswith(("He", "x")),
        s.partition(", "),
        ", ".join(str(n) for n in range(3)),
        "-".join(["a"]),
        "a" in s,
        s * 2,
        s + "!",
        len(s),
        s.encode(),
        "x".zfill(3),
        s.count("l"),
        s.index("W"),
        "%d%%" % 5,
        "a,b".split(","),
        " pad ".strip(),
        s.title(),
        s.casefold() == "hello, world",
        "abc" < "abd",
        list("ab"),
        sorted(s)[:3],
        ord("a"),
        chr(98),
        "é".isascii(),
        "a\tb".expandtabs(2),
        s.translate({72: "J"}),
        str.maketrans("a", "b"),
        "".join(reversed("abc")),
        caught("a".index, "z"),
        caught("a".join, [1]),
        x + 1,
    )


@program((X,))
def test_bytes(x: Tensor) -> Any:
    b = b"abc"
    return (
        b[0],
        b[1:],
        b.decode(),
        b + b"d",
        list(b),
        bytes([1, 2]),
        bytes(2),
        b.hex(),
        bytes.fromhex("00ff"),
        x + 1,
    )


@program((X,))
def test_conversions(x: Tensor) -> Any:
    t = Temperature(3.7)
    return (
        int("12"),
        int("ff", 16),
        int(2.9),
        int(t),
        int(),
        float("1.5"),
        float(t),
        float(2),
        complex(1, 2),
        complex("1j"),
        bool(t),
        bool([]),
        bool("x"),
        abs(-3),
        abs(t),
        abs(-2.5),
        round(2.567, 2),
        round(2.5),
        round(t),
        round(t, 1),
        divmod(7, 3),
        divmod(t, 2),
        pow(2, 3),
        pow(2, 3, 5),
        hex(255),
        bin(5),
        oct(8),
        hash("a") == hash("a"),
        int.from_bytes(b"\x01\x00", "big"),
        (5).bit_length(),
        (2.5).is_integer(),
        (3).to_bytes(2, "big"),
        (1.5).as_integer_ratio(),
        float("inf") > 1,
        float("nan") == float("nan"),
        7 // 2,
        -7 % 3,
        2**-1,
        5 & 3,
        1 << 4,
        ~5,
        3 @ x.new_ones(1) if False else 0,
        x + 1,
    )


@program((X,))
def test_errors(x: Tensor) -> Any:
    return (
        caught(int, "x"),
        caught(int, []),
        caught(float, "q"),
        caught(operator.add, 1, "a"),
        caught(operator.truediv, 1, 0),
        caught(divmod, 1, "a"),
        caught(round, "a"),
        caught(abs, "a"),
        caught(chr, -1),
        caught(operator.lt, 1, "a"),
        caught(math.sqrt, -1),
        caught("{}".format),
        caught(lambda: "%d" % "a"),
        caught(operator.getitem, "abc", "a"),
        caught(lambda: "abc"[5]),
        x + 1,
    )


@program((X,))
def test_math(x: Tensor) -> Any:
    return (
        math.sqrt(16),
        math.floor(2.7),
        math.ceil(2.1),
        math.pi,
        math.log(8, 2),
        math.prod([1, 2, 3]),
        math.gcd(12, 18),
        math.isclose(0.1 + 0.2, 0.3),
        math.inf,
        math.hypot(3, 4),
        math.floor(Temperature(1.5)),
        math.sin(0.5),
        math.factorial(5),
        math.comb(5, 2),
        math.fsum([0.1] * 10),
        math.log2(8),
        math.copysign(1, -0.0),
        math.isnan(math.nan),
        math.exp(1),
        math.trunc(-2.5),
        x * math.sqrt(x.shape[1]),
    )


@program((X,))
def test_text_of_containers(x: Tensor) -> Any:
    import collections

    loop: list[Any] = [1]
    loop.append(loop)
    table: dict[str, Any] = {}
    table["self"] = table
    return (
        repr(loop),
        repr(table),
        repr({1, 2}),
        repr(set()),
        repr(frozenset([1])),
        repr((1,)),
        repr([]),
        repr({"a": Plain()}),
        repr(collections.deque([1], 3)),
        repr(collections.OrderedDict(a=1)),
        repr(collections.defaultdict(int, a=1)),
        repr(collections.Counter("aab")),
        repr(range(3)),
        repr(slice(1, None)),
        repr(1.5),
        repr("q'"),
        repr(int),
        repr(...),
        x + 1,
    )


@program((X,), breaks=1)
def test_computed_text_is_no_other_text(x: Tensor) -> Any:
    plain = same = "computed"
    made = plain[:3] + plain[3:]
    spaced = "two words"
    kept = spaced
    dynacap.graph_break()
    return plain is same, made is plain, made == plain, kept is spaced, x + 1


@program((X,), breaks=1)
def test_numbers_of_more_digits_than_python_writes(x: Tensor) -> Any:
    number = 10**5000
    try:
        text = str(number)
    except ValueError as error:
        text = str(error)
    dynacap.graph_break()
    return text, number == 10**5000, x + 1


class Holder:
    """Says something of its own where it meets itself."""

    def __init__(self) -> None:
        self.held = [self]

    @reprlib.recursive_repr("+++")
    def __repr__(self) -> str:
        return f"<{self.held[0]}>"


@program((X,))
def test_what_fills_in_for_a_text_that_is_being_made(x: Tensor) -> Any:
    return repr(Holder()), x + 1


@program((X,), breaks=None)
def test_the_names_of_a_function_are_handed_on(x: Tensor) -> Any:
    def inner() -> None:
        pass

    outer = functools.wraps(inner)(lambda: None)
    dynacap.graph_break()
    return outer.__qualname__ is inner.__qualname__, outer.__name__ is inner.__name__, x + 1
