"""Other frame evaluators (a debugger's, torch's) keep their place above and below ours."""

import ctypes
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dynacap.hook import Hook

SOURCE = Path(__file__).parent / "counting_evaluator.c"
CC = shutil.which("cc") or shutil.which("gcc")
pytestmark = [pytest.mark.cc, pytest.mark.skipif(CC is None, reason="no C compiler")]


class Evaluator:
    """An evaluator in C which counts the frames it sees and hands them on to the one before it."""

    def __init__(self, library: Path) -> None:
        self._c = ctypes.PyDLL(str(library))

    def push(self) -> None:
        """Put it on top of the evaluator of the moment."""
        self._c.push()

    def pop(self) -> None:
        """Put back the one that was there at push()."""
        self._c.pop()

    def is_on_top(self) -> bool:
        """Whether CPython calls it."""
        return bool(self._c.is_on_top())

    def is_default_on_top(self) -> bool:
        """Whether CPython calls its own."""
        return bool(self._c.is_default_on_top())

    def take_count(self) -> int:
        """Frames seen since it was asked last."""
        return int(self._c.take_count())


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The evaluator, compiled."""
    built = tmp_path_factory.mktemp("evaluator") / "counting_evaluator.so"
    include = sysconfig.get_path("platinclude")
    extra = f"-I{sysconfig.get_path('include')}"
    command = [str(CC), "-shared", "-fPIC", f"-I{include}", extra, "-o", str(built), str(SOURCE)]
    subprocess.run(command, check=True)
    return built


@pytest.fixture
def evaluators(library: Path, tmp_path: Path) -> Iterator[tuple[Evaluator, Evaluator]]:
    """Two of them, each with a state of its own."""
    found = []
    for name in ("one.so", "two.so"):
        shutil.copy(library, tmp_path / name)
        found.append(Evaluator(tmp_path / name))
    assert found[0].is_default_on_top()
    yield found[0], found[1]
    assert found[0].is_default_on_top(), "an evaluator was left behind"


Two = tuple[Evaluator, Evaluator]


def user(x: int = 0) -> int:
    return x + 1


@pytest.fixture
def asked() -> list[str]:
    return []


@pytest.fixture
def callback(asked: list[str]) -> Callable[[Any], None]:
    def note(function: Any) -> None:
        asked.append(function.__name__)

    return note


def test_none_is_left(hook: Hook, evaluators: Two, callback: Any) -> None:
    with hook.active(callback):
        user()
        with hook.active(None):
            assert evaluators[0].is_default_on_top()
    assert evaluators[0].is_default_on_top()


def test_one_that_was_there_goes_on(
    hook: Hook, evaluators: Two, callback: Any, asked: list[str]
) -> None:
    first, _ = evaluators
    first.push()
    try:
        with hook.active(callback):
            first.take_count()
            user()
            user()
            assert first.take_count() >= 2
        assert first.is_on_top()
        user()
        assert first.take_count() >= 1
    finally:
        first.pop()
    assert asked.count("user") == 2


def test_replaced_under_another(hook: Hook, evaluators: Two, replace: Callable[..., Any]) -> None:
    first, _ = evaluators
    callback = replace(user, lambda function, x: ("instead", x))
    first.push()
    try:
        with hook.active(callback):
            assert user(1) == ("instead", 1)
    finally:
        first.pop()


def test_one_put_on_top_stays(hook: Hook, evaluators: Two, callback: Any, asked: list[str]) -> None:
    first, _ = evaluators
    with hook.active(callback):
        first.push()
        user()
    assert first.is_on_top()
    user()
    assert asked.count("user") == 1
    with hook.active(callback):
        user()
        assert first.take_count() >= 1
    assert first.is_on_top()
    assert asked.count("user") == 2
    with hook.active(callback):
        user()
        first.pop()
        user()
    assert asked.count("user") == 4


def test_popped_while_inactive(
    hook: Hook, evaluators: Two, callback: Any, asked: list[str]
) -> None:
    first, _ = evaluators
    with hook.active(callback):
        first.push()
    first.pop()
    user()
    with hook.active(callback):
        user()
    assert asked.count("user") == 1


def test_two_on_top_hand_frames_round(
    hook: Hook, evaluators: Two, callback: Any, asked: list[str]
) -> None:
    first, second = evaluators
    with hook.active(callback):
        first.push()
        second.push()
    with hook.active(callback):
        assert user(1) == 2
    second.pop()
    with hook.active(callback):
        assert user(1) == 2
        first.pop()
    assert asked.count("user") >= 2
    with hook.active(callback):
        user()


def test_deep_recursion_under_another(hook: Hook, evaluators: Two, callback: Any) -> None:
    def count(n: int) -> int:
        return 0 if n == 0 else 1 + count(n - 1)

    with hook.active(callback):
        evaluators[0].push()
        try:
            assert count(300) == 300
        finally:
            evaluators[0].pop()
