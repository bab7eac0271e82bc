"""What only later Pythons can write; each is text, which the others do not compile."""

import importlib.util
import typing
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dynacap
from dynacap.testing import check_same

X = torch.arange(6.0).reshape(2, 3)
HAS_TEMPLATES = importlib.util.find_spec("annotationlib") is not None

SOURCES = {
    "template": """
def f(x, name):
    made = t"a{x!r}b{name:>{5}}{name}{x + 1}"
    shown = [part if isinstance(part, str) else part.expression for part in made]
    values = [part.value for part in made.interpolations]
    text = "".join(part if isinstance(part, str) else part.format_spec for part in made)
    return made.values[3] * 2, shown, values, text, made.strings, made.interpolations[0].conversion
""",
    "template_that_leaves": """
def f(x, name):
    made = t"{name}{x}"
    return x + 1, made.strings, [part.value for part in made.interpolations], made.values
""",
    "empty_template": """
def f(x, name):
    return x + 1, t"".strings, list(t""), list(t"a")
""",
    "annotations": """
def f(x, name):
    def made(a: int, *, b: "str" = 1) -> int: return a
    def never_asked(a: Undefined): return a
    before = made.__annotate__ is None
    made.__annotations__["c"] = 3
    return made.__annotations__, before, never_asked(x + 1), made(2)
""",
    "annotations_replaced": """
def f(x, name):
    def made(a: int): return a
    def other(a: str): return a
    made.__annotate__ = other.__annotate__
    first = made.__annotations__
    made.__annotations__ = {"z": 1}
    return x + 1, first, made.__annotations__, made.__annotate__
""",
    "finally_without_parentheses": """
def f(x, name):
    found = []
    try:
        try:
            [].pop()
        except ValueError, IndexError:
            found.append("caught")
    finally:
        x = x + 1
    return x, found
""",
}


def compiled(source: str) -> Callable[..., Any]:
    """The function `f` of a source text."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "<new syntax>", "exec"), namespace)
    made: Callable[..., Any] = namespace["f"]
    return made


@pytest.mark.skipif(not HAS_TEMPLATES, reason="this Python cannot compile it")
@pytest.mark.parametrize("name", SOURCES)
def test_syntax_of_314(name: str) -> None:
    check_same(compiled(SOURCES[name]), (X, "name"), (X, "other"), breaks=0)


WORKED_OUT_LATER = {
    "a_bound": """
def f(x, name):
    class Holder:
        T = int
        def take[U: T](self): return U
        type Alias = T
    Holder.T = float
    return x + 1, Holder.take.__type_params__[0].__bound__, Holder.Alias.__value__
""",
    "a_name_that_is_not_there": """
def f(x, name):
    def take[T: missing, U: (missing,)](t: T, u: U): return t
    type Alias = missing
    told = []
    for ask in (
        lambda: take.__type_params__[0].__bound__,
        lambda: take.__type_params__[1].__constraints__,
        lambda: Alias.__value__,
    ):
        try:
            ask()
        except NameError as error:
            told.append(str(error))
    missing = 1
    return take(x, 1) + 1, told, Alias.__value__
""",
}


@pytest.mark.skipif(not hasattr(typing, "TypeAliasType"), reason="this Python cannot compile it")
@pytest.mark.parametrize("name", WORKED_OUT_LATER)
def test_type_parameters_are_worked_out_when_first_asked(name: str) -> None:
    check_same(compiled(WORKED_OUT_LATER[name]), (X, "name"), (X, "other"))


TYPE_PARAMETERS = {
    "functions": """
def f(x, name):
    def take[T, *Ts, **P](a: T) -> T: return a * 2
    first, second, third = take.__type_params__
    same = take.__annotations__["return"] is first, first == second, {first: 1}[first]
    return take(x), take.__type_params__, take.__annotations__, same, first, bool(third)
""",
    "bounds_and_aliases": """
def f(x, name):
    bound = int
    def take[T: bound, U: (bound, str)](a: T = name, *, k: U = 4) -> U: return x + k
    type Pair[T] = tuple[T, bound, name]
    type Alone = list[Alone]
    return take(), take, Pair, Alone, Pair is Alone
""",
    "of_functions_in_functions": """
def f(x, name):
    def outer[T](a: T):
        def inner[U](b: U): return a, b, T, U
        return inner
    inner = outer(x)
    return inner(x + 1), inner.__type_params__, inner
""",
    "across_a_break": """
def f(x, name):
    def take[T](a: T) -> T: return a * 2
    type Alias[T] = T
    x = x + 1
    print(name)
    return take(x), take.__type_params__, Alias.__value__, Alias.__type_params__
""",
    "generic_classes": """
def f(x, name):
    x = x * 2
    class Box[T]:
        item: T
        def __init__(self, item: T): self.item = item
        def take[U](self, a: U) -> tuple[T, U]: return self.item, a
    box = Box(x)
    return box.take(x + 1), box, Box.__type_params__, Box.__orig_bases__, Box[int]
""",
    "aliases_in_annotations": """
def f(x, name):
    def take[T](a: dict[str, T], *b: list[T]) -> tuple[T, int]: return a[name], 1
    return take({name: x})[0] + 1, take, take.__annotations__
""",
}
DEFAULTS = """
def f(x, name):
    fallback = int
    def take[T = fallback, *Ts = *tuple[name], **P = [fallback]](a: T) -> T: return a
    type Alias[T: int = bool] = T
    return take(x + 1), take.__type_params__, take, Alias
"""
WHOLE = {"functions", "aliases_in_annotations", "bounds_and_aliases", "of_functions_in_functions"}


@pytest.mark.skipif(not hasattr(typing, "TypeAliasType"), reason="this Python cannot compile it")
@pytest.mark.parametrize("name", TYPE_PARAMETERS)
def test_type_parameters(name: str) -> None:
    breaks = 0 if name in WHOLE else None
    check_same(compiled(TYPE_PARAMETERS[name]), (X, "name"), (X, "name"), (X, "b"), breaks=breaks)


@pytest.mark.skipif(not hasattr(typing, "NoDefault"), reason="this Python cannot compile it")
def test_defaults_of_type_parameters() -> None:
    check_same(compiled(DEFAULTS), (X, "name"), (X, "name"), (X, "other"), breaks=0)


@pytest.mark.skipif(not hasattr(typing, "TypeAliasType"), reason="this Python cannot compile it")
def test_type_parameters_work_as_eager_s_do() -> None:
    """What they were made with is looked at from outside, where eager Python works it out."""
    space: dict[str, Any] = {}
    exec(TYPE_PARAMETERS["bounds_and_aliases"], space)
    _, take, pair, alone, _ = dynacap.compile(space["f"])(X, "name")
    first, second = take.__type_params__
    assert (first.__bound__, second.__constraints__) == (int, (int, str))
    assert (first.__module__, first.__infer_variance__, pair.__module__) == ("typing", True, None)
    assert pair[str].__origin__ is pair
    assert alone.__value__.__args__ == (alone,)
    assert pair.__value__.__args__ == (pair.__type_params__[0], int, "name")


LATE_ANNOTATIONS = """
class Late:
    a: missing

def late(a: missing): return a

def f(x, name):
    told = []
    for holder in (Late, late):
        try:
            told.append(holder.__annotations__)
        except NameError as error:
            told.append(str(error))
    return x + 1, told
"""


@pytest.mark.skipif(not HAS_TEMPLATES, reason="this Python makes them at once")
def test_annotations_of_outside_are_made_by_code_of_the_users() -> None:
    check_same(compiled(LATE_ANNOTATIONS), (X, "name"), (X, "other"))
