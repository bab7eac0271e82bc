"""Lists, tuples, deques, ranges and slices: every method, as plain Python has it."""

import collections
import copy
from typing import Any

import torch
from torch import Tensor

import dynacap
from dynacap.testing import call, program

X = torch.arange(6.0).reshape(2, 3)


class Ten:
    """An index."""

    def __index__(self) -> int:
        return 1


def caught(function: Any, *args: Any) -> str:
    try:
        return repr(function(*args))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@program((X,))
def test_list_items(x: Tensor) -> Any:
    a: list[Any] = [x, 1, 2, 3, x + 1]
    a[1:3] = ["p", "q", "r"]
    a[::2] = range(3)
    del a[0]
    del a[-2:]
    a[Ten()] = 7
    return a, a[Ten()], a[-1], a[::-1], a[1:2], a[5:], len(a), x + len(a)


@program((X,))
def test_list_methods(x: Tensor) -> Any:
    a = [3, 1, 2, 1]
    a.append(5)
    a.extend(n * 2 for n in (1, 2))
    a.insert(-1, 9)
    popped = a.pop(), a.pop(0), a.pop(-2)
    a.remove(1)
    b = a.copy()
    b.reverse()
    b += (8,)
    b *= 2
    return a, b, popped, a.index(2), a.count(1), b.index(8, 3), x + a[0]


@program((X,))
def test_list_errors(x: Tensor) -> Any:
    a = [1, 2]
    return (
        caught(a.__getitem__, 5),
        caught(a.pop, 7),
        caught([].pop),
        caught(a.remove, 9),
        caught(a.index, 9, 0, 1),
        caught(lambda: a["k"]),  # type: ignore[call-overload]
        caught(lambda: a + (1,)),  # type: ignore[operator]
        caught(lambda: (1,) + a),  # type: ignore[operator]
        caught(lambda: a < 3),  # type: ignore[operator]
        caught(lambda: [*5]),  # type: ignore[misc]
        x + 1,
    )


@program((X,))
def test_sequence_comparison(x: Tensor) -> Any:
    a = [1, (2, "b"), [3.0]]
    return (
        a == [1, (2, "b"), [3.0]],
        a != [1],
        [1, 2] < [1, 3],
        [1, 2] <= [1, 2, 0],
        (2,) > (1, 9),
        (1, 2) >= (1, 2),
        [x] == [x],
        x in [x],
        2 in (1, 2),
        a == (1,),
        collections.deque([1, 2]) == collections.deque([1, 2]),
        collections.deque([1]) < collections.deque([2]),
        x * 2,
    )


@program((X,))
def test_sequence_arithmetic(x: Tensor) -> Any:
    return [1] + [x], (x,) + (2,), [0] * 3, 2 * (1, x), [x] * 0, x + 1


@program((X,))
def test_sorting(x: Tensor) -> Any:
    words = ["pear", "fig", "apple", "kiwi"]
    words.sort(key=len, reverse=True)
    pairs = sorted([(2, "b"), (1, "z"), (2, "a")], key=lambda p: p[0])
    return words, pairs, sorted("hello"), sorted([3, 1.5, True], reverse=True), x + 1


@program((X,))
def test_deque(x: Tensor) -> Any:
    d = collections.deque([1, 2, 3], maxlen=3)
    d.append(x)
    d.appendleft(0)
    d.rotate(1)
    e = collections.deque("abc")
    e.extendleft("xy")
    e.extend([1])
    popped = e.pop(), e.popleft()
    e.insert(1, "i")
    e.remove("b")
    e.reverse()
    e[0] = "first"
    del e[1]
    f = e.copy()
    f.clear()
    return d, d.maxlen, e, popped, len(f), list(reversed(e)), "a" in e, e.index("x"), x + 1


@program((X,))
def test_tuple(x: Tensor) -> Any:
    t = (x, 1, "s", x)
    u = (1, 2, 1)
    return (
        t[1:],
        t[::-1],
        u.count(1),
        u.index(2),
        u.index(1, 1),
        x in t,
        tuple([1, 2]),
        tuple("ab"),
        (),
        x + t[1],
    )


Point = collections.namedtuple("Point", "left right")


class Loud(Point):
    """A named tuple with more to it."""

    __slots__ = ()

    @property
    def total(self) -> Any:
        return self.left + self.right


@program((X,))
def test_named_tuples(x: Tensor) -> Any:
    p = Point(1, right=x)
    q = p._replace(left=5)
    left, right = q
    r = Loud(2, 3)
    return p, q, left, right, r.total, p._asdict(), Point._make([1, 2]), p[1], r == (2, 3), repr(r)


@program((X,))
def test_range_and_slice(x: Tensor) -> Any:
    r = range(2, 20, 3)
    s = slice(1, None, 2)
    return (
        list(r),
        len(r),
        r[2],
        list(r[1:3]),
        5 in r,
        r.index(8),
        r.start,
        r.stop,
        r.step,
        list(reversed(r)),
        r == range(2, 20, 3),
        s.start,
        s.stop,
        s.step,
        s.indices(5),
        [0, 1, 2, 3][s],
        list(range(Ten(), 3)),
        x[s],
    )


@program(call(X, [1, 2, 3]), call(X, [4, 5, 6]))
def test_outside_list(x: Tensor, items: list[int]) -> Any:
    items.append(items[0])
    items[1], items[0] = items[0], items[1]
    return x * items[0], items[::-1], sum(items)


class Stack(list[Any]):
    """A list with a method, an attribute and an item of its own."""

    label = "stack"

    def push(self, item: Any) -> "Stack":
        self.append(item)
        return self

    def __getitem__(self, index: Any) -> Any:
        return ("got", super().__getitem__(index))


@program((X,))
def test_list_subclass(x: Tensor) -> Any:
    s = Stack([1])
    s.push(x).push(3)
    s.extra = "kept"  # type: ignore[attr-defined]
    return s, s[0], len(s), list(s), s.label, isinstance(s, list), s == [1, x, 3], s.extra  # type: ignore[attr-defined]


@program((X, Stack([1, 2])))
def test_outside_list_subclass(x: Tensor, s: Stack) -> Any:
    s.push(5)
    return x + len(s), s[0], s


@program((X,), breaks=None)
def test_text_of_a_list_that_is_too_deep(x: Tensor) -> Any:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    try:
        return repr(deep), x
    except RecursionError:
        return x + 1


@program((X,), breaks=None)
def test_text_of_a_list_that_is_deep(x: Tensor) -> Any:
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    return repr(deep), x + 1


class Shrinks:
    """Takes an item off the list that it is in when it is asked for its text."""

    def __init__(self, home: list[Any]) -> None:
        self.home = home

    def __repr__(self) -> str:
        if self.home:
            self.home.pop()
        return f"of {len(self.home)}"


@program((X,), breaks=0)
def test_text_of_a_list_that_shrinks_meanwhile(x: Tensor) -> Any:
    home: list[Any] = []
    home += [Shrinks(home) for _ in range(5)]
    text = repr(home)
    home[:] = [1, home, x.shape, Shrinks([]), 2.5]
    return text, len(home), str(home), x + 1


@program((X, slice([], 1)), breaks=0)
def test_a_slice_from_outside_that_is_no_constant(x: Tensor, made: Any) -> Any:
    return x + 1, type(made.start), made.stop


@program((X,), breaks=None)
def test_slices_of_objects(x: Tensor) -> Any:
    made: Any = slice(1, [2], 3)
    dynacap.graph_break()
    return made == slice(1, [2], 3), made != slice(1, [2], 2), copy.copy(made) is made, x + 1


class Clears:
    """Its comparison empties a list."""

    def __init__(self) -> None:
        self.cleared: list[Any] = []

    def __eq__(self, other: object) -> Any:
        self.cleared.clear()
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]


@program((X,))
def test_lists_whose_comparison_changes_them(x: Tensor) -> Any:
    a, b = Clears(), Clears()
    left, right = [a], [b]
    a.cleared, b.cleared = right, left
    same = left == right  # both are empty then
    a.cleared = left = [a]
    return same, left == [1], x + 1


class Queue(collections.deque[Any]):
    """A subclass, which its copies are of."""


class NoQueue(collections.deque[Any]):
    """A subclass that makes something else from the second time on."""

    made = 0

    def __new__(cls, *args: Any) -> Any:
        cls.made += 1
        return collections.deque.__new__(cls) if cls.made % 3 == 1 else [42]


@program((X,), breaks=None)
def test_copies_of_a_subclass_of_deque(x: Tensor) -> Any:
    made, short = Queue("abc"), Queue("abc", 2)
    copies = made.copy(), made + made, short + made, short * 2, 2 * made, copy.copy(short)
    return [(type(each), list(each), each.maxlen) for each in copies], x + 1


@program((X,), breaks=None)
def test_copies_that_are_no_deques(x: Tensor) -> Any:
    made = NoQueue()
    return caught(lambda: made * 42), caught(lambda: made + collections.deque([1])), x + 1


@program((X,), breaks=None)
def test_a_deque_whose_items_are_replaced_is_iterated_on(x: Tensor) -> Any:
    made = collections.deque([1, 2, 3])
    iterator, other = iter(made), iter(made)
    dynacap.graph_break()
    made[2] = 9
    dynacap.graph_break()
    first = list(iterator)
    made.append(4)
    made.popleft()
    return first, caught(next, other), x + 1


@program((X,))
def test_a_deque_that_moves_ends_its_iterators(x: Tensor) -> Any:
    made = collections.deque([1, 2, 3])
    iterator = iter(made)
    made.rotate(1)
    return caught(next, iterator), x + 1


@program((X,), breaks=None)
def test_a_named_tuple_is_of_the_module_that_made_it(x: Tensor) -> Any:
    dynacap.graph_break()
    made = collections.namedtuple("made", "a b")
    return made.__module__, made(1, 2), x + 1
