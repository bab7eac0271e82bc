"""Which frames are offered to a callback, and what takes their place."""

import asyncio
import builtins
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from dynacap.hook import NEVER, Hook

Function = Callable[..., Any]


def noted(seen: list[str], answer: Any = None) -> Function:
    """A callback that notes the names of functions and answers the same for each."""

    def callback(function: Any) -> Any:
        seen.append(function.__name__)
        return answer

    return callback


def plain(x: int = 1) -> int:
    return x + 1


def many(a: Any = 1, b: Any = 2, /, c: Any = 3, *args: Any, k: Any = 4, **kw: Any) -> Any:
    return "plain", a, b, c, args, k, kw


def test_function_is_offered_and_runs_as_it_is(hook: Hook) -> None:
    seen: list[str] = []
    with hook.active(noted(seen)):
        assert plain(4) == 5
    assert plain(5) == 6
    assert seen == ["plain"]


def test_frame_is_replaced(hook: Hook, replace: Function) -> None:
    callback = replace(plain, lambda function, x: ("instead", function, x))
    with hook.active(callback):
        assert plain(7) == ("instead", plain, 7)
    assert plain(7) == 8
    assert callback.asked == [plain]


def test_first_call_is_replaced_where_promised(hook: Hook) -> None:
    with hook.active(lambda function: lambda *flat: "instead"):
        result = plain()
    assert (result == "instead") is hook.capabilities.replaces_running_frame


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((), {}),
        ((10,), {}),
        ((10, 20, 30, 40, 50), {"k": 60, "z": 70}),
        ((), {"c": 30, "k": 1}),
        ((), {"a": "into kw", "b": "too"}),
    ],
)
def test_arguments_come_as_bound(hook: Hook, replace: Function, args: Any, kwargs: Any) -> None:
    _, a, b, c, rest, k, kw = many(*args, **kwargs)
    with hook.active(replace(many, lambda function, *flat: flat)):
        assert many(*args, **kwargs) == (a, b, c, k, rest, kw)


def test_arguments_beyond_a_small_frame(hook: Hook, replace: Function) -> None:
    names = [f"a{i}" for i in range(40)]
    namespace: dict[str, Any] = {}
    exec(
        f"def wide({', '.join(n + '=0' for n in names)}): return sum(locals().values())", namespace
    )
    wide = namespace["wide"]
    with hook.active(replace(wide, lambda function, *flat: flat)):
        assert wide(*range(40)) == tuple(range(40))
    assert wide(*range(40)) == sum(range(40))


def test_cells_and_free_variables(hook: Hook, replace: Function) -> None:
    free = [1]

    def closure(x: Any = 0) -> Any:
        def inner() -> Any:
            return x

        free.append(inner())
        return inner

    with hook.active(replace(closure, lambda function, x: (x, function.__closure__))):
        x, cells = closure(5)
    assert x == 5
    assert free in [cell.cell_contents for cell in cells]
    assert closure(6)() == 6


def test_methods_and_properties(hook: Hook, replace: Function) -> None:
    class Thing:
        def method(self, y: int = 1) -> Any:
            return self, y

        @property
        def prop(self) -> str:
            return "plain"

        @classmethod
        def made(cls) -> str:
            return "plain"

    thing = Thing()
    getter: Any = Thing.__dict__["prop"].fget
    made: Any = Thing.__dict__["made"].__func__
    callback = replace(Thing.method, lambda function, self, y: (y, self), thing.method)
    with hook.active(callback):
        assert thing.method(3) == (3, thing)
    with hook.active(replace(getter, lambda function, self: self, lambda: thing.prop)):
        assert thing.prop is thing
    with hook.active(replace(made, lambda function, cls: cls, Thing.made)):
        assert Thing.made() is Thing
    assert (thing.method(), thing.prop, Thing.made()) == ((thing, 1), "plain", "plain")


def test_generators_and_coroutines_are_left_alone(hook: Hook) -> None:
    def generator() -> Iterator[int]:
        yield plain(0)
        yield plain(1)

    async def coroutine() -> int:
        return plain(2)

    async def async_generator() -> AsyncIterator[int]:
        yield plain(3)

    async def consume() -> list[int]:
        return [await coroutine(), *[x async for x in async_generator()]]

    seen: list[str] = []
    started = generator()
    assert next(started) == 1
    loop = asyncio.new_event_loop()
    with hook.active(noted(seen)):
        assert next(started) == 2
        assert list(generator()) == [1, 2]
        assert loop.run_until_complete(consume()) == [3, 4]
    loop.close()
    assert seen.count("plain") == 5
    assert not {"generator", "coroutine", "async_generator", "consume"} & set(seen)


def test_generator_is_closed_and_thrown_into(hook: Hook) -> None:
    log: list[str] = []

    def generator() -> Iterator[int]:
        try:
            yield 1
        except KeyError:
            log.append("caught")
        finally:
            log.append("closed")
        yield 2

    first, second = generator(), generator()
    next(first)
    next(second)
    with hook.active(noted([])):
        first.close()
        assert second.throw(KeyError()) == 2  # type: ignore[attr-defined]
    assert log == ["closed", "caught", "closed"]


def test_bodies_are_offered_with_their_namespace(hook: Hook) -> None:
    def instead(function: Any, namespace: dict[str, Any]) -> str:
        namespace["seen"] = function.__name__, sorted(namespace)
        return "the result"

    with hook.active(noted([], instead)):
        names: dict[str, Any] = {"given": 1}
        exec("raise KeyError", {}, names)
        assert names["seen"] == ("<module>", ["given"])
        if hook.capabilities.replaces_running_frame:  # else only exec and classes are
            assert eval("given", {}, names) == "the result"
        type("Empty", (), {})

        class Body:
            raise KeyError

    assert Body.seen == ("Body", [])  # type: ignore[attr-defined]


def test_a_body_is_offered_once_it_is_taken(hook: Hook) -> None:
    """Its names are those of its namespace, nothing else, whether it is replaced or not."""

    def instead(function: Any, namespace: dict[str, Any]) -> None:
        namespace["seen"] = sorted(namespace)

    def build(function: Any, *args: Any) -> Any:
        hook.take(function)
        return built(function, *args)

    def scope(value: int) -> Any:
        class Body:
            y = value

            def method(self) -> Any:
                return value, __class__  # type: ignore[name-defined]

        return Body

    built = builtins.__build_class__
    try:
        builtins.__build_class__ = build
        with hook.active(lambda function: instead if function.__name__ == "Body" else None):
            replaced = scope(1)
        with hook.active(noted([])):
            kept = scope(2)
    finally:
        builtins.__build_class__ = built
    assert replaced.seen == []
    assert (kept.y, kept().method()) == (2, (2, kept))
    assert [name for name in vars(kept) if not name.endswith("__")] == ["y", "method"]


def test_callback_and_replacement_run_unhooked(hook: Hook, replace: Function) -> None:
    def asked(function: Any) -> Any:
        assert not hook.is_active()
        plain()
        return instead if function is plain else None

    def instead(function: Any, x: int) -> Any:
        assert not hook.is_active()
        return function(x)

    replace(plain, instead)
    with hook.active(asked):
        assert hook.is_active()
        assert plain(1) == 2
        assert hook.is_active()


def test_never(hook: Hook) -> None:
    seen: list[str] = []
    with hook.active(noted(seen, NEVER)):
        assert [plain(), plain()] == [2, 2]
    assert seen == ["plain"]
    assert hook.is_marked(plain.__code__)
    hook.clear_marks()
    assert not hook.is_marked(plain.__code__)
    hook.mark_never(plain.__code__)
    with hook.active(noted(seen)):
        plain()
    assert seen == ["plain"]
    hook.clear_marks()
    with hook.active(noted(seen)):
        plain()
    assert seen == ["plain", "plain"]


def test_marked_after_it_was_replaced(hook: Hook, replace: Function) -> None:
    callback = replace(plain, lambda *flat: "instead")
    hook.mark_never(hook.original_code(plain))
    with hook.active(callback):
        assert plain() == 2


def test_nesting(hook: Hook) -> None:
    outer: list[str] = []
    inner: list[str] = []
    to_inner = noted(inner)
    with hook.active(noted(outer)):
        plain()
        with hook.active(to_inner):
            plain()
            with hook.active(None):
                assert not hook.is_active()
                plain()
            plain()
        plain()
    assert (outer, inner) == (["plain"] * 2, ["plain"] * 2)


def test_tokens(hook: Hook) -> None:
    first = hook.enter(noted([]))
    hook.enter(None)
    hook.enter(noted([]))
    hook.exit(first)
    assert not hook.is_active()
    with pytest.raises(RuntimeError, match="unfinished"):
        hook.exit(first)


def test_many_nested_activations(hook: Hook) -> None:
    tokens = [hook.enter(noted([]) if i % 3 else None) for i in range(100)]
    for token in reversed(tokens):
        hook.exit(token)
    assert not hook.is_active()


def test_one_activation_is_entered_once_at_a_time(hook: Hook) -> None:
    activation = hook.active(noted([]))
    with activation, pytest.raises(RuntimeError, match="entered already"):
        activation.__enter__()
    with activation:
        assert hook.is_active()


def test_enter_without_exit_ends_with_the_replacement(hook: Hook, replace: Function) -> None:
    def instead(function: Any, x: int) -> int:
        hook.enter(None)
        hook.enter(noted([]))
        return x

    callback = replace(plain, instead)
    with hook.active(callback):
        assert plain(9) == 9
        assert hook.is_active()
        assert plain(8) == 8
    assert callback.asked == [plain, plain]


def test_exception_in_the_block(hook: Hook) -> None:
    with pytest.raises(KeyError), hook.active(noted([])):
        raise KeyError
    assert not hook.is_active()


def test_threads_are_apart(hook: Hook) -> None:
    seen: list[str] = []
    other: list[str] = []
    ready, done = threading.Event(), threading.Event()

    def run() -> None:
        with hook.active(noted(other)):
            ready.set()
            plain()
            done.wait(10)
            plain()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(10)
    plain()
    with hook.active(noted(seen)):
        plain()
    done.set()
    thread.join()
    plain()
    assert seen == ["plain"]
    assert [name for name in other if name == "plain"] == ["plain"] * 2


def test_threads_with_different_answers(hook: Hook, replace: Function) -> None:
    replace(plain, lambda *flat: None)
    wrong: list[Any] = []

    def run(tag: int) -> None:
        def callback(function: Any) -> Any:
            return (lambda function, x: (tag, x)) if function is plain else None

        for i in range(300):
            with hook.active(callback):
                result = plain(i)
            if result != (tag, i) or plain(i) != i + 1:
                wrong.append((tag, i, result))

    threads = [threading.Thread(target=run, args=(tag,)) for tag in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_function_s_own_code_in_a_namespace(hook: Hook) -> None:
    """It is called with no namespace, if at all."""

    def body() -> None:
        seen.append(0)

    seen: list[int] = []
    with hook.active(lambda function: lambda *flat: seen.append(len(flat))):
        builtins.__build_class__(body, "Made")  # type: ignore[arg-type]
    assert seen == [0 if hook.capabilities.replaces_running_frame else 1]
