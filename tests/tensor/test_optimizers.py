"""Every optimizer of torch with its step compiled: parameters and states as eager leaves them."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn, optim

import dynacap

Step = Callable[..., Any]

NAMES = [
    name
    for name, cls in vars(optim).items()
    if isinstance(cls, type)
    and issubclass(cls, optim.Optimizer)
    and name not in ("Optimizer", "SparseAdam")  # the latter wants sparse gradients
]
WHOLE_UPDATE = sorted({*NAMES} - {"Adagrad", "Adafactor", "LBFGS"})  # those read numbers of tensors
LOOPS = [{"foreach": False}, {"foreach": True}]


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()


def trained(name: str, wrap: Callable[[Step], Step], **options: Any) -> Any:
    """Losses, parameters and states after four steps with a learning rate that falls."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8, bias=False), nn.Tanh(), nn.Linear(8, 2, bias=False))
    x = torch.randn(5, 4)
    optimizer = getattr(optim, name)(model.parameters(), **options)
    plan = optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    step = wrap(optimizer.step)
    losses: list[Tensor] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(x).square().sum()
        loss.backward()
        losses.append(loss.detach())
        return loss

    for _ in range(4):
        if name == "LBFGS":
            step(closure)
        else:
            closure()
            step()
        plan.step()
    states = [{k: v for k, v in state.items() if k != "func_evals"} for state in _states(optimizer)]
    return losses, list(model.parameters()), states


def _states(optimizer: optim.Optimizer) -> list[dict[str, Any]]:
    return list(optimizer.state_dict()["state"].values())


def accepts(name: str, options: dict[str, Any]) -> bool:
    return set(options) <= set(inspect.signature(getattr(optim, name)).parameters)


@pytest.mark.parametrize("options", LOOPS, ids=["loop", "foreach"])
@pytest.mark.parametrize("name", NAMES)
def test_step(name: str, options: dict[str, Any]) -> None:
    options = options if accepts(name, options) else {}
    expected = trained(name, lambda step: step, **options)
    found = trained(name, lambda step: dynacap.compile(step, backend="eager"), **options)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", WHOLE_UPDATE)
def test_update_is_one_graph(name: str) -> None:
    """One more makes the state at the first step, and one is for a rate that varies."""
    options = {"foreach": True} if accepts(name, {"foreach": True}) else {}
    before = dynacap.counters()["graphs"]
    trained(name, lambda step: dynacap.compile(step, backend="eager"), **options)
    assert dynacap.counters()["graphs"] - before <= 3


def test_label_for_profilers_across_a_break() -> None:
    label: Any = torch.profiler.record_function("a label")

    def function(x: Tensor) -> Tensor:
        with label:
            y = x + 1
            dynacap.graph_break()
            y = y * 2
        return y + 1

    compiled = dynacap.compile(function, backend="eager")
    x = torch.ones(3)
    for _ in range(2):
        with torch.profiler.profile() as profile:
            assert torch.equal(compiled(x), function(x))
        events = [event.name for event in profile.events() or ()]
        assert events.count("a label") == 2
