"""The collector is off while frames are captured, on while a backend works, then as before."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch

import dynacap
from dynacap.backends.collector import resting, working

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def on_again() -> Iterator[None]:
    yield
    gc.enable()


@pytest.mark.parametrize("before", [True, False])
def test_a_backend_works_with_it_as_it_was(before: bool) -> None:
    seen: list[bool] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append(gc.isenabled())
        return graph

    (gc.enable if before else gc.disable)()
    dynacap.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert seen == [before]
    assert gc.isenabled() is before


def test_it_is_on_again_after_a_failure() -> None:
    def backend(graph: Any, inputs: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(dynacap.BackendCompilerFailed):
        dynacap.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert gc.isenabled()


def test_compilations_that_end_in_any_order() -> None:
    """As threads may: the first to rest ends first, while the second works."""
    first, second, work = resting(), resting(), working()
    first.__enter__()
    second.__enter__()
    assert not gc.isenabled()
    work.__enter__()
    assert gc.isenabled()
    first.__exit__(None, None, None)
    work.__exit__(None, None, None)
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
