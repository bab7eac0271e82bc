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
    together: int = 1,
) -> Verdict:
    """Run an operator's samples, eager and compiled, ``together`` in one graph.

    Samples that make no single graph together, or do not give what eager gives, are judged alone.
    """
    verdict = Verdict(name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(config.patch(raise_internal_errors=True))
        warnings.simplefilter("ignore")
        samples = samples_of(op, limit)
        while some := list(itertools.islice(samples, together)):
            before_each()
            attempt = _attempt(op, some, backend)
            if len(some) == 1 or attempt.is_one_graph:
                attempt.add_to(verdict, len(some))
                continue
            together = 1  # the rest of them will hardly make one either
            for sample in some:
                before_each()
                _attempt(op, [sample], backend).add_to(verdict, 1)
    return verdict


@dataclass
class _Attempt:
    """What became of some samples that were run together."""

    graphs: int
    called: set[str]
    eager: set[str]
    problems: list[str]

    @property
    def is_one_graph(self) -> bool:
        return self.graphs == 1 and not self.eager and not self.problems

    def add_to(self, verdict: Verdict, samples: int) -> None:
        at = verdict.samples
        verdict.samples += samples
        verdict.graphs += self.graphs
        verdict.called = sorted({*verdict.called, *self.called})
        verdict.eager = sorted({*verdict.eager, *self.eager})
        verdict.problems += [f"sample {at}: {line}" for line in self.problems[:2]]


def _attempt(op: Any, samples: list[Any], backend: str) -> _Attempt:
    with watched() as (called, eager):
        told = problems(op, samples, backend)
    made = _Attempt(ENGINE.counters()["graphs"], called, eager, told)
    ENGINE.reset()
    return made


def problems(op: Any, samples: list[Any], backend: str) -> list[str]:
    """How compiled differs from eager on samples: results, gradients, inputs, random stream."""
    given = [(sample.input, sample.args, sample.kwargs) for sample in samples]
    flat, shape = tree_flatten(given)

    def calling(function: Callable[..., Any]) -> Callable[..., list[Any]]:
        def call(*values: Any) -> list[Any]:
            results = function(tree_unflatten(values, shape))
            pairs = zip(samples, results, strict=True)
            return tree_flatten([one.output_process_fn_grad(result) for one, result in pairs])[0]

        return call

    def operator(given: Any) -> Any:
        return [op.op(first, *args, **kwargs) for first, args, kwargs in given]

    expected = run(calling(operator), copied(flat))
    found = run(calling(ENGINE.compile(operator, backend=backend)), copied(flat))
    if op.name in UNDEFINED:
        forget_numbers(expected, found)
    told = differences(expected, found)
    if told and expected.error is None and found.error is None:
        told = differences(expected, found, run_in_float64(calling(operator), flat))
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
