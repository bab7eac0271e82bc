"""The fallback's own ways: finding functions, exchanging code, putting it back."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from dynacap.hook import Hook, choose_hook
from dynacap.hook.functions import SEARCH_AFTER, FunctionFinder
from dynacap.hook.signature import gatherer, spreader, trampoline

Function = Callable[..., Any]
SIGNATURES = [
    "",
    "a",
    "a, b=2, /, c=3",
    "a, *args, k, l=5, **kw",
    "*, k=1",
    "x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, y0, y1, y2",
]


@pytest.fixture
def fallback() -> Iterator[Hook]:
    chosen = choose_hook("settrace")
    yield chosen
    chosen.reset()


def function_of(signature: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"def f({signature}): return tuple(locals().values())", namespace)
    return namespace["f"]


class Owner:
    """Functions in the places where functions are."""

    def method(self) -> FrameType:
        return sys._getframe()

    @staticmethod
    def static() -> FrameType:
        return sys._getframe()

    @classmethod
    def of_class(cls) -> FrameType:
        return sys._getframe()

    @property
    def prop(self) -> FrameType:
        return sys._getframe()


class Heir(Owner):
    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"looking for a function ran user code: {name}")

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        raise AssertionError("looking for a function ran user code")


def plain() -> FrameType:
    return sys._getframe()


@functools.wraps(plain)
def wrapper() -> FrameType:
    return plain()


def test_finds_functions_by_name() -> None:
    finder = FunctionFinder()
    assert finder.find(plain()) is plain
    for owner in (Owner(), Heir()):
        assert finder.find(owner.method()) is Owner.method
        assert finder.find(owner.static()) is Owner.static
        assert finder.find(owner.of_class()) is Owner.__dict__["of_class"].__func__
        assert finder.find(owner.prop) is Owner.__dict__["prop"].fget


def test_finds_a_method_whose_class_has_no_name() -> None:
    def local(self: Any) -> FrameType:
        return sys._getframe()

    nameless = type("Nameless", (), {"local": local})()
    assert FunctionFinder().find(nameless.local()) is local


def test_finds_a_closure_by_search() -> None:
    def closure() -> FrameType:
        return sys._getframe()

    finder = FunctionFinder()
    found = [finder.find(closure()) for _ in range(SEARCH_AFTER)]
    assert found == [None] * (SEARCH_AFTER - 1) + [closure]


def test_gives_up_on_closures_made_anew() -> None:
    def make() -> Function:
        return lambda: sys._getframe()

    finder = FunctionFinder()
    kept = [make() for _ in range(20)]
    assert [finder.find(function()) for function in kept] == [None] * 20


def test_exchanged_and_put_back(fallback: Hook, replace_plain: Any) -> None:
    original = replaced_function.__code__
    with fallback.active(replace_plain):
        assert replaced_function(1) == "plain"
        assert replaced_function.__code__ is not original
        assert replaced_function(1) == "instead"
    assert replaced_function(1) == "plain"
    assert fallback.original_code(replaced_function) is original
    fallback.reset()
    assert replaced_function.__code__ is original
    assert fallback.original_code(replaced_function) is original
    with fallback.active(replace_plain):
        assert replaced_function(1) == "plain"
        assert replaced_function(1) == "instead"


def replaced_function(x: int, *, k: int = 0) -> str:
    return "plain"


@pytest.fixture
def replace_plain() -> Function:
    return lambda function: (lambda *flat: "instead") if function is replaced_function else None


def test_defaults_stay_live(fallback: Hook, replace_plain: Any) -> None:
    def gives(function: Any) -> Any:
        return (lambda function, x, k: (x, k)) if function is replaced_function else None

    with fallback.active(gives):
        replaced_function(1)
        assert replaced_function(1) == (1, 0)
        replaced_function.__kwdefaults__ = {"k": 7}
        assert replaced_function(1) == (1, 7)
        replaced_function.__kwdefaults__ = {"k": 0}
    with pytest.raises(TypeError, match=r"replaced_function\(\) missing 1 required positional"):
        replaced_function()  # type: ignore[call-arg]


def test_code_of_the_user_stays(fallback: Hook, replace_plain: Any) -> None:
    original = replaced_function.__code__
    with fallback.active(replace_plain):
        replaced_function(1)
        new = original.replace(co_consts=(None, "new"))
        replaced_function.__code__ = new
    fallback.reset()
    assert replaced_function.__code__ is new
    replaced_function.__code__ = original


@pytest.mark.parametrize("signature", SIGNATURES)
def test_signature_functions(signature: str) -> None:
    function = function_of(signature)
    parameters = inspect.signature(function).parameters.values()
    args = [
        i
        for i, p in enumerate(parameters)
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    kwargs = {p.name: p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    gather = gatherer(function.__code__)
    bound = gather(*args, **kwargs)
    assert bound == function(*args, **kwargs)
    assert spreader(function.__code__)(function, *bound) == bound


@pytest.mark.parametrize("signature", SIGNATURES)
def test_trampoline_looks_like_the_code(signature: str) -> None:
    code = function_of(signature).__code__
    made = trampoline(code, lambda *bound: bound)
    count = len(code.co_varnames)
    for name in ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount",
                 "co_posonlyargcount", "co_kwonlyargcount", "co_freevars"):  # fmt: skip
        assert getattr(made, name) == getattr(code, name), name
    assert made.co_varnames[:count] == code.co_varnames
    assert {line for *_, line in made.co_lines()} == {code.co_firstlineno}
    shared = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    assert made.co_flags & shared == code.co_flags & shared


def test_trampoline_of_a_closure() -> None:
    first, second = 1, 2

    def closure(x: int) -> Any:
        return first, second, x

    expected = closure.__code__
    closure.__code__ = trampoline(expected, lambda *bound: ("instead", *bound))
    assert closure(3) == ("instead", 3)
    closure.__code__ = expected
    assert closure(3) == (1, 2, 3)
