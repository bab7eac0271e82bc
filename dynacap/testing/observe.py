"""Run a sequence of calls and note everything about each that a program could see."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import pickle
import random
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dynacap.testing.snapshot import Branch, Leaf, Node, Snapshot, deep_recursion, without_addresses

__all__ = ["Call", "Scenario", "call", "observe"]

AnyFunction = Callable[..., Any]
SEED = 1234


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


def call(*args: Any, **kwargs: Any) -> Call:
    """The arguments of one call, written as in a call."""
    return Call(args, kwargs)


@dataclass
class Scenario:
    """A function, the calls made to it, and what happens around them.

    `before(i)` runs uncompiled before call i, to change the world; `after(i, result)` runs
    uncompiled after it, and what it returns is compared too. `watch` is called for further objects
    to compare.
    """

    function: AnyFunction
    calls: Sequence[Call]
    before: Callable[[int], None] | None = None
    after: Callable[[int, Any], Any] | None = None
    watch: Callable[[], Any] | None = None
    backward: bool = True


def observe(
    scenario: Scenario, compile: Callable[[AnyFunction], AnyFunction] | None = None
) -> list[Branch]:
    """Make the scenario's calls, compiled if `compile` is given, and describe each one.

    The last entry looks back over all calls together: it shows objects or memory that one call
    shares with another.
    """
    seed_everything()
    target = compile(scenario.function) if compile else scenario.function
    steps: list[Branch] = []
    results: list[Any] = []
    for index, made in enumerate(scenario.calls):
        if scenario.before:
            scenario.before(index)
        step, result = observe_call(scenario, target, made, index)
        steps.append(step)
        results.append(result)
    calls = [(made.args, made.kwargs) for made in scenario.calls]
    taken = Snapshot()
    with deep_recursion():
        whole = taken.parts([(".arguments", calls), (".results", results)], "")
    return [*steps, Branch("all calls", whole)]


def observe_call(
    scenario: Scenario, target: AnyFunction, made: Call, index: int
) -> tuple[Branch, Any]:
    """Make one call; describe all that it did, and give its result."""
    printed, raised, result = io.StringIO(), None, None
    with contextlib.redirect_stdout(printed):
        try:
            result = target(*made.args, **made.kwargs)
        except Exception as error:
            raised = error
            traceback.clear_frames(error.__traceback__)  # what they hold dies now, not some time
    parts: dict[str, Node] = {}
    taken = Snapshot()
    with deep_recursion():
        parts["raised"] = taken.describe(raised, "raised")
        parts["printed"] = Leaf(without_addresses(printed.getvalue()))
        parts |= process_state()
        parts["arguments"] = taken.describe([made.args, made.kwargs], "arguments")
        parts["function"] = taken.describe(scenario.function, "function")
        if scenario.watch:
            parts["watched"] = taken.describe(scenario.watch(), "watched")
        parts["result"] = taken.describe(result, "result")
    if scenario.backward:
        parts["gradients"] = backward(taken)
    if scenario.after:
        parts["after"] = describe_after(scenario.after, index, result)
    raised = None  # the exception, whose traceback has this frame, dies now with all that it holds
    return Branch("call", parts), result


def describe_after(after: Callable[[int, Any], Any], index: int, result: Any) -> Node:
    """What the scenario looks at after a call, or the exception from looking."""
    taken = Snapshot()
    try:
        value = after(index, result)
    except Exception as error:
        value = error
    with deep_recursion():
        return taken.describe(value, "after")


def backward(taken: Snapshot) -> Node:
    """Send a fixed gradient back from every result; describe the gradients that arrive."""
    with torch._C.DisableTorchFunctionSubclass():
        return _backward(taken)


def _backward(taken: Snapshot) -> Node:
    wanted = [
        tensor
        for path, tensor in taken.tensors
        if path.startswith("result") and tensor.requires_grad and not tensor.is_complex()
    ]
    problem: Exception | None = None
    if wanted:
        seeds = [
            torch.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape) for t in wanted
        ]
        try:
            torch.autograd.backward(wanted, seeds)
        except Exception as error:
            problem = error
    found = Snapshot()
    leaves = [(path, t.grad) for path, t in taken.tensors if t.is_leaf and t.grad is not None]
    with deep_recursion():
        parts = {f".{path}": found.describe(grad, path) for path, grad in leaves}
        parts[".problem"] = found.describe(problem, "problem")
    return Branch("gradients", parts)


def process_state() -> dict[str, Node]:
    """State of the process that a call may have moved."""
    streams = [random.getstate(), np.random.get_state(), torch.get_rng_state().numpy().tobytes()]
    names = ("random", "numpy.random", "torch.random")
    digests = [hashlib.sha256(pickle.dumps(stream)).hexdigest()[:12] for stream in streams]
    state: dict[str, Node] = {name: Leaf(d) for name, d in zip(names, digests, strict=True)}
    state["grad mode"] = Leaf(torch.is_grad_enabled())
    state["inference mode"] = Leaf(torch.is_inference_mode_enabled())
    state["autocast"] = Leaf(torch.is_autocast_enabled("cpu"))
    state["default dtype"] = Leaf(str(torch.get_default_dtype()))
    state["function modes"] = Leaf(torch._C._len_torch_function_stack())
    return state


def seed_everything() -> None:
    """Start all random streams at one place."""
    random.seed(SEED)
    np.random.seed(SEED)
    torch.manual_seed(SEED)


def copied(function: AnyFunction, calls: Sequence[Call]) -> Scenario:
    """A scenario on copies, so that one run leaves nothing behind for another."""
    shared: dict[int, Any] = {}
    with deep_recursion():
        own = copy.deepcopy(function, shared)
        return Scenario(own, [copy.deepcopy(made, shared) for made in calls])
