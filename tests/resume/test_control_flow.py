"""Loops, branches, unpacking, calls and operators, run in pieces."""

# What these programs do wrong, or in a way that no type describes, is their purpose.
# mypy: ignore-errors
# ruff: noqa: B008, B018, F401, F821, F842, I001

import builtins
import operator
from collections.abc import Callable
from typing import Any


def test_in_pieces(program: Callable[[], object], check: Callable[..., None]) -> None:
    check(program)


def program_while_else(n=4):
    seen = []
    while n:
        n -= 1
        if n == 2:
            continue
        seen.append(n)
    else:
        seen.append("else")
    return seen


def program_for_else_break(items=(3, 1, 2)):
    for item in items:
        if item == 2:
            found = item
            break
    else:
        found = None
    return found, item


def program_nested_loops():
    total = 0
    for row in range(3):
        for column in range(row):
            if column == 1:
                continue
            total += row * column + 1
        total *= 2
    return total


def program_chained_comparison(a=1, b=2, c=3):
    return [a < b < c, a < b > c, a == 1 != b <= c, not a < c < b]


def program_walrus():
    got = []
    while (item := len(got)) < 3:
        got.append(item * 2)
    return got, item, [y := 1, y**2]


def program_boolean_operators():
    results = []
    for a in (0, 1, None, "x"):
        for b in (0, [], 5):
            results.append((a and b, a or b, not a, a if b else "no", a is None or b is not None))
    return results


def program_comprehensions(n=4):
    k = 10
    nested = [[x * y + k for x in range(y)] for y in range(n)]
    return nested, {x: k for x in range(2)}, {x % 2 for x in range(5)}, sum(x for x in range(n))


def program_formatting(value=3.14159):
    name = "pi"
    return f"{name}={value:.2f} {name!r:>6} {value!s} {'nested ' + f'{value:{5}.{2}}'} {name=}"


def program_unpacking():
    a, b = 1, 2
    a, b = b, a
    c, *d, e = range(5)
    (f, g), h = ("x", "y"), [*d, *"ab"]
    i = j = {**{"k": 1}, "l": 2}
    first, *rest = {1: 2}
    return a, b, c, d, e, f, g, h, i is j, (*h, c), {*d, c}, first, rest


def program_unpacking_fails():
    a = b = 0
    try:
        a, b = 1, 2, 3
    except ValueError as error:
        print(error, a, b)
    a, *b, c = ()
    return a, b, c


def collect(*args, **kwargs):
    return args, sorted(kwargs.items())


def program_star_calls():
    args, kwargs = [1, 2], {"x": 3}
    return (
        collect(*args, 9, *"ab", y=4, **kwargs),
        collect(*args),
        collect(**kwargs, **{"z": 1}),
        collect(0, *args, k=5),
        print(*args, sep="-", end="!\n"),
    )


def program_star_call_twice_a_key():
    kwargs = {"x": 3}
    return collect(x=1, **kwargs)


def program_star_call_of_no_mapping():
    return collect(*[1], **3)


def program_argument_kinds(a=1, /, b=2, *args, c=3, d=4, **kwargs):
    b += a
    return a, b, args, c, d, kwargs, sorted(locals())


def program_deletes():
    box = {"a": [1, 2, 3], "b": 0}
    del box["a"][1], box["b"]
    x = y = 1
    del x
    try:
        return x
    except UnboundLocalError as error:
        print(error)
    del y
    try:
        del y
    except UnboundLocalError as error:
        print(error)
    return box, locals()


COUNT = 0


def program_globals():
    global COUNT, NEW
    COUNT = 1
    COUNT += 5
    NEW = COUNT * 2
    result = COUNT, NEW
    del NEW
    try:
        NEW
    except NameError as error:
        print(error)
    return result, len, builtins.len


def program_imports():
    import os.path as path
    from collections import OrderedDict, deque as queue
    import collections.abc

    try:
        from os import nothing_of_this_name
    except ImportError as error:
        print(error.name)
    return path.join("a", "b"), OrderedDict(a=1), queue([1]), collections.abc.Sized


def program_slices(items=(1, 2, 3, 4, 5)):
    box = list(items)
    box[1:3] = ["x"]
    box[::2] = box[::2][::-1]
    box[0] += 10
    del box[-1:]
    return items[1:], items[:-1], items[::2], box


def program_augmented():
    class Box:
        value = 1

    box = Box()
    box.value += 2
    box.value <<= 3
    items = [1, 2]
    items *= 2
    items[0] -= 5
    table = {"k": 3}
    table["k"] @= Matrix()
    return box.value, items, table


class Matrix:
    def __rmatmul__(self, other):
        return other, "matmul"


def program_operators(a=7, b=3):
    return (
        a + b, a - b, a * b, a / b, a // b, a % b, a**b, a << b, a >> b, a & b, a | b, a ^ b,
        -a, +a, ~a, not a, a in (a, b), b not in [a], a is b, a is not b,
    )  # fmt: skip


def program_match(subjects=(1, [1, 2, 3], {"k": 5, "z": 6}, (4,), "text", Matrix(), None, 2.5)):
    got = []
    for subject in subjects:
        match subject:
            case 1 | 2:
                got.append("small")
            case [1, *rest] if len(rest) == 2:
                got.append(rest)
            case {"k": value, **others}:
                got.append((value, others))
            case (x,):
                got.append(x)
            case str() as text:
                got.append(text)
            case Matrix():
                got.append("matrix")
            case None:
                got.append("none")
            case float(real=r, imag=0):
                got.append(r)
            case _:
                got.append("other")
    return got


def program_assert(ok=False):
    assert not ok
    assert ok, f"not {ok}"


def program_conditional_lambda(n=3):
    chosen = (lambda x: x + n) if n > 2 else (lambda x: x - n)
    return chosen(1), list(map(lambda i, k=n: i * k, range(3))), operator.add(1, n)


def program_methods():
    text = "a-b-c"
    parts = text.split("-")
    parts.append("d".upper())
    box: Any = {"f": len}
    return "+".join(parts), box["f"](parts), parts.index("D"), str.upper("x")


def program_recursion():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    return factorial(5)


def program_many_locals():
    a = b = c = d = e = f = g = h = 1
    text = [a, (b, c), {d: e}, f"{f}{g}", collect(a, collect(b, c, k=d), collect(*[e, f], h))]
    return text, locals()


def program_type_hints():
    x: int = 1
    y: list[int]
    return x, sorted(locals())
