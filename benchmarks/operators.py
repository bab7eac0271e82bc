"""The operators of torch's own list of samples, `op_db`, compiled and held to eager."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

import dynacap
from dynacap.backends.native import backend as native
from dynacap.backends.native.loops.program import Call
from dynacap.backends.native.lowering import lower
from dynacap.backends.verify.compare import differences
from dynacap.backends.verify.copies import copied
from dynacap.backends.verify.exact import run_in_float64
from dynacap.backends.verify.run import Run, run
from dynacap.config import config

DTYPE = torch.float32
ENGINE: Any = dynacap  # its names are loaded when they are asked for

# Their results hold whatever was in the memory, so that only the facts beside the numbers count.
UNDEFINED = frozenset(
    """empty empty_like empty_permuted empty_strided new_empty new_empty_strided""".split()
)


@dataclass
class Verdict:
    """What became of one operator: its samples, how they were captured, and what went wrong.

    `called` are the ATen operators that were called as they are; with none the graphs were lowered.
    `eager` says why graphs were run by their own Python code.
    """

    name: str
    samples: int = 0
    graphs: int = 0
    called: list[str] = field(default_factory=list)
    eager: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Where it counts in the totals."""
        if self.problems:
            return "failing"
        if not self.graphs:
            return "not captured"
        if self.eager:
            return "eager"
        return "called" if self.called else "lowered"


def operators() -> dict[str, Any]:
    """Every operator that runs on the CPU in float32, by name and variant."""
    return {
        f"{op.name}:{op.variant_test_name}".rstrip(":"): op
        for op in op_db
        if DTYPE in op.supported_dtypes("cpu")
    }


def samples_of(op: Any, limit: int | None = None) -> Iterator[Any]:
    """The samples that the list ships, the same ones each time; they want gradients if it can."""
    torch.manual_seed(0)
    differentiable = op.supports_autograd and DTYPE in op.supported_backward_dtypes("cpu")
    made = op.sample_inputs("cpu", DTYPE, requires_grad=differentiable)
    return itertools.islice(made, limit)


def judge(
    name: str,
    op: Any,
    backend: str,
    limit: int | None = None,
    before_each: Callable[[], object] = lambda: None,
) -> Verdict:
    """Run an operator's samples, eager and compiled."""
    verdict = Verdict(name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(config.patch(raise_internal_errors=True))
        called, eager = stack.enter_context(watched())
        warnings.simplefilter("ignore")
        for number, sample in enumerate(samples_of(op, limit)):
            verdict.samples += 1
            before_each()
            told = [f"sample {number}: {line}" for line in problems(op, sample, backend)]
            verdict.problems += told[:2]
            verdict.graphs += ENGINE.counters()["graphs"]
            ENGINE.reset()
    verdict.called, verdict.eager = sorted(called), sorted(eager)
    return verdict


def problems(op: Any, sample: Any, backend: str) -> list[str]:
    """How compiled differs from eager on one sample: results, gradients, inputs, random stream."""
    flat, shape = tree_flatten((sample.input, sample.args, sample.kwargs))

    def calling(function: Callable[..., Any]) -> Callable[..., list[Any]]:
        def call(*values: Any) -> list[Any]:
            first, args, kwargs = tree_unflatten(values, shape)
            result = sample.output_process_fn_grad(function(first, *args, **kwargs))
            return tree_flatten(result)[0]

        return call

    def operator(*args: Any, **kwargs: Any) -> Any:
        return op.op(*args, **kwargs)

    expected = run(calling(op.op), copied(flat))
    found = run(calling(ENGINE.compile(operator, backend=backend)), copied(flat))
    if op.name in UNDEFINED:
        forget_numbers(expected, found)
    told = differences(expected, found)
    if told and expected.error is None and found.error is None:
        told = differences(expected, found, run_in_float64(calling(op.op), flat))
    return told


def forget_numbers(*runs: Run) -> None:
    """Keep of the results what they are, not what they hold."""
    for one in runs:
        for value in one.outputs:
            value.detach().zero_()


@contextlib.contextmanager
def watched() -> Iterator[tuple[set[str], set[str]]]:
    """Of the graphs that the native backend gets meanwhile: the ATen operators that are called, and
    why graphs run eagerly."""
    called: set[str] = set()
    eager: set[str] = set()

    def watching(graph: Any, **options: Any) -> Any:
        program = lower(graph, **options)
        called.update(str(step.target) for step in program.steps if isinstance(step, Call))
        return program

    with (
        mock.patch.object(native, "lower", watching),
        mock.patch.object(native, "warn_eager", eager.add),
        mock.patch.object(native, "find_note", return_value=None),  # of a graph that is lowered
    ):
        yield called, eager
