"""The guard on torch's state, of the process or of a thread, notices each change of it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch._functorch.vmap import vmap_increment_nesting
from torch.autograd.forward_ad import dual_level
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from dynacap.guards import Checker, GuardSet, Local, ProcessState, Tensor

X = Local(0, "x")


class FunctionMode(TorchFunctionMode):
    pass


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def deterministic(warn_only: bool) -> Iterator[None]:
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


@contextlib.contextmanager
def default_device(name: str) -> Iterator[None]:
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


STATES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "plain": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "autocast to half": lambda: torch.autocast("cpu", dtype=torch.float16),
    "autocast without cache": lambda: torch.autocast("cpu", cache_enabled=False),
    "double": lambda: default_dtype(torch.float64),
    "deterministic": lambda: deterministic(False),
    "deterministic, warning": lambda: deterministic(True),
    "meta by default": lambda: default_device("meta"),
    "with meta": lambda: torch.device("meta"),
    "cpu by default": lambda: default_device("cpu"),
    "function mode": FunctionMode,
    "dispatch mode": DispatchMode,
    "no torch functions": torch._C.DisableTorchFunction,
    "no torch functions of subclasses": torch._C.DisableTorchFunctionSubclass,
    "vmap": lambda: vmap_increment_nesting(2, "error"),
    "forward-mode gradients": dual_level,
}
ALIKE = {("meta by default", "with meta"), ("with meta", "meta by default")}
NEVER_TWICE = ("function mode", "dispatch mode")  # each use is a mode of its own


@pytest.mark.parametrize("with_tensor", [True, False])
@pytest.mark.parametrize("name", STATES)
def test_every_state_is_told_from_every_other(
    make_checker: Callable[..., Checker], name: str, with_tensor: bool
) -> None:
    tensor = torch.zeros(2)
    with STATES[name]():
        guards = GuardSet([ProcessState.current()])
        if with_tensor:
            guards.add(Tensor.of(X, tensor))
        checker = make_checker(guards)
        for _ in range(3):
            assert checker.check((tensor,)) == ()
    for other, state in STATES.items():
        expected = (other == name and name not in NEVER_TWICE) or (name, other) in ALIKE
        with state():
            for _ in range(3):
                found = checker.check((tensor,))
            failure = checker.explain((tensor,))
        assert (found is not None) == expected, other
        assert (failure is None) == expected
        if name not in NEVER_TWICE:
            with STATES[name]():
                assert checker.check((tensor,)) == ()


def test_made_elsewhere_than_used(make_checker: Callable[..., Checker]) -> None:
    """The state that counts is that at the check, not that in which the checker was made."""
    tensor = torch.zeros(2)
    guards = GuardSet([ProcessState.current(), Tensor.of(X, tensor)])
    for make_in in STATES.values():
        with make_in():
            checker = make_checker(guards)
        for _ in range(3):
            assert checker.check((tensor,)) == ()
        with torch.no_grad():
            assert checker.check((tensor,)) is None


def test_state_of_another_thread(make_checker: Callable[..., Checker]) -> None:
    checker = make_checker(GuardSet([ProcessState.current()]))
    assert checker.check(()) == ()
    found: list[object] = []

    def run() -> None:
        found.append(checker.check(()))
        with torch.no_grad():
            found.append(checker.check(()))

    with torch.no_grad():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert checker.check(()) is None
    assert found == [(), None]


def test_explained(make_checker: Callable[..., Checker]) -> None:
    checker = make_checker(GuardSet([ProcessState.current()]))
    with torch.no_grad():
        text = str(checker.explain(()))
    assert text == (
        "expected that torch's state is as at capture: grad_mode=True, "
        "default_dtype=torch.float32; found grad_mode=False"
    )


def test_under_modes_a_tensor_guard_alone_asks_no_state(
    make_checker: Callable[..., Checker],
) -> None:
    tensor, other = torch.zeros(2), torch.zeros(3)
    checker = make_checker(GuardSet([Tensor.of(X, tensor)]))
    for state in STATES.values():
        with state():
            for _ in range(3):
                assert checker.check((tensor,)) == ()
                assert checker.check((other,)) is None
