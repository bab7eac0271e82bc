"""Which hook serves, why, and what happens without the C extension."""

import os
import subprocess
import sys
from typing import Any

import pytest

from dynacap import hook as hooks
from dynacap.config import config
from dynacap.hook import Hook, choose_hook

WITHOUT = "import sys; sys.modules['dynacap.hook._chook'] = None\n"


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_same_object_each_time() -> None:
    assert choose_hook("settrace") is choose_hook("settrace")
    assert choose_hook(None) is choose_hook(config.hook)
    with config.patch(hook="settrace"):
        assert choose_hook().name == "settrace"


def test_says_why(hook: Hook) -> None:
    assert hook.reason


def test_unknown_kind() -> None:
    with pytest.raises(ValueError, match="auto, pep523, settrace"):
        choose_hook("magic")


def test_asked_for_and_missing_is_loud() -> None:
    done = run(
        WITHOUT + "from dynacap.hook import choose_hook; choose_hook()", DYNACAP_HOOK="pep523"
    )
    assert done.returncode == 1
    assert "pep523 was asked for" in done.stderr
    assert "C compiler" in done.stderr


def test_fallback_is_logged_once() -> None:
    code = (
        "from dynacap.hook import choose_hook\n"
        "for _ in range(3): hook = choose_hook()\n"
        "print(hook.name, hook.reason)"
    )
    done = run(WITHOUT + code, DYNACAP_HOOK="auto")
    assert done.stdout.startswith("settrace the C extension cannot be imported")
    assert done.stderr.count("no C frame hook") == 1


def test_environment_chooses() -> None:
    code = "from dynacap.hook import choose_hook; print(choose_hook().name)"
    assert run(code, DYNACAP_HOOK="settrace").stdout == "settrace\n"


def test_both_have_the_whole_protocol(hook: Hook) -> None:
    names = [name for name in vars(Hook) if not name.startswith("_")]
    assert len(names) > 10
    assert [name for name in names if not callable(getattr(hook, name))] == []


def test_compiled_function_of_the_chosen_hook() -> None:
    def f(x: Any) -> Any: ...

    table: Any = lambda function, x: (function, x)  # noqa: E731
    for kind in ("settrace", "auto"):
        with config.patch(hook=kind):
            assert hooks.make_compiled_function(f, table)(1) == (f, 1)


def test_suspend_type_of_every_hook(hook: Hook) -> None:
    def f(x: Any) -> Any: ...

    table: Any = lambda function, x: complex(x)  # noqa: E731
    compiled = hook.compiled_function(f, table, lambda result: "finished")
    hooks.set_suspend_type(complex)
    assert compiled(1) == "finished"
    hooks.set_suspend_type(None)
    assert compiled(1) == 1 + 0j


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_child_of_a_fork() -> None:
    code = """
import os, sys, threading
from dynacap.hook import choose_hook
hook = choose_hook()
ready, done = threading.Event(), threading.Event()
def other():
    with hook.active(lambda function: None):
        ready.set(); done.wait()
thread = threading.Thread(target=other); thread.start(); ready.wait()
def user(): return 1
asked = []
pid = os.fork()
if pid == 0:
    with hook.active(lambda function: asked.append(function.__name__)):
        user()
    extension = sys.modules.get('dynacap.hook._chook')
    installed = extension is not None and extension.is_installed()
    os._exit(0 if 'user' in asked and not installed else 1)
done.set(); thread.join()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
    assert run(code).stdout == "0\n"
