"""Bodies are offered already when they run for the first time, which most do only once."""

import builtins
import sys
from types import FunctionType
from typing import Any

import pytest

from dynacap.hook import Hook

TEXT = "x = 1\nclass Made:\n    y = x + 1\n    def own(self): return __class__\n"


class Note:
    """A callback that runs bodies of this file's making in place of Python, and notes them."""

    def __init__(self, hook: Hook) -> None:
        self.hook = hook
        self.bodies: list[str] = []

    def __call__(self, function: FunctionType) -> Any:
        code = self.hook.original_code(function)
        if code.co_filename not in ("<text>", "<string>", __file__) or code.co_flags & 1:
            return None

        def run(function: FunctionType, namespace: dict[str, Any]) -> Any:
            self.bodies.append(code.co_name)
            namespace["instead"] = True

        return run


@pytest.mark.parametrize("code", [TEXT, compile(TEXT, "<text>", "exec")])
def test_exec_is_offered(hook: Hook, code: Any) -> None:
    note = Note(hook)
    space: dict[str, Any] = {}
    with hook.active(note):
        assert exec(code, space) is None  # type: ignore[func-returns-value]
    assert note.bodies == ["<module>"]
    assert space.pop("__builtins__") is vars(builtins)
    assert space == {"instead": True}


def test_a_class_body_is_offered(hook: Hook) -> None:
    note = Note(hook)
    with hook.active(note):

        class Here:
            z = 1

    assert note.bodies == ["Here"]
    assert not hasattr(Here, "z")
    assert vars(Here)["instead"]


def test_what_is_not_wanted_runs_as_it_is(hook: Hook) -> None:
    space: dict[str, Any] = {}
    with hook.active(lambda function: None):
        exec(TEXT, space)
        exec("w = y", {"y": 3}, space)
        with pytest.raises(TypeError, match="exec"):
            exec(TEXT, 3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="exec"):
            exec()  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="arg 1 must be"):
            exec(3)  # type: ignore[arg-type]
    assert (space["Made"].y, space["Made"]().own(), space["w"]) == (2, space["Made"], 3)


def test_exec_in_the_callers_names(hook: Hook) -> None:
    """Those of its locals, the flags of its imports from __future__."""

    def reads() -> tuple[Any, ...]:
        name = 5
        seen: list[Any] = []
        exec("seen.append(name); name = 6")
        return seen, name

    space: dict[str, Any] = {"__name__": "late"}
    late = "from __future__ import annotations\nexec('def f(x: unknown): pass')"
    with hook.active(lambda function: None):
        assert reads() == ([5], 5)
        exec(late, space)
    assert space["f"].__annotations__ == {"x": "unknown"}
    with pytest.raises(NameError), hook.active(lambda function: None):
        exec("def f(x: unknown): pass\nf.__annotations__")


def test_pythons_own_are_there_again(hook: Hook) -> None:
    own = builtins.exec, builtins.__build_class__
    with hook.active(lambda function: None):
        kept = exec
    assert (builtins.exec, builtins.__build_class__) == own
    space: dict[str, Any] = {}
    kept("v = 1", space)
    assert space["v"] == 1


def test_what_the_user_puts_there_stays(hook: Hook) -> None:
    seen: list[Any] = []
    own, users = builtins.exec, seen.append
    try:
        with hook.active(lambda function: None):
            builtins.exec = users  # type: ignore[assignment]
            exec("v = 1")
            with hook.active(None):
                exec("w = 1")
            exec("u = 1")
        assert builtins.exec is users
    finally:
        builtins.exec = own
    assert seen == ["v = 1", "w = 1", "u = 1"]


def test_a_users_tracer_sees_none_of_it(hook: Hook) -> None:
    seen: list[str] = []

    def tracer(frame: Any, event: str, arg: Any) -> None:
        seen.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with hook.active(Note(hook)):
            seen.clear()
            exec("v = 1", {})
            first = seen[:1]
    finally:
        sys.settrace(before)
    assert first == ["<module>"]
