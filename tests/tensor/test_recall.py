"""Results made from memory are what running the operation again would give."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dynacap
from dynacap.backends.fakes import memo
from dynacap.backends.fakes.memo import Kept
from dynacap.testing import Scenario, call, program, scenario
from dynacap.values.tensor.arguments import lower_all, lower_keywords
from dynacap.values.tensor.recall import Call, Recall

X = torch.arange(12.0).reshape(3, 4) - 5
LEAF = torch.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()


def seen(result: Any) -> list[Any]:
    """The metadata of a result's tensors, and its type."""
    tensors = result if isinstance(result, list | tuple) else (result,)
    return [type(result)] + [
        (t.shape, t.stride(), t.dtype, t.device, t.requires_grad, t.is_leaf) for t in tensors
    ]


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every result from memory is compared with one from running; gives their operations."""
    names: list[str] = []
    plain = Recall.make

    def checked(self: Recall, kept: Kept, one: Call) -> Any:
        result = plain(self, kept, one)
        t: Any = None
        fakes, keywords = lower_all(t, one.args)[1], lower_keywords(t, one.kwargs)[1]
        run = one.target
        if one.op == "call_method":
            run, fakes = getattr(fakes[0], one.target), fakes[1:]
        assert seen(result) == seen(self.world.run(run, fakes, keywords)), one
        names.append(str(getattr(one.target, "__name__", one.target)))
        return result

    monkeypatch.setattr(Recall, "make", checked)
    memo.forget()
    yield names
    memo.forget()


def capture_twice(function: Callable[..., Any], *args: Any) -> None:
    """Capture a function in two entries, the second with everything remembered."""
    for _ in range(2):
        dynacap.compile(function, backend="eager", fullgraph=True)(*args)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.up(self.norm(x)).chunk(2, -1) + (x,)
        weights = torch.softmax(q @ k.transpose(-1, -2) * 0.5, dim=-1)
        mixed = (weights @ v).reshape(x.shape).view(3, 2, 2).flatten(1)
        return x + F.dropout(self.down(F.gelu(self.up(mixed[..., :4]))), 0.1)


@pytest.mark.parametrize("grad", [True, False])
def test_layers_that_repeat(made: list[str], grad: bool) -> None:
    model = nn.Sequential(Layer(), Layer(), Layer())

    def f(x: Tensor) -> Tensor:
        return model(x)  # type: ignore[no-any-return]

    with torch.set_grad_enabled(grad):
        dynacap.compile(f, fullgraph=True)(X)
    assert {"linear", "layer_norm", "matmul", "chunk", "softmax", "transpose"} <= set(made)
    assert made.count("linear") >= 6


def test_constants_of_equal_value_are_told_apart(made: list[str]) -> None:
    def f(x: Tensor) -> Any:
        results = [x.long() * 1, x.long() * 1.0, x.long() * True, x.sum(0), x.sum(0, False)]
        return results, [r.dtype for r in results]

    capture_twice(f, X)
    compiled = dynacap.compile(f, fullgraph=True)(X)
    assert compiled[1] == f(X)[1]
    assert made


def test_state_is_part_of_the_question(made: list[str]) -> None:
    def f(x: Tensor, w: Tensor) -> Any:
        a = x @ w.T
        with torch.no_grad():
            b = x @ w.T
        with torch.autocast("cpu", dtype=torch.bfloat16):
            c = x @ w.T
        return [(r.dtype, r.requires_grad) for r in (a, b, c, x @ w.T)], a + b + c

    assert dynacap.compile(f, fullgraph=True)(X, LEAF)[0] == f(X, LEAF)[0]
    assert dynacap.compile(f, fullgraph=True)(X, LEAF)[0] == f(X, LEAF)[0]
    assert "matmul" in made


@program((X, LEAF))
def test_views_then_writes(x: Tensor, w: Tensor) -> Any:
    a, b = x * 1, x * 1
    u, v = a[0], b[0]
    flags = [u.requires_grad, v.requires_grad]
    p, q = a.view(-1), b.view(-1)
    q.mul_(w.view(-1))
    p[0] = 3
    flags += [a.requires_grad, b.requires_grad, u.requires_grad, v.requires_grad, q.is_leaf]
    return flags, a, b, u, v, p, q


@scenario(breaks=None)
def test_write_through_a_view_of_a_leaf() -> Scenario:
    def f(x: Tensor) -> Any:
        first, second = x.view(-1), x.view(-1)
        y = first * 2
        try:
            second.add_(1)
        except RuntimeError as error:
            return str(error), y
        return second

    leaf = LEAF.detach().clone().requires_grad_()
    return Scenario(f, [call(leaf), call(leaf)])


@scenario(breaks=None)
def test_overlap_is_noticed() -> Scenario:
    def f(x: Tensor) -> Any:
        a, b = x * 1, x * 1
        first, second = a[1:], b[1:]
        left, right = a[:-1], b[:-1]
        try:
            second.add_(right)
        except RuntimeError as error:
            return str(error)
        return first, left

    return Scenario(f, [call(X), call(X)])


@program((X,))
def test_views_made_without_recording(x: Tensor) -> Any:
    w = torch.ones(4, requires_grad=True) * 2
    with torch.no_grad():
        a, b = w[1:], w[1:]
    c, d = w[:2], w[:2]
    x.add_(1)
    return [(t.requires_grad, t.is_leaf) for t in (a, b, c, d)]


@program((X.clone(),))
def test_results_with_names_and_lists(x: Tensor) -> Any:
    tops = [x.topk(2).values.sum() + x.topk(2)[0].sum() for _ in range(2)]
    lists = [torch._foreach_mul([x, x], 2.0) for _ in range(2)]
    minima = [type(torch.min(x, 0)).__name__ for _ in range(2)]
    return tops, lists, minima, [x.unbind()[1] for _ in range(2)]


def test_what_writes_is_not_remembered(made: list[str]) -> None:
    def f(x: Tensor) -> Any:
        y = x.clone()
        F.relu(y, inplace=True)
        F.relu(y, True)
        torch.relu_(y)
        y.add_(1)
        y[0] = 1
        y += 1
        torch.add(y, 1, out=y)
        return y

    capture_twice(f, X)
    assert set(made) == {"clone"}


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return 0.5 * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 0.5


def test_forward_of_a_custom_gradient_records_nothing(made: list[str]) -> None:
    def f(x: Tensor) -> Any:
        a = 0.5 * x
        b = Halve.apply(x)
        return (a + b, 0.5 * x, Halve.apply(b))

    capture_twice(f, LEAF)
    assert made.count("mul") >= 6


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "MOST", 5)

    def f(x: Tensor) -> Any:
        return [x * n for n in range(20)]

    capture_twice(f, X)
    assert len(memo._kept) <= 5
