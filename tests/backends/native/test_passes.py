"""Backward passes that begin with some of a graph's results: what they need, and what they give."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynacap
from dynacap.backends.native.aten import autograd, parts
from dynacap.hook import choose_hook

pytestmark = [pytest.mark.torch, pytest.mark.cc]
Results = Sequence[Tensor]


def leaves(rows: int = 4) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(rows, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)]


def chain(x: Tensor, w: Tensor) -> Results:
    first = (x @ w).tanh()
    second = first.sin() * x
    return first, second, (second * first).exp().sum()


def joined(x: Tensor, w: Tensor) -> Results:
    left, right = (x @ w).split(2, 1)
    both = torch.cat([right.sin(), left.exp()], 1).t()
    return left.relu(), both.softmax(0), torch.where(x > 0, left.sum(), right.cos().sum()).sum()


def turned(x: Tensor, w: Tensor) -> Results:
    made = (x.t() * w.sin().sum(0).unsqueeze(1)).relu()
    return made.exp().t(), made.t().contiguous().tanh(), x.expand(3, *x.shape).sin(), made.sum()


def normed(x: Tensor, w: Tensor) -> Results:
    made = F.layer_norm(x @ w, (4,))
    loss = F.cross_entropy(made, made.detach().argmax(-1))
    return F.softmax(made, -1), made.square().mean(), loss


def gradients(function: Any, chosen: Sequence[int], rows: int = 4, retain: bool = False) -> Any:
    given = leaves(rows)
    results = function(*given)
    wanted = [results[i] for i in chosen]
    torch.autograd.backward([each.sum() for each in wanted], retain_graph=retain)
    if retain:
        results[-1].sum().backward()
    return [each.grad for each in given]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [chain, joined, turned, normed])
def test_each_set_of_results(function: Callable[..., Results], dynamic: bool) -> None:
    compiled = dynacap.compile(function, backend="native", dynamic=dynamic)
    count = len(function(*leaves()))
    for rows in (4, 5) if dynamic and function is not turned else (4,):
        for size in range(1, count + 1):
            for chosen in itertools.combinations(range(count), size):
                for retain in (False, True):
                    case = chosen, rows, retain
                    found, expected = (gradients(f, *case) for f in (compiled, function))
                    torch.testing.assert_close(found, expected, msg=str(case))


def metric(x: Tensor, w: Tensor) -> Results:
    p = (x * w).relu()
    return p.square().sum(), (p * p.log()).sum(), p.norm(dim=1).sum()


def test_what_is_infinite_elsewhere() -> None:
    """A result whose gradient would be infinite has no part in a pass of another."""
    compiled = dynacap.compile(metric, backend="native")
    for chosen in ([0], [0, 2], [1]):
        torch.testing.assert_close(
            gradients(compiled, chosen), gradients(metric, chosen), equal_nan=True
        )


def changed_by_another(function: Any) -> Any:
    given = leaves()
    _, second, _ = function(*given)
    second.mul_(2)
    second.sum().backward()
    return [each.grad for each in given]


def test_a_result_changed_that_only_another_needs() -> None:
    compiled = dynacap.compile(chain, backend="native")
    for _ in range(2):
        torch.testing.assert_close(changed_by_another(compiled), changed_by_another(chain))


def changed_by_itself(function: Any) -> Any:
    results = function(*leaves())
    results[0].mul_(2)
    results[2].backward()


def test_what_is_needed_is_compared() -> None:
    for function in (chain, dynacap.compile(chain, backend="native")):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            changed_by_itself(function)


def losses(x: Tensor, u: Tensor, v: Tensor, w: Tensor) -> Results:
    """Of an actor, a critic and a model, of which one reads what another makes."""
    value = (x @ v).relu().sum(-1)
    chances = (x @ u).log_softmax(-1)[:, 0]
    ahead = (x.sin() @ w - x).square().mean()
    return -(chances * (1 - value.detach())).mean(), (value - 1).square().mean(), ahead


def trained(function: Any, order: Sequence[int], retain: bool = False) -> Any:
    torch.manual_seed(0)
    x = torch.randn(5, 4)
    params = [torch.randn(4, 4, requires_grad=True) for _ in range(3)]
    optimizers = [torch.optim.Adam([each], lr=0.1) for each in params]
    seen = []
    for _ in range(3):
        results = function(x, *params)
        for i in order:
            optimizers[i].zero_grad()
            results[i].backward(retain_graph=retain)
            optimizers[i].step()
        seen.extend([each.detach().clone() for each in (*results, *params)])
    return seen


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2)])
def test_one_optimizer_after_the_other(order: Sequence[int]) -> None:
    """What a pass freed or a step changed is none of what the others need."""
    compiled = dynacap.compile(losses, backend="native")
    torch.testing.assert_close(trained(compiled, order), trained(losses, order))


def once_more(function: Any) -> None:
    results = function(*leaves(), torch.ones(4, 4), torch.ones(4, 4))
    results[0].backward()
    results[0].backward()


def changed_between(function: Any) -> Any:
    x, u = leaves()
    v, w = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
    results = function(x.detach(), u, v, w)
    results[0].backward()
    with torch.no_grad():
        u.mul_(2)
        v.mul_(2)  # nothing behind it has a gradient, so that its elements are none of the pass's
    results[1].backward()
    return [each.grad for each in (u, v, w)]


def test_a_change_between_passes() -> None:
    compiled = dynacap.compile(losses, backend="native")
    torch.testing.assert_close(changed_between(compiled), changed_between(losses))


def changed_before(function: Any) -> None:
    x, u = leaves()
    v = torch.randn(4, 4, requires_grad=True)
    results = function(x, u, v, v)
    with torch.no_grad():
        v.mul_(2)
    results[1].backward()


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (once_more, "backward through the graph a second time"),
        (changed_before, "modified by an inplace operation"),
    ],
)
def test_what_eager_refuses(use: Any, error: str) -> None:
    for function in (losses, dynacap.compile(losses, backend="native")):
        with pytest.raises(RuntimeError, match=error):
            use(function)


class Model(torch.nn.Module):
    """Returns what users look at, and the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.head = torch.nn.Linear(4, 8), torch.nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Any:
        hidden = self.layer(x).relu()
        logits = self.head(hidden)
        return logits, F.cross_entropy(logits, torch.arange(len(x)) % 3), hidden


@pytest.mark.usefixtures("own_cache")
def test_the_second_process_finds_the_graph_of_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    trace: Any = vars(autograd)["aot_module_simplified"]

    def noted(module: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(module)
        return trace(module, *args, **kwargs)

    monkeypatch.setattr(autograd, "aot_module_simplified", noted)
    for begun_with in (1, 1, 0):
        found = []
        for compiles in (False, True):
            dynacap.reset()
            torch.manual_seed(0)
            model: Any = Model()
            function = dynacap.compile(model, backend="native") if compiles else model
            results = function(torch.randn(6, 4))
            results[begun_with].sum().backward()
            found.append([each.grad for each in model.parameters()])
        torch.testing.assert_close(found[1], found[0])
    assert len(seen) == 2  # by the third, which asks for another


@pytest.mark.usefixtures("own_cache")  # nothing is made where an earlier process has made it
def test_what_a_pass_compiles_is_nobodys_to_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its backward graph is made while the frames of the user's step are watched."""
    watched: list[bool] = []
    cut: Any = vars(parts)["_cut"]

    def noted(*args: Any) -> Any:
        watched.append(choose_hook().is_active())
        return cut(*args)

    monkeypatch.setattr(parts, "_cut", noted)

    def step(x: Tensor, w: Tensor) -> Any:
        results = chain(x, w)
        results[1].sum().backward()
        return results[0]

    dynacap.compile(step, backend="native")(*leaves())
    assert watched == [False] * len(watched)
    assert watched


PASSES: dict[str, Any] = {
    "gradients that are views of one": (lambda x, w: (w + x.view(16).view(4, 4), x * 2), [[0]] * 3),
    "three of them": (lambda x, w: (x.t() + w.t() + x.view(4, 4), w.sin()), [[0], [0], [1]]),
    "nothing saved": (lambda x, w: (x.cumsum(0), x + w, w.sum(0)), [[0], [0], [1], [0, 1], [2]]),
    "saved by others": (lambda x, w: ((x + w).flip(0), (x + w) @ w), [[0], [1]]),
    "shared in part": (lambda x, w: (x.relu() @ w, x.relu().flip(0), w.abs()), [[1], [2], [0]]),
    "changed in the graph": (lambda x, w: (fill(x, w), (x * w).exp()), [[0], [1]]),
}


def fill(x: Tensor, w: Tensor) -> Tensor:
    made = torch.zeros(4, 4)
    other = made + x
    made[0] = w[1]
    return made + other


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PASSES)
def test_passes_without_retaining(name: str, dynamic: bool) -> None:
    """As many as eager allows."""
    function, passes = PASSES[name]
    found = []
    for each in (function, dynacap.compile(function, backend="native", dynamic=dynamic)):
        given = leaves()
        results = each(*given)
        for chosen in passes:
            sum(results[i].sum() for i in chosen).backward()
            found.append([None if x.grad is None else x.grad.clone() for x in given])
    torch.testing.assert_close(found[len(passes) :], found[: len(passes)])


def changed_when_made(x: Tensor, w: Tensor) -> Results:
    made = torch.zeros(4, 4)
    first = torch.stack([w, made]).mean(0)
    made[0] = x[1]
    return first, made


def test_a_gradient_through_what_is_changed_later() -> None:
    compiled = dynacap.compile(changed_when_made, backend="native")
    for chosen in ([1], [0], [0, 1]):
        expected, found = (gradients(f, chosen) for f in (changed_when_made, compiled))
        torch.testing.assert_close(found, expected)
