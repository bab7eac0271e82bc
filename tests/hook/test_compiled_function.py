"""Compiled functions bind as Python binds, and pass for the function that they stand for."""

import copy
import functools
import gc
import inspect
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dynacap.hook import CompiledFunction, Hook, choose_hook

Function = Callable[..., Any]


def flat(function: Any, *bound: Any) -> Any:
    return bound


def target(a: int, b: int = 2, *, k: int = 3) -> Any:
    """Says what it is."""
    return a, b, k


def made(hook: Hook, function: Any, table: Any = flat, finish: Any = None) -> Any:
    return hook.compiled_function(function, table, finish)


SIGNATURES = [
    "",
    "a",
    "a, b",
    "a, /, b",
    "a=1",
    "a, b=2, c=3",
    "a, /, b=2, *, k",
    "*args",
    "**kw",
    "a, *args, k=4, l",
    "a, b=2, /, c=3, *args, k, l=5, **kw",
    "self, /, *args, **kw",
    "*, k=1",
    "a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, b0, b1, b2, b3, b4, b5, b6=1, *rest",
]
NAMES = ["a", "b", "c", "k", "l", "self", "args", "kw", "z", "a0", "b6"]


def function_of(signature: str) -> Any:
    """A function that returns what it bound, in the order of co_varnames."""
    namespace: dict[str, Any] = {}
    exec(f"def f({signature}): return tuple(locals().values())", namespace)
    return namespace["f"]


def outcome(call: Function, *args: Any, **kwargs: Any) -> Any:
    try:
        return call(*args, **kwargs)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("signature", SIGNATURES)
@settings(max_examples=60, deadline=None)
@given(
    args=st.lists(st.integers(), max_size=6) | st.lists(st.integers(), min_size=14, max_size=20),
    kwargs=st.dictionaries(st.sampled_from(NAMES), st.integers(), max_size=4),
)
@pytest.mark.parametrize("kind", ["auto", "settrace"])
def test_binds_as_python_does(
    signature: str, kind: str, args: list[int], kwargs: dict[str, int]
) -> None:
    function = function_of(signature)
    compiled = made(choose_hook(kind), function)
    assert outcome(compiled, *args, **kwargs) == outcome(function, *args, **kwargs)


def test_function_comes_first(hook: Hook) -> None:
    compiled = made(hook, target, lambda *flat: flat)
    assert compiled(1) == (target, 1, 2, 3)
    assert compiled.function is target


def test_all_ways_to_call(hook: Hook) -> None:
    compiled = made(hook, target)
    args, kwargs = (1,), {"k": 9}
    assert compiled(*args, **kwargs) == (1, 2, 9)
    assert compiled(1, b=5) == (1, 5, 3)
    assert functools.partial(compiled, 7)(8) == (7, 8, 3)
    assert list(map(compiled, [1, 2])) == [(1, 2, 3), (2, 2, 3)]
    with pytest.raises(TypeError, match="keywords must be strings"):
        compiled(1, **{1: 2})


def test_keyword_that_is_equal_but_another_object(hook: Hook) -> None:
    class Text(str):
        __slots__ = ()

    assert made(hook, target)(1, **{Text("b"): 4}) == (1, 4, 3)


def test_defaults_are_read_at_each_call(hook: Hook) -> None:
    def f(a: int, b: int = 2, *, k: int = 3) -> Any: ...

    compiled = made(hook, f)
    assert compiled(1) == (1, 2, 3)
    f.__defaults__ = (10, 20)
    f.__kwdefaults__ = {"k": 30}
    assert compiled() == (10, 20, 30)
    assert compiled.__kwdefaults__["k"] == 30
    compiled.__defaults__ = None
    del f.__kwdefaults__["k"]
    with pytest.raises(TypeError, match="missing 2 required positional"):
        compiled()
    f.__kwdefaults__ = None  # type: ignore[assignment]
    with pytest.raises(TypeError, match="keyword-only"):
        compiled(1, 2)


def test_code_may_change(hook: Hook) -> None:
    def f(a: int) -> Any: ...
    def g(x: int, y: int = 0) -> Any: ...

    compiled = made(hook, f)
    assert compiled(1) == (1,)
    compiled.__code__ = g.__code__
    assert f.__code__ is g.__code__
    assert compiled(y=1, x=2) == (2, 1)


def test_passes_for_the_function(hook: Hook) -> None:
    target.note = "kept"  # type: ignore[attr-defined]
    compiled = made(hook, target)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__code__", "__globals__",
                 "__closure__", "__annotations__", "note"):  # fmt: skip
        assert getattr(compiled, name) == getattr(target, name), name
    assert compiled.__wrapped__ is target
    assert inspect.signature(compiled) == inspect.signature(target)
    assert inspect.unwrap(compiled) is target
    assert callable(compiled)
    assert "target" in repr(compiled)
    compiled.extra = 1
    compiled.__name__ = "renamed"
    assert (compiled.extra, target.__name__) == (1, "target")
    assert not hasattr(target, "extra")
    with pytest.raises(AttributeError):
        compiled.__globals__ = {}
    with pytest.raises(AttributeError):
        _ = compiled.nothing


def test_binds_as_a_method(hook: Hook) -> None:
    def method(self: Any, x: int = 1) -> Any: ...

    class Thing:
        m = made(hook, method)

    thing = Thing()
    assert thing.m(5) == (thing, 5)
    assert thing.m.__self__ is thing
    assert Thing.m is Thing.__dict__["m"]
    assert Thing.m(thing) == (thing, 1)
    assert super(Thing, thing).__init__ is not None
    bound = thing.m
    assert bound(x=3) == (thing, 3)


decorated: Any = None


def test_pickled_and_copied_by_name(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    def decorated(x: int) -> Any: ...

    decorated.__qualname__ = "decorated"
    compiled = made(hook, decorated)
    assert copy.copy(compiled) is compiled
    assert copy.deepcopy([compiled])[0] is compiled
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(compiled)
    monkeypatch.setitem(globals(), "decorated", compiled)
    monkeypatch.setattr("sys.modules", {**__import__("sys").modules, __name__: _ThisModule()})
    assert pickle.loads(pickle.dumps(compiled)) is compiled


class _ThisModule:
    def __getattr__(self, name: str) -> Any:
        return globals()[name]


class Suspend:
    pass


class Other(Suspend):
    pass


def test_finish(hook: Hook) -> None:
    calls: list[Any] = []

    def finish(result: Any) -> Any:
        calls.append(result)
        assert not hook.is_active()
        return "finished"

    def f(x: Any) -> Any: ...

    compiled = made(hook, f, lambda function, x: x, finish)
    suspended = Suspend()
    assert compiled(suspended) is suspended
    hook.set_suspend_type(Suspend)
    assert compiled(suspended) == "finished"
    assert calls == [suspended]
    assert compiled(5) == 5
    assert isinstance(compiled(Other()), Other)
    compiled.finish = None
    assert compiled(suspended) is suspended
    assert compiled.finish is None
    compiled.finish = finish
    with hook.active(lambda function: None):
        assert compiled(suspended) == "finished"
        assert hook.is_active()


def test_as_answer_of_a_callback(hook: Hook, replace: Function) -> None:
    hook.set_suspend_type(Suspend)
    compiled = made(hook, target, lambda *flat: Suspend(), lambda result: "finished")
    callback = replace(target, compiled, lambda: target(1))
    with hook.active(callback):
        assert target(1) == "finished"
    assert target(1) == (1, 2, 3)


def test_table_may_be_exchanged(hook: Hook) -> None:
    def f(x: Any) -> Any: ...

    compiled = made(hook, f, None)

    def first(function: Any, x: Any) -> Any:
        compiled.table = lambda function, x: ("second", x)
        gc.collect()
        return "first", x

    compiled.table = first
    del first
    assert [compiled(1), compiled(2)] == [("first", 1), ("second", 2)]


def test_table_runs_unhooked(hook: Hook) -> None:
    asked: list[Any] = []

    def table(function: Any, *bound: Any) -> Any:
        assert not hook.is_active()
        return flat(function, *bound)

    compiled = made(hook, target, table)
    with hook.active(asked.append):
        assert compiled(1) == (1, 2, 3)
        assert hook.is_active()
    assert table not in asked
    assert flat not in asked


def test_errors_of_the_table(hook: Hook) -> None:
    def table(*flat: Any) -> Any:
        raise TypeError("mine")

    compiled = made(hook, target, table)
    with pytest.raises(TypeError, match="mine"):
        compiled(1)
    with pytest.raises(TypeError, match="mine"):
        compiled(1, k=2)


def test_weakly_referenced_and_collected(hook: Hook) -> None:
    def f(x: Any) -> Any: ...

    compiled = made(hook, f)
    f.compiled = compiled  # type: ignore[attr-defined]
    compiled.myself = compiled
    compiled.table = compiled.__get__(compiled)
    gone = weakref.ref(compiled)
    assert gone() is compiled
    del compiled, f
    gc.collect()
    assert gone() is None


def test_needs_a_python_function(hook: Hook) -> None:
    with pytest.raises(TypeError, match="function"):
        made(hook, len)


def test_protocol(hook: Hook) -> None:
    compiled: CompiledFunction = made(hook, target)
    assert compiled.table is flat
