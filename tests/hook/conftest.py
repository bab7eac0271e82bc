"""The hooks that are present, one after the other."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynacap import hook as hooks, log
from dynacap.hook import Hook, choose_hook, protocol
from dynacap.hook.functions import SEARCH_AFTER

Function = Callable[..., Any]


def _present(kind: str) -> bool:
    try:
        choose_hook(kind)
    except ImportError:
        return False
    return True


KINDS = [
    pytest.param("settrace"),
    pytest.param(
        "pep523",
        marks=[
            pytest.mark.cc,
            pytest.mark.skipif(not _present("pep523"), reason="the C extension is not built"),
        ],
    ),
]


@pytest.fixture(params=KINDS)
def hook(request: pytest.FixtureRequest) -> Iterator[Hook]:
    """Each hook; whatever a test does to it is undone."""
    chosen = choose_hook(request.param)
    assert not chosen.is_active()
    yield chosen
    assert not chosen.is_active(), "the test left the hook active"
    chosen.reset()
    # Other tests of this process may run compiled code, whose suspensions must be known again.
    api = sys.modules.get("dynacap.suspend")
    hooks.set_suspend_type(None if api is None else api.Suspend)
    log.forget_warnings()


class Replace:
    """A callback that has one function's frames replaced and notes what it was asked about."""

    def __init__(self, function: Function, instead: Function | None) -> None:
        self.function = function
        self.instead = instead
        self.asked: list[Function] = []

    def __call__(self, function: Function) -> Function | protocol.Never | None:
        self.asked.append(function)
        return self.instead if function is self.function else None


@pytest.fixture
def replace(hook: Hook) -> Callable[[Function, Function], Replace]:
    """Make a :class:`Replace` whose function is dispatched from its next call on, by any hook.

    A hook that cannot replace the running frame sees some calls first; ``first`` makes one.
    """

    def make(function: Function, instead: Function, first: Function | None = None) -> Replace:
        callback = Replace(function, instead)
        if not hook.capabilities.replaces_running_frame:
            with hook.active(Replace(function, lambda *flat: None)):
                for _ in range(SEARCH_AFTER):
                    (first or function)()
        return callback

    return make
