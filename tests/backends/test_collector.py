"""The collector is off while frames are captured, on while a backend works, then as before."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dynacap
from dynacap.backends.collector import resting, working
from dynacap.backends.native import backend as native

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


@pytest.mark.cc
def test_native_rests_in_both_passes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[bool] = []
    lower: Any = vars(native)["lower"]

    def noted(graph: Any, **options: Any) -> Any:
        seen.append(gc.isenabled())
        return lower(graph, **options)

    monkeypatch.setattr(native, "lower", noted)
    x = torch.ones(2, requires_grad=True)
    with dynacap.config.patch(cache_dir=str(tmp_path / "cache")):  # where nothing is known yet
        dynacap.compile(lambda x: (x * 3.5).cos(), backend="native")(x).sum().backward()
    assert seen == [False, False]
    assert gc.isenabled()


def _collected(threshold: int) -> list[int]:
    """The generations that are collected at the end of a rest, and when the program goes on."""
    found: list[int] = []

    def tell(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    before = gc.get_threshold()
    gc.enable()
    gc.collect()
    gc.set_threshold(threshold, 1, before[2])
    for _ in range(2):
        gc.collect(0)  # so that it is time for the next generation
    gc.callbacks.append(tell)
    try:
        with resting():
            made = [[each] for each in range(5 * max(threshold, 100))]
        assert made
    finally:
        gc.callbacks.remove(tell)
        gc.set_threshold(*before)
    return found


def test_what_was_made_meanwhile_is_collected_by_itself() -> None:
    assert _collected(700) == [0]


def test_a_program_that_wants_no_collections_has_none() -> None:
    assert _collected(0) == []
