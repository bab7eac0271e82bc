"""Generators, iterators, itertools, functools, sorting, and the built-in functions."""

import collections
import dataclasses
import enum
import functools
import itertools
import math
import operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from dynacap.testing import Scenario, call, program, scenario

X = torch.arange(6.0).reshape(2, 3)


class Colour(enum.Enum):
    RED = 1
    GREEN = "g"

    @property
    def shout(self) -> str:
        return self.name + "!"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 10


class Flag(enum.Flag):
    A = enum.auto()
    B = enum.auto()


@dataclasses.dataclass(order=True)
class Version:
    major: int
    minor: int = 0
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)
    total: int = dataclasses.field(init=False, default=0)

    def __post_init__(self) -> None:
        self.total = self.major + self.minor


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    other: int = 3


def count_up(n: int) -> Iterator[int]:
    for i in range(n):  # noqa: UP028
        yield i


def squares(x: Tensor) -> Iterator[Tensor]:
    yield x
    yield from (x * i for i in range(2))
    yield x * x


def averager() -> Any:
    total, n, average = 0.0, 0, None
    while True:
        value = yield average
        if value is None:
            return total
        total, n = total + value, n + 1
        average = total / n


@program((X,))
def test_generator_consumed(x: Tensor) -> Any:
    return torch.stack(list(squares(x))), sum(count_up(4)), tuple(count_up(2)), max(count_up(3))


@program((X,))
def test_generator_stepped(x: Tensor) -> Any:
    steps = squares(x)
    first, second = next(steps), next(steps)
    rest = [s.sum() for s in steps]
    return first, second, rest, next(steps, "over")


@program((X,))
def test_generator_send_and_return(x: Tensor) -> Any:
    g = averager()
    next(g)
    seen = [g.send(10), g.send(20)]
    try:
        g.send(None)
    except StopIteration as stop:
        seen.append(stop.value)
    return x * seen[0], seen


@program((X,))
def test_yield_from_value(x: Tensor) -> Any:
    def inner() -> Any:
        got = yield 1
        return got * 2

    def outer() -> Any:
        value = yield from inner()
        yield value + 1

    g = outer()
    return x + next(g), g.send(5)


@program((X,))
def test_generator_throw_and_close(x: Tensor) -> Any:
    log: list[Any] = []

    def careful() -> Any:
        try:
            while True:
                try:
                    yield x
                except ValueError as error:
                    log.append(str(error))
                    yield x + 100
        finally:
            log.append("closed")

    g = careful()
    a = next(g)
    b = g.throw(ValueError("thrown"))
    g.close()
    return a + b, log


@program((X,))
def test_generator_expression_lazy_order(x: Tensor) -> Any:
    log: list[Any] = []

    def note(value: int) -> int:
        log.append(value)
        return value

    g = (note(i) * 10 for i in range(3))
    log.append("made")
    next(g)
    log.append("stepped")
    return x + sum(g), log


@program((X,))
def test_infinite_generator(x: Tensor) -> Any:
    def naturals() -> Iterator[int]:
        n = 0
        while True:
            yield n
            n += 1

    taken = []
    for n in naturals():
        if n > 3:
            break
        taken.append(n)
    return x + sum(itertools.islice(naturals(), 5)), taken


@scenario(breaks=None)
def test_generator_returned_to_caller() -> Scenario:
    def function(x: Tensor) -> Any:
        y = x + 1
        return (y * i for i in range(3))

    return Scenario(function, [call(X.clone())] * 2, after=lambda i, result: list(result))


@program((X, iter([1, 2, 3, 4])), breaks=None)
def test_iterator_argument_advances(x: Tensor, it: Any) -> Any:
    return x + next(it), next(it)


@program((X,))
def test_zip_map_filter_enumerate(x: Tensor) -> Any:
    zipped = list(zip([1, 2, 3], "ab", strict=False))
    mapped = list(map(lambda a, b: a * b, [1, 2], [3, 4]))
    kept = list(filter(lambda v: v % 2, range(6)))
    listed = list(enumerate("xy", start=5))
    return zipped, mapped, kept, listed, list(filter(None, [0, 1, ""])), list(map(torch.sin, x))


@program((X,))
def test_zip_strict(x: Tensor) -> Any:
    try:
        list(zip([1, 2], [1], strict=True))
    except ValueError as error:
        return x, str(error)


@program((X,))
def test_sorting(x: Tensor) -> Any:
    words = ["pear", "fig", "apple"]
    words_by_length = sorted(words, key=len)
    words.sort(key=lambda w: w[-1], reverse=True)
    pairs = sorted([(2, "b"), (1, "z"), (2, "a")])
    by = sorted(range(5), key=functools.cmp_to_key(lambda a, b: b - a))
    return x, words_by_length, words, pairs, by, list(reversed(words)), sorted({3: 1, 1: 2})


@program((X,))
def test_min_max_sum_any_all(x: Tensor) -> Any:
    values = [3, 1, 2]
    return (
        (min(values), max(values), min(3, 1), max("a", "c", "b"), sum(values, 10)),
        (max(values, key=lambda v: -v), min([], default="none"), any(values), all([1, 0])),
        sum([x, x * 2]),
        max(x.shape),
        any(v > 2 for v in values),
    )


@program((X,))
def test_itertools(x: Tensor) -> Any:
    return (
        list(itertools.chain([1], (2, 3))),
        list(itertools.chain.from_iterable([[1, 2], [3]])),
        list(itertools.product("ab", [1, 2])),
        list(itertools.combinations(range(4), 2)),
        list(itertools.permutations("abc", 2)),
        list(itertools.accumulate([1, 2, 3])),
        list(itertools.accumulate([1, 2, 3], operator.mul, initial=2)),
        list(itertools.zip_longest([1, 2], [3], fillvalue=0)),
        list(itertools.islice(itertools.count(2, 3), 1, 6, 2)),
        list(itertools.takewhile(lambda v: v < 3, range(9))),
        list(itertools.dropwhile(lambda v: v < 3, range(5))),
        list(itertools.repeat(7, 2)),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.pairwise("abc")),
        list(itertools.compress("abc", [1, 0, 1])),
        [(k, list(g)) for k, g in itertools.groupby("aabc")],
        list(itertools.filterfalse(None, [0, 1])),
        x + len(list(itertools.islice(itertools.cycle("ab"), 5))),
    )


@program((X,))
def test_itertools_tee_and_shared_iterators(x: Tensor) -> Any:
    a, b = itertools.tee(iter([1, 2, 3]))
    first = next(a)
    it = iter(range(6))
    pairs = list(zip(it, it, strict=True))
    return x * first, list(a), list(b), pairs


@program((X,))
def test_functools(x: Tensor) -> Any:
    add = functools.partial(torch.add, alpha=2)
    scale = functools.partial(lambda a, b, c=1: a * b + c, 2, c=5)
    total = functools.reduce(lambda a, b: a + b, [1, 2, 3], 10)
    return add(x, x), scale(3), scale(3, c=0), total, functools.reduce(torch.maximum, [x, -x])


@program((X,))
def test_wraps_decorator(x: Tensor) -> Any:
    def twice(function: Any) -> Any:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(function(*args, **kwargs), **kwargs)

        return wrapper

    @twice
    def grow(t: Tensor, by: float = 1.0) -> Tensor:
        return t * 2 + by

    return grow(x), grow(x, by=3.0), grow.__name__


@program((X,), breaks=None)
def test_singledispatch(x: Tensor) -> Any:
    @functools.singledispatch
    def kind(value: Any) -> str:
        return "object"

    @kind.register
    def _(value: int) -> str:
        return "int"

    @kind.register(Tensor)
    def _(value: Any) -> str:
        return "tensor"

    return kind(3), kind(x), kind("s"), kind(True), x + 1


@program((X,))
def test_operator_module(x: Tensor) -> Any:
    get = operator.itemgetter(1, 0)
    return (
        get(["a", "b"]),
        operator.mul(x, 2),
        operator.getitem(x, 0),
        operator.methodcaller("sum", 0)(x),
        operator.attrgetter("shape")(x),
        operator.iadd([1], [2]),
        operator.contains([1], 1),
        operator.not_(0),
    )


@program((X, Colour.RED, Level.HIGH))
def test_enums(x: Tensor, colour: Colour, level: Level) -> Any:
    return (
        colour is Colour.RED,
        colour == Colour.GREEN,
        colour.name,
        colour.value,
        colour.shout,
        Colour("g"),
        Colour["RED"],
        [c.name for c in Colour],
        level + 1,
        level > Level.LOW,
        Flag.A | Flag.B,
        Flag.A in (Flag.A | Flag.B),
        {Colour.RED: 1}[colour],
        x * level,
        f"{colour}",
    )


@program((X,))
def test_dataclasses(x: Tensor) -> Any:
    v = Version(1, 2)
    w = dataclasses.replace(v, minor=5)
    f = Frozen(x)
    try:
        f.value = 1  # type: ignore[misc]
    except dataclasses.FrozenInstanceError as error:
        message = str(error)
    names = [field.name for field in dataclasses.fields(v)]
    return (
        v < w,
        v == Version(1, 2),
        w.total,
        repr(v),
        f.other,
        message,
        names,
        dataclasses.asdict(w),
    )


@program((X, Version(3, 1)))
def test_dataclass_argument(x: Tensor, v: Version) -> Any:
    v.minor += 1
    v.tags.append("t")
    return x * v.major + v.total


@program((X,))
def test_math_functions(x: Tensor) -> Any:
    n = x.shape[1]
    return (
        (math.sqrt(n), math.pi, math.ceil(n / 2), math.floor(2.5), math.prod([2, 3]), math.log(n)),
        (
            math.gcd(12, 8),
            math.isclose(0.1 + 0.2, 0.3),
            math.inf,
            math.isnan(math.nan),
            math.hypot(3, 4),
        ),
        x / math.sqrt(n),
    )


@program((X,))
def test_builtins_that_convert(x: Tensor) -> Any:
    return (
        (int("7"), float("1.5"), str(3), bool([]), complex(1, 2), bytes([65]), chr(97), ord("b")),
        (
            list("ab"),
            tuple([1]),
            set("aa"),
            frozenset([1]),
            dict(a=1),
            dict([("k", 2)]),
            dict(zip("ab", [1, 2], strict=True)),
        ),
        (hex(255), bin(5), oct(8), repr("q"), format(3.14159, ".2f"), round(2.5), round(-1.234, 1)),
        x + int(True),
    )


@program((X,))
def test_range_objects(x: Tensor) -> Any:
    r = range(2, 20, 3)
    return len(r), r[1], r[-1], r[1:4], 5 in r, list(reversed(r)), r == range(2, 18, 3), x + r.start


@program((X,))
def test_exhausted_iterators_stay_exhausted(x: Tensor) -> Any:
    it = iter([1, 2])
    return x + sum(it), list(it), next(it, None), list(map(int, it))


@program((X,))
def test_iter_with_sentinel(x: Tensor) -> Any:
    values = [3, 2, 1, 0, 9]
    return list(iter(lambda: values.pop(0), 0)), values, x + len(values)


@program((X,))
def test_dict_views(x: Tensor) -> Any:
    table = {"a": 1, "b": 2}
    keys, values, items = table.keys(), table.values(), table.items()
    table["c"] = 3
    return (
        list(keys),
        list(values),
        list(items),
        keys & {"a", "z"},
        ("a", 1) in items,
        x + len(keys),
    )


@program((X,))
def test_dict_changed_while_iterated(x: Tensor) -> Any:
    table = {"a": 1, "b": 2}
    try:
        for key in table:
            table[key + "x"] = 0
    except RuntimeError as error:
        return str(error), x + len(table)


@program((X,))
def test_list_grows_while_iterated(x: Tensor) -> Any:
    items = [1]
    for item in items:
        if len(items) < 5:
            items.append(item + 1)
        x = x + item
    return x, items


@program((X,), breaks=None)
def test_chain_map_and_namedtuple_factory(x: Tensor) -> Any:
    chained = collections.ChainMap({"a": 1}, {"a": 2, "b": 3})
    pair = collections.namedtuple("pair", "left right")
    return chained["a"], chained["b"], sorted(chained), pair(x, 1).left, pair._fields


@scenario(breaks=None)
def test_lru_cache_runs_once() -> Scenario:
    runs: list[int] = []

    @functools.lru_cache(maxsize=8)
    def slow(n: int) -> int:
        runs.append(n)
        return n * 10

    def function(x: Tensor, n: int) -> Tensor:
        return x + slow(n)

    calls = [call(X.clone(), n) for n in (1, 1, 2, 1)]
    return Scenario(function, calls, after=lambda i, r: (list(runs), slow.cache_info().hits))


@program((X,))
def test_string_building_in_loops(x: Tensor) -> Any:
    text = ""
    for name, size in zip("nm", x.shape, strict=True):
        text += f"{name}={size};"
    return text, x, text.rstrip(";").split(";"), text.find("m"), text.title()
