"""What was compiled goes when its owner goes, and `reset()` frees everything."""

import gc
import itertools
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap

ENGINE: Any = dynacap
PAGE = os.sysconf("SC_PAGE_SIZE")
pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    ENGINE.reset()


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


def compiled(function: Any) -> Any:
    return ENGINE.compile(function, backend="eager")


def test_dropped_model_is_freed() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    seen: list[weakref.ref[Any]] = [weakref.ref(model), weakref.ref(model[0].weight)]
    target = compiled(model)
    target(torch.ones(2, 3))
    target(torch.ones(4, 3))
    del model, target
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_dropped_function_frees_what_its_closure_held() -> None:
    held = torch.ones(5)
    seen = weakref.ref(held)

    def make(tensor: Tensor) -> Any:
        return compiled(lambda x: x + tensor)

    target = make(held)
    target(torch.ones(5))
    del target, held
    gc.collect()
    assert seen() is None


def test_arguments_and_results_are_not_kept() -> None:
    target = compiled(lambda x, box: x * box["k"] + 1)
    x, tensor = torch.ones(3), torch.ones(3)
    seen = [weakref.ref(x), weakref.ref(tensor)]
    result = target(x, {"k": tensor})
    seen.append(weakref.ref(result))
    del x, tensor, result
    gc.collect()
    assert [ref() for ref in seen] == [None, None, None]


def test_nothing_is_kept_after_a_break() -> None:
    def function(x: Tensor) -> Tensor:
        y = x + 1
        print("between")
        return y * 2

    target = compiled(function)
    x = torch.ones(3)
    seen = [weakref.ref(x), weakref.ref(target(x))]
    del x
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


class Names(dict[str, Any]):
    """Globals of a kind of their own."""


def test_globals_made_for_one_run_are_not_kept_after_a_break() -> None:
    def function(x: Tensor) -> Tensor:
        print("between")
        return x * 2

    def run() -> weakref.ref[Names]:
        names = Names(print=print)
        target([FunctionType(function.__code__, names)], torch.ones(3))
        return weakref.ref(names)

    def calls(functions: list[Any], x: Tensor) -> Any:
        print("before")
        return functions.pop()(x)

    target = compiled(calls)

    seen = [run() for _ in range(3)]
    gc.collect()
    assert [ref() for ref in seen] == [None, None, None]


def test_entry_goes_when_a_guarded_object_dies() -> None:
    def function(x: Tensor, module: Any) -> Any:
        return module(x)

    target = compiled(function)
    module = nn.Linear(3, 3)
    seen = weakref.ref(module)
    target(torch.ones(2, 3), module)
    del module
    gc.collect()
    assert seen() is None


def test_models_of_one_class_share_no_limit() -> None:
    models = [nn.Sequential(nn.Linear(2, 2)) for _ in range(20)]
    before = ENGINE.counters()["graphs"]
    for model in models:
        compiled(model)(torch.ones(1, 2))
    assert ENGINE.counters()["graphs"] - before == len(models)


@pytest.mark.slow
def test_recompiles_and_resets_do_not_grow_memory() -> None:
    """Two hundred rounds here; `benchmarks/soak.py` does two thousand.

    A leak grows in each third of them; a cache of torch's or sympy's that fills up does not.
    """

    def round_trip(number: int) -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        target = compiled(model)
        function = compiled(lambda x, k: (x * k).sum(0))
        for size in (1, 2, 3):
            target(torch.ones(size, 4))
            function(torch.ones(size), size)
        if number % 2:
            ENGINE.reset()

    samples = []
    for number in range(250):
        round_trip(number)
        if number in (49, 116, 183, 249):
            ENGINE.reset()
            gc.collect()
            samples.append((resident_mib(), len(gc.get_objects())))
    grown = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(samples)]
    assert min(objects for _, objects in grown) < 650
    assert min(memory for memory, _ in grown) < 7
