"""What interrupts a running graph meets the program's own handlers, and leaves torch as it was."""

import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import dynacap


class Alarm(Exception):
    """What a handler of signals raises."""


state: dict[str, Any] = {"raise": None, "log": []}


@torch.library.custom_op("tests::interrupted", mutates_args=())
def interrupted(x: Tensor) -> Tensor:
    if state["raise"] is Alarm:
        signal.raise_signal(signal.SIGUSR1)
    elif state["raise"]:
        raise state["raise"]
    return x.clone()


@interrupted.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


interrupted.register_autograd(lambda ctx, grad: grad)


def on_signal(number: int, frame: object) -> None:
    raise Alarm(number)


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, on_signal)
    yield
    state["raise"] = None
    signal.signal(signal.SIGUSR1, before)


def inner(x: Tensor) -> Tensor:
    try:
        dynacap.graph_break()
        return interrupted(x * 2)
    finally:
        state["log"].append("inner")


def caught(x: Tensor) -> Any:
    try:
        with torch.no_grad():
            y = inner(x + 1)
        return y, "through"
    except (KeyboardInterrupt, Alarm) as error:
        state["log"].append(type(error))
        return x, repr(error), type(error.__context__)
    finally:
        state["log"].append("outer")


def in_a_handler(x: Tensor) -> Any:
    try:
        raise ValueError(1)
    except ValueError:
        with torch.enable_grad():
            dynacap.graph_break()
            x = interrupted(x) + 1
        return x


def behind_a_condition(x: Tensor) -> Any:
    out = [x]
    try:
        if x.sum() > 0:
            out.append(interrupted(x + len(out)))
    except BaseException as error:
        out.append(type(error))
        raise
    finally:
        state["log"] += out[1:]
    return x


def observed(run: Any, kind: Any) -> Any:
    """What comes of a call that is interrupted so, and of one that is not."""
    seen: list[Any] = []
    for state["raise"] in (None, kind, kind, None):
        state["log"] = []
        x = torch.ones(2, requires_grad=True)
        try:
            seen.append(run(x))
        except BaseException as error:
            seen.append((repr(error), repr(error.__context__)))
        seen += [state["log"], torch.is_grad_enabled(), torch.is_inference_mode_enabled()]
    return [entry.tolist() if isinstance(entry, Tensor) else str(entry) for entry in seen]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Alarm])
@pytest.mark.parametrize("function", [caught, in_a_handler, behind_a_condition])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_interruptions(function: Any, kind: Any, backend: str) -> None:
    expected = observed(function, kind)
    captured = dynacap.compile(function, backend=backend)
    assert observed(captured, kind) == expected
    assert observed(captured, kind) == expected
