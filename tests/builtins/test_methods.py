"""All methods of the built-in types, with operands of every kind, right ones and wrong ones.

The names are those that `dir()` gives.  A pure operation on known operands must be captured whole;
`MAY_BREAK` says which methods are something else, and why capture stops there.
"""

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dynacap.testing import Scenario, call, check_scenario
from dynacap.testing.check import NOTHING_TO_CAPTURE
from tests.builtins import calls

X = torch.arange(3.0)
# what shows an address, or cannot be known: stops capture wherever it is met
ALWAYS = {NOTHING_TO_CAPTURE, "address"}
MAY_BREAK: dict[str, set[str]] = {
    "__dir__": {"unsupported-call"},
    "__sizeof__": {"unsupported-call"},
    "__reduce__": {"unsupported-call", "bad-arguments"},
    "__reduce_ex__": {"unsupported-call"},
    "__getstate__": {"unsupported-call"},
    "__setattr__": {"unsupported-field"},  # of __class__
    "__delattr__": {"unsupported-field"},
    "__class_getitem__": {"class-item"},  # of what can change
    "pop": {"set-order"},  # a set from outside knows where it last popped
}
WITH_TENSORS = {
    "tensor-print", "data-dependent-value", "data-dependent-branch", "address", "not-constant",
    "fake-tensor-error", "unsupported-call", "class-item", "bad-arguments", NOTHING_TO_CAPTURE,
}  # fmt: skip


def rows() -> Iterator[tuple[str, str, str]]:
    """Types, the names of their methods, and a receiver: what all inherit, for two of them."""
    for kind, receivers in calls.RECEIVERS.items():
        owner = getattr(builtins, kind)
        for index, name in enumerate(dir(owner)):
            inherited = getattr(owner, name) == getattr(owner.__mro__[1], name, None)
            if calls.EVERYTHING:
                yield from ((kind, name, receiver) for receiver in receivers)
            elif not inherited or kind in ("int", "list"):
                yield kind, name, receivers[index % 2 if kind != "bytearray" else 0]


def check(build: Callable[[], Scenario], allowed: set[str]) -> None:
    """Compiled is eager, and capture stops for no other reason."""
    outcome = check_scenario(build)
    reasons = {reason.split(":")[0] for reason in outcome.reasons}
    assert reasons <= allowed, outcome.reasons


def breaks_of(kind: str, name: str) -> set[str]:
    """Why capture may stop in a method: those of bytearray all run as they are."""
    whole = ALWAYS | MAY_BREAK.get(name, set())
    if (kind, name) == ("bool", "__invert__"):
        whole = whole | {"warning"}  # since 3.12
    return whole | {"unsupported-call", "not-constant"} if kind == "bytearray" else whole


@pytest.mark.parametrize(("kind", "name", "receiver"), list(rows()))
def test_on_objects_made_inside(kind: str, name: str, receiver: str) -> None:
    made = [f"a.{name}({operands})" for operands in calls.operands_of(kind, name)]
    function = calls.program(calls.written([receiver], made), f"{kind}.{name}")
    check(lambda: Scenario(function, [call(X)]), breaks_of(kind, name))


@pytest.mark.parametrize(
    ("kind", "name", "receiver"), list(rows())[:: 1 if calls.EVERYTHING else 3]
)
def test_on_objects_from_outside(kind: str, name: str, receiver: str) -> None:
    def given() -> list[Any]:
        return [
            calls.evaluated(receiver, operands, X) for operands in calls.operands_of(kind, name)
        ]

    function = calls.program(calls.given(name, given()), f"{kind}.{name}")
    check(lambda: Scenario(function, [call(X, given())]), breaks_of(kind, name))


@pytest.mark.parametrize("kind", calls.RECEIVERS)
def test_on_tensors(kind: str) -> None:
    receiver = calls.RECEIVERS[kind][0]
    names = [name for name in dir(getattr(builtins, kind)) if name not in MAY_BREAK]
    for name in names:
        made = [f"a.{name}({operands})" for operands in calls.TENSORS]
        function = calls.program(calls.written([receiver], made), f"{kind}.{name}")
        check(lambda: Scenario(function, [call(X)]), WITH_TENSORS)  # noqa: B023, called at once
