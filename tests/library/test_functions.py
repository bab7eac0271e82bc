"""Functions as objects, functools, operator, copy and heapq."""

import contextlib
import copy
import functools
import heapq
import operator
import types
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap
from dynacap.testing import check_same, program

X = torch.arange(6.0).reshape(2, 3)


def caught(function: Any, *args: Any, **kwargs: Any) -> str:
    try:
        return repr(function(*args, **kwargs))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def add(a: Any, b: Any = 10, *rest: Any, scale: Any = 1, **more: Any) -> Any:
    """Adds."""
    return (a + b) * scale, rest, more


OUTSIDE = functools.partial(add, 1, scale=3)


@program((X,))
def test_partial(x: Tensor) -> Any:
    p = functools.partial(add, 1, scale=2)
    q = functools.partial(p, 5, extra=x)
    r = functools.partial(operator.mul, 3)
    return (
        p(),
        p(2, 3),
        q(),
        q(scale=4),
        p.func is add,
        p.args,
        p.keywords,
        r(x),
        OUTSIDE(2),
        OUTSIDE.args,
        r,
        caught(functools.partial, 5),
    )


def doubling(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) * 2

    return wrapper


@doubling
def decorated(x: Any) -> Any:
    """Is decorated."""
    return x + 1


@program((X,))
def test_decorators(x: Tensor) -> Any:
    @doubling
    def inner(n: Any) -> Any:
        """Made inside."""
        return n + 1

    return (
        decorated(x),
        decorated.__name__,
        decorated.__doc__,
        inner(2),
        inner.__name__,
        inner.__doc__,
        inner.__wrapped__(2),
        decorated.__module__ == __name__,
    )  # type: ignore[attr-defined]


@program((X,))
def test_function_fields(x: Tensor) -> Any:
    seen = 5

    def inner(a: int, b: int = 2, *, c: int = 3) -> int:
        """Has fields."""
        return a + b + c + seen

    inner.note = "kept"  # type: ignore[attr-defined]
    return (
        inner.__name__,
        inner.__qualname__.rsplit(".", 1)[-1],
        inner.__doc__,
        inner.__defaults__,
        inner.__kwdefaults__,
        inner.__annotations__,
        inner.__code__.co_argcount,
        len(inner.__closure__ or ()),
        inner.note,
        inner.__dict__,
        add.__defaults__,
        add.__kwdefaults__,
        add.__name__,  # type: ignore[attr-defined]
        add.__code__.co_varnames[:2],
        inner(1),
        x + 1,
    )


@functools.singledispatch
def described(value: Any) -> str:
    return "something"


@described.register
def _(value: int) -> str:
    return f"int {value}"


@functools.total_ordering
class Version:
    """Compares by total_ordering."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __lt__(self, other: "Version") -> bool:
        return self.n < other.n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.n == other.n

    def __hash__(self) -> int:
        return self.n


class Worker:
    """A partial method."""

    def run(self, a: int, b: int) -> tuple[int, int]:
        return a, b

    run_three = functools.partialmethod(run, 3)


@program((X,))
def test_functools(x: Tensor) -> Any:
    by_last = functools.cmp_to_key(lambda a, b: (a[-1] > b[-1]) - (a[-1] < b[-1]))
    return (
        sorted(["ab", "ca", "bc"], key=by_last),
        Version(1) <= Version(2),
        Version(3) > Version(2),
        Version(1) >= Version(1),
        Worker().run_three(4),
        functools.reduce(lambda a, b: a + b, [x, x], x),
        x + 1,
    )


@program((X,), breaks=None)
def test_singledispatch(x: Tensor) -> Any:
    return described(3), described("s"), described(True), x + 1


@program((X,))
def test_operator(x: Tensor) -> Any:
    class_free = {"k": [1, {"z": x}]}
    items = [1, 2, 3]
    operator.setitem(items, 0, 9)
    operator.delitem(items, 1)
    return (
        operator.itemgetter("k")(class_free),
        operator.itemgetter(1, 0)("ab"),
        operator.attrgetter("shape", "dtype")(x),
        operator.methodcaller("split", ",")("a,b"),
        operator.add(1, 2),
        operator.iadd([1], [2]),
        operator.not_(0),
        operator.is_(None, None),
        operator.contains([1], 1),
        operator.countOf("aab", "a"),
        operator.indexOf([5, 6], 6),
        operator.concat([1], [2]),
        operator.index(True),
        operator.neg(3),
        operator.truth([]),
        items,
        operator.matmul(x, x.T),
        operator.pow(x, 2),
        list(map(operator.itemgetter(0), [(1, 2), (3, 4)])),
        sorted([(1, "b"), (0, "a")], key=operator.itemgetter(1)),
        operator.attrgetter("T.shape")(x),
    )


class Node:
    """Holds others."""

    def __init__(self, value: Any, child: "Node | None" = None) -> None:
        self.value = value
        self.child = child


@program((X,))
def test_copy(x: Tensor) -> Any:
    shared = [1, 2]
    data = {"a": shared, "b": (shared, 3), "n": Node(1, Node(shared))}
    deep, flat = copy.deepcopy(data), copy.copy(data)
    deep["a"].append(9)  # type: ignore[union-attr]
    node = copy.copy(data["n"])
    node.value = 5  # type: ignore[union-attr]
    return (
        data,
        deep,
        flat,
        deep["a"] is deep["b"][0],
        flat["a"] is shared,
        copy.deepcopy((1, "a")),
        copy.copy([x]),
        x + 1,
    )  # type: ignore[index]


@program((X,), breaks=None)
def test_copies_of_what_makes_no_instances(x: Tensor) -> Any:
    made = (row for row in x)
    return (
        caught(copy.copy, made),
        caught(copy.deepcopy, made),
        caught(object.__new__, type(made)),
        copy.copy(object()) is None,
        x + 1,
    )


@program((X,))
def test_heapq(x: Tensor) -> Any:
    heap = [5, 2, 8, 1, 9, 3]
    heapq.heapify(heap)
    heapq.heappush(heap, 0)
    popped = [heapq.heappop(heap) for _ in range(3)]
    return (
        heap,
        popped,
        heapq.heappushpop(heap, 4),
        heapq.heapreplace(heap, 7),
        heap,
        heapq.nlargest(2, [1, 5, 3]),
        heapq.nsmallest(2, "cab"),
        x + 1,
    )


@contextlib.contextmanager
def managed(log: list[str]) -> Generator[str, None, None]:
    log.append("in")
    try:
        yield "value"
    except ValueError as error:
        log.append(f"caught {error}")
    finally:
        log.append("out")


@program((X,))
def test_contextlib(x: Tensor) -> Any:
    log: list[str] = []
    with managed(log) as value:
        log.append(value)
    with managed(log):
        raise ValueError("inside")
    with contextlib.suppress(KeyError), contextlib.nullcontext(5) as five:
        log.append(str(five))
        {}["k"]  # type: ignore[misc]
    with contextlib.ExitStack() as stack:
        stack.callback(log.append, "callback")
        stack.enter_context(managed(log))
    with contextlib.closing(_Closes(log)):
        pass
    return log, x + len(log)


class _Closes:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def close(self) -> None:
        self.log.append("closed")


def numbers(log: list[str]) -> Iterator[Any]:
    try:
        got = yield 1
        log.append(f"got {got}")
        yield from (10, 20)
        yield 3
    except KeyError as error:
        log.append(repr(error))
        yield "recovered"
    finally:
        log.append("done")
    return "result"  # noqa: B901


def delegating(log: list[str]) -> Iterator[Any]:
    result = yield from numbers(log)
    log.append(f"result {result}")


@program((X,))
def test_generators(x: Tensor) -> Any:
    log: list[str] = []
    g: Any = numbers(log)
    first = next(g), g.send("hello"), next(g)
    thrown = g.throw(KeyError("k"))
    end = caught(next, g)
    closed: Any = numbers(log)
    next(closed)
    closed.close()
    again = caught(next, closed), list(delegating(log))
    squares = (n * n for n in range(4))
    return first, thrown, end, again, next(squares), sum(squares), log, x + 1


@program((X,))
def test_exceptions(x: Tensor) -> Any:
    class_free = []
    try:
        try:
            {}["missing"]  # type: ignore[misc]
        except KeyError as error:
            class_free.append((str(error), repr(error), error.args))
            raise RuntimeError("outer", 2) from error
    except RuntimeError as error:
        class_free.append(
            (
                str(error),
                repr(error.__cause__),
                error.__suppress_context__,
                error.__context__ is error.__cause__,
            )
        )
    try:
        raise Special(3, note="n")
    except Special as error:
        error.add_note("more")
        class_free.append((str(error), error.code, error.args, error.note, error.__notes__))
    try:
        raise StopIteration(5)
    except StopIteration as error:
        class_free.append(error.value)
    return class_free, repr(ValueError()), str(ValueError(1, 2)), ValueError("a").args, x + 1


class Special(ValueError):
    """With fields."""

    def __init__(self, code: int, note: str) -> None:
        super().__init__(f"code {code}")
        self.code = code
        self.note = note


@program((X,))
def test_what_is_a_docstring(x: Tensor) -> Any:
    def said() -> int:
        """Said."""
        return len(x)

    def formatted() -> None:
        f"""Not said."""  # noqa: B021, F541

    def none() -> str:
        return "none"

    return said.__doc__, formatted.__doc__, none.__doc__, x + 1


def function_of_one(a: int) -> int:
    return a


REFUSED: dict[str, Callable[[], Any]] = {
    "a view's method": lambda: {1: 2}.keys().__len__(1),  # type: ignore[call-arg]
    "a keyword": lambda: {1: 2}.keys().isdisjoint(other=[1]),  # type: ignore[call-arg]
    "an iterator's method": lambda: iter([]).__next__(1),  # type: ignore[call-arg]
    "a method of a number": lambda: types.MethodType(3, [1]),  # type: ignore[arg-type]
    "a method of none": lambda: types.MethodType(None, None),  # type: ignore[arg-type]
    "a method without an object": lambda: types.MethodType(len, None),
    "keywords that are no mapping": lambda: function_of_one(**1),  # type: ignore[arg-type]
    "keywords of a class": lambda: dict(**[]),  # type: ignore[dict-item]
    "keywords twice": lambda: function_of_one(**{"a": 1}, **{"a": 2}),
    "an attribute of a number": lambda: setattr(1, "a", 2),
    "an attribute to delete": lambda: delattr(len, "a"),
    "a descriptor's method": lambda: (lambda: 0).__get__(),  # type: ignore[call-arg]
    "a comparison key beside another": lambda: functools.cmp_to_key(max)(1) == 1,
    "a comparison key on the right": lambda: 1 >= functools.cmp_to_key(max)(1),  # type: ignore[operator]
}


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_are_refused(name: str) -> None:
    def told(x: Tensor) -> Any:
        try:
            REFUSED[name]()
        except TypeError as error:
            return x * 2, str(error)
        except AttributeError as error:
            return x * 2, str(error), error.name, error.obj
        raise AssertionError

    check_same(told, (X,))


@program((X,))
def test_a_comparison_key_of_nothing(x: Tensor) -> Any:
    key: Any = functools.cmp_to_key(lambda a, b: a - b)
    told: list[Any] = []
    try:
        told.append(key(1) < key)
    except AttributeError as error:
        told.append(str(error))
    return x + 1, told, key(1) < key(2), key(2) == key(2)


def test_a_module_that_is_given_another_class() -> None:
    module: Any = types.ModuleType("made")
    module.scale = 2

    class Other(types.ModuleType):
        @property
        def scale(self) -> int:
            return 3

        def __getattr__(self, name: str) -> int:
            return 5

    def function(x: Tensor) -> Any:
        return x * module.scale + getattr(module, "shift", 1)

    compiled = dynacap.compile(function)
    for _ in range(3):
        for kind in (types.ModuleType, Other):
            module.__class__ = kind
            for _ in range(2):
                assert torch.equal(compiled(X), function(X))
