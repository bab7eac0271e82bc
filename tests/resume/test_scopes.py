"""Closures, classes, `super()` and `locals()`, run in pieces."""

# What these programs do wrong, or in a way that no type describes, is their purpose.
# mypy: ignore-errors
# ruff: noqa: B006, B018, E731, F821, F841, RUF012, UP008

import sys
from collections.abc import Callable
from typing import Any


def inner(func: Any) -> Any:
    """Stands for the decorator of the conftest, which runs a function in pieces."""
    raise AssertionError("set by the fixture")


def test_in_pieces(program: Callable[[], object], check: Callable[..., None]) -> None:
    check(program)


def program_closure(n=3):
    def add(x):
        return x + n

    n += 1
    return add(1), list(map(add, range(3)))


def program_counter():
    count = 0

    @inner
    def tick():
        nonlocal count
        count += 1
        return count

    return tick(), tick(), count


def program_argument_cells(a=1, b=2, c=3):
    @inner
    def use():
        nonlocal b
        b += a
        return a, b

    d = c
    del d
    shown = {name: value for name, value in locals().items() if name != "use"}
    return use(), use(), b, c, list(shown.items())


def program_star_arguments_in_cells(*args, **kwargs):
    use = lambda: (args, kwargs)
    return use(), list(locals())


def program_deleted_cell(n=3):
    use = lambda: n
    del n
    try:
        use()
    except NameError as error:
        print(error)
    try:
        n
    except NameError as error:
        print(error)
    del n


def program_late_cell():
    use = lambda: later
    try:
        use()
    except NameError as error:
        print(error)
    later = 5
    return use()


def program_nested_scopes(a=1):
    @inner
    def middle(b):
        @inner
        def lowest(c):
            nonlocal a
            a += b + c
            return a, b, c

        return lowest(10), lowest(20), list(locals())

    return middle(2), middle(3), a


def program_comprehension_closure(n=2):
    rows = [[(x, y, n) for x in range(y)] for y in range(3)]
    makers = [lambda k=k: k + n for k in range(3)]
    return rows, [make() for make in makers], {k: (lambda: k)() for k in range(2)}


def program_comprehension_in_the_place_of_a_cell(k=10):
    n = 3
    read = lambda: (k, n)
    first = [k for k in range(3) if k]
    second = [[(lambda: (k, n))() for k in range(2)] for n in range(2)]
    try:
        [k // n for n in (1, 0)]
    except ZeroDivisionError as error:
        text = str(error)
    return first, second, read(), text, [k for _ in first]


def program_names_that_only_comprehensions_bind():
    found = [late for late in range(2)]
    try:
        late
    except NameError as error:
        return found, str(error), sorted(locals())
    late = 1
    return late


def program_keywords_twice():
    def take(**keywords):
        return keywords

    try:
        take(**{"a": 1}, **{"a": 2})
    except TypeError as error:
        return take(**{"a": 1}, b=2, **{"c": 3}), str(error)


def program_truth_of_comparisons():
    class Wrapped:
        def __init__(self, value):
            self.value = value

        def __lt__(self, other):
            print("lt")
            return [self] if self.value < other.value else ()

    one, two = Wrapped(1), Wrapped(2)
    found = []
    if one < two:
        found.append("less")
    while two < one:
        found.append("never")
    return found, not one < two, bool(one < two and two < one), (one < two or 0) != 0


def program_slices():
    items = list(range(6))
    items[1:3] = "ab"
    head, tail = items[:2], items[2:]
    return head, tail, items[1:][:1]


def program_function_parts():
    @inner
    def made(a: int, b: "str" = "x", *, c=[1], d: list[int] = [2]) -> None:
        c.append(a)
        return b, c, d

    return made(1), made(2, d=[]), made.__annotations__, made.__defaults__, made.__kwdefaults__


def program_class_body(n=3):
    class Box:
        """A box."""

        size = n
        items = [size for _ in range(2)]

        def double(self):
            return self.size * 2

        @property
        def half(self):
            return self.size / 2

    return Box().double(), Box().half, Box.items, Box.__doc__, Box.__qualname__


class Base:
    def __init__(self, x):
        self.x = x

    def value(self, k=0):
        return self.x + k

    @classmethod
    def make(cls, x):
        return cls(x)


def program_super():
    class Child(Base):
        @inner
        def __init__(self, x):
            super().__init__(x + 1)
            self.kind = __class__.__name__

        @inner
        def value(self, k=0):
            y = k
            return super().value(y) * 10, super(Child, self).value()

        @classmethod
        @inner
        def make(cls, x):
            return super().make(x * 2)

    child = Child.make(3)
    return child.value(1), child.kind, child.x


def program_super_with_self_in_a_cell():
    class Child(Base):
        @inner
        def value(self, k=0):
            k += 1
            get = lambda: self.x + k
            return super().value(get()), get()

    return Child(2).value()


def program_super_of_a_rebound_self():
    class Child(Base):
        @inner
        def value(self, k=0):
            self = Child(k + 5)
            return super().value()

    return Child(2).value()


def program_super_of_a_deleted_self():
    class Child(Base):
        @inner
        def value(self, k=0):
            del self
            return super().value()

    return Child(2).value()


def program_locals_are_the_users(a=1, b=2):
    c = [locals() for _ in range(1)]
    del b
    d = a + max(1, len(locals()), *[2])
    shown = dict(locals())
    shown.pop("c")
    return len(c), d, list(shown.items())


def program_locals_with_values_on_the_stack(a=1):
    z = 2
    return [a, (z, sorted(locals()), {**locals(), "k": [a, list(locals().items())]})]


def program_frame_of_a_piece(a=1):
    b = 5
    frame = sys._getframe()
    code = frame.f_code
    return [
        code.co_name,
        code.co_filename == __file__,
        code.co_qualname,
        frame.f_globals is globals(),
        sorted(sys._getframe().f_locals),
        b,
    ]


def program_eval_and_exec(a=4):
    return eval("a + 1"), eval("[a for _ in range(2)]", globals(), locals())


def program_many_cells(a=1, b=2, c=3, d=4):
    e, f = 5, 6

    @inner
    def use(g, h):
        nonlocal e
        e += g
        return a, b, c, d, e, f, g, h

    return [a, (use(1, 2), [use(3, 4), (e, f, use(5, h=6), list(locals()))])]


def program_recursive_inner():
    @inner
    def depth(n):
        try:
            return [n, *depth(n - 1)] if n else []
        finally:
            seen.append(n)

    seen: list[int] = []
    return depth(3), seen
