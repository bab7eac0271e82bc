"""Every model of the zoo, compiled, gives eager's results; most are one graph.

`torch_baseline.json` holds what `torch.compile(backend="eager")` makes of the same models; it is
written by `python benchmarks/bench_models.py --only torch --baseline`.
"""

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from zoo import ZOO
from zoo.run import Result, measure, modes

import dynacap

ENGINE: Any = dynacap
BASELINE: dict[str, Any] = json.loads((Path(__file__).parent / "torch_baseline.json").read_text())[
    "models"
]
EVERY = [(entry.name, mode) for entry in ZOO.values() for mode in modes(entry)]
WHOLE_SHARE = 0.9

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    ENGINE.reset()


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what was measured, one for all processes of the run."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    (folder / "models").mkdir(exist_ok=True)
    return folder / "models"


def result_of(measured: Path, name: str, mode: str) -> Result:
    """The measurement of one model, made once for all tests."""
    kept = measured / f"{name} {mode}"
    if not kept.exists():
        made = measure(ZOO[name], mode, compile_eager, lambda: dict(ENGINE.counters()))
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(dataclasses.asdict(made)))
        part.rename(kept)
    return Result(**json.loads(kept.read_text()))


def compile_eager(function: Any) -> Any:
    return ENGINE.compile(function, backend="eager")


@pytest.mark.parametrize(("name", "mode"), EVERY)
def test_model_gives_eagers_results(measured: Path, name: str, mode: str) -> None:
    result = result_of(measured, name, mode)
    assert result.right, "\n".join(result.problems)
    assert result.graphs > 0, f"nothing was captured: {result.reasons}"


def test_baseline_covers_the_zoo() -> None:
    assert set(BASELINE) == {f"{name} {mode}" for name, mode in EVERY}


def test_most_are_whole_where_torch_compile_makes_them_whole(measured: Path) -> None:
    """At least nine in ten of those that torch.compile takes whole break nowhere here."""
    theirs = [
        label
        for label, facts in BASELINE.items()
        if facts["right"] and facts["graphs"] > 0 and not facts["breaks"]
    ]
    broken = {}
    for label in theirs:
        result = result_of(measured, *label.split(" "))
        if result.breaks or result.skipped or result.graphs > BASELINE[label]["graphs"]:
            broken[label] = (result.graphs, result.breaks, result.skipped, result.reasons)
    assert len(broken) <= (1 - WHOLE_SHARE) * len(theirs), broken


def test_every_break_has_a_reason(measured: Path) -> None:
    for name, mode in EVERY:
        result = result_of(measured, name, mode)
        assert sum(result.reasons.values()) >= result.breaks, f"{name} {mode}: {result.reasons}"
