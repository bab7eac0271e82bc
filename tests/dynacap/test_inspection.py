"""``guards``, ``why`` and ``recompiles``: what entries expect, told in the user's words."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import dynacap
from dynacap.errors import UserError


class Scaled(nn.Module):
    """Two layers and a flag."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.scale = 2.0

    def forward(self, x: Tensor, flag: bool = True) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x * self.scale if flag else x


@pytest.fixture
def model() -> Any:
    compiled = dynacap.compile(Scaled())
    compiled(torch.ones(2, 4))
    return compiled


def test_guards_are_told_along_the_objects(model: Any) -> None:
    report = dynacap.guards(model)
    assert len(report.entries) == 1
    text = str(report)
    for line in (
        "self.layers[1].weight",
        "- is a torch.nn.parameter.Parameter of torch.float32 on cpu, shape (4, 4)",
        "self.scale",
        "- is 2.0",
        "test_inspection.py:",
    ):
        assert line in text


def test_guards_before_any_call() -> None:
    assert str(dynacap.guards(dynacap.compile(Scaled()))).startswith("no entries")


def test_why_an_entry_fits(model: Any) -> None:
    found = dynacap.why(model, torch.ones(2, 4))
    assert found.entry is not None
    assert found.entry.fits
    assert "entry 0 would run" in str(found)


def test_why_no_entry_fits(model: Any) -> None:
    before = dynacap.counters()["graphs"]
    found = dynacap.why(model, torch.ones(2, 4, dtype=torch.float64))
    assert found.entry is None
    assert [f.subject for f in found.matches[0].failures] == ["x"]
    assert "captured anew" in str(found)
    assert "torch.float64" in str(found)
    assert dynacap.counters()["graphs"] == before


def test_why_tells_all_that_fails(model: Any) -> None:
    model.scale = 3.0
    with torch.no_grad():
        found = dynacap.why(model, torch.ones(3, 4))
    subjects = [failure.subject for failure in found.matches[0].failures]
    assert {"x", "self.scale"} <= set(subjects)
    assert len(subjects) == 3


def test_why_takes_functions_methods_and_keywords() -> None:
    class Adder:
        @dynacap.compile
        def add(self, x: Tensor, *, by: int = 1) -> Tensor:
            return x + by

    adder = Adder()
    adder.add(torch.ones(2))
    assert dynacap.why(adder.add, torch.ones(2)).entry is not None
    assert dynacap.why(adder.add, torch.ones(2), by=2).entry is None
    with pytest.raises(TypeError):
        dynacap.why(adder.add, torch.ones(2), over=2)


def test_recompiles_say_what_failed_and_what_it_cost(model: Any) -> None:
    assert str(dynacap.recompiles(model)) == "no recompiles"
    model.scale = 3.0
    model(torch.ones(2, 4))
    model(torch.ones(3, 4))
    report = dynacap.recompiles(model)
    assert len(report) == 2
    assert report.seconds > 0
    assert report.counts == {"self.scale": 1, "x": 1}
    assert [f.subject for f in report.recompiles[1].failures] == ["x", "x"]
    assert "expected that self.scale is 2.0; found 3.0" in str(report)
    assert "test_inspection.py:" in str(report)


def test_a_loop_is_named_by_its_line() -> None:
    def f(x: torch.Tensor) -> list[Any]:
        found = []
        for row in x:
            for number in row[row > 0].tolist():
                torch._dynamo.graph_break()
                found.append(number)
        return found

    compiled = dynacap.compile(f, backend="eager")
    x = torch.tensor([[1.0, 2.0, -1.0], [1.0, -2.0, -1.0]])
    assert compiled(x) == f(x)
    line = f.__code__.co_firstlineno + 3
    report = dynacap.recompiles(compiled)
    assert f"the loop of line {line}" in report.counts
    assert f"expected that the loop of line {line} gives" in str(report)


def test_reset_forgets_recompiles(model: Any) -> None:
    model(torch.ones(2, 4, dtype=torch.float64).float()[:1])
    dynacap.reset()
    assert len(dynacap.recompiles(model)) == 0
    assert not dynacap.guards(model).entries


@pytest.mark.parametrize(
    "ask", [dynacap.why, dynacap.recompiles, dynacap.guards], ids=["why", "recompiles", "guards"]
)
def test_what_is_not_compiled_is_refused(ask: Callable[..., Any]) -> None:
    with pytest.raises(UserError, match=r"it takes what dynacap.compile\(\) returned"):
        ask(Scaled())


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        ((True, False), "set the flag once"),
        (("a", "b", "c"), "keep it the same"),
        ((0.25, 0.5, 0.75), "pass it as a tensor: torch.tensor"),
    ],
)
def test_the_limit_names_the_remedy_that_fits(
    values: tuple[Any, ...], remedy: str, caplog: pytest.LogCaptureFixture
) -> None:
    def chosen(x: Tensor, value: Any) -> Tensor:
        return x + 1 if value in (True, "a", 0.25) else x - 1

    compiled = dynacap.compile(chosen)
    with dynacap.config.patch(recompile_limit=1):
        for value in values:
            compiled(torch.ones(2), value)
    assert len(caplog.records) == 1
    assert remedy in caplog.records[0].message
