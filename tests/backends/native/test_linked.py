"""Results of one graph that come from other results of it: autograd goes from one to the other."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynacap

pytestmark = [pytest.mark.torch, pytest.mark.cc]

Results = tuple[Tensor, ...]


def chain(x: Tensor, w: Tensor) -> Results:
    first = (x @ w).tanh()
    second = first.sin() * x
    return first, second, (second * first).exp().sum() + w.sum()


def drawn(x: Tensor, w: Tensor) -> Results:
    first = F.dropout(x @ w, 0.5)
    return first, F.dropout(first.relu(), 0.5) * w, F.dropout(x, 0.5).sum() + first.square().sum()


def changed(x: Tensor, w: Tensor) -> Results:
    first = (x * w).sin()
    total = torch.zeros_like(x)
    total.add_(first)
    return first, total.mul_(2).cos(), first.detach() * x


def with_views(x: Tensor, w: Tensor) -> Results:
    both = x @ w
    return both[:2], both.relu().t(), both.sum()


PROGRAMS = [chain, drawn, changed, with_views]


def by_grad(results: Results, leaves: Results) -> Any:
    kept: Any = {"retain_graph": True, "allow_unused": True}
    return [
        torch.autograd.grad(later.sum(), [earlier, *extra], **kept)
        for at, later in enumerate(results)
        for earlier in results[:at]
        for extra in ((), leaves)
    ]


def by_backward(results: Results, leaves: Results) -> Any:
    seen: list[Tensor] = []

    def changing(grad: Tensor) -> Tensor:
        seen.append(grad)
        return grad * 3

    for each in results:
        each.retain_grad()
    results[0].register_hook(changing)
    sum(each.sum() for each in results).backward()  # type: ignore[union-attr]
    return [each.grad for each in (*results, *leaves)], seen


def of_gradients(results: Results, leaves: Results) -> Any:
    loss = results[-1].sum()
    grads = torch.autograd.grad(loss, results[0], create_graph=True, allow_unused=True)
    if grads[0] is not None and grads[0].requires_grad:
        (grads[0].square().sum() + results[1].sum()).backward()
    return grads, [each.grad for each in leaves]


def where_one_is_changed(results: Results, leaves: Results) -> Any:
    results[0].detach().add_(0)
    return torch.autograd.grad(results[0].mul(2).sum() + results[2].sum(), leaves)


@pytest.mark.parametrize("ask", [by_grad, by_backward, of_gradients, where_one_is_changed])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_eager(program: Callable[..., Results], ask: Callable[..., Any]) -> None:
    found = []
    for function in (program, dynacap.compile(program, backend="native")):
        torch.manual_seed(0)
        for _ in range(2):
            leaves = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
            try:
                found.append(ask(function(*leaves), leaves))
            except RuntimeError:
                found.append(None)  # what the backward pass needs was changed
    torch.testing.assert_close(found[2:], found[:2])


def two_views(x: Tensor, w: Tensor) -> Results:
    both = x @ w
    return both[0], both


def view_and_more(x: Tensor, w: Tensor) -> Results:
    both = (x @ w).sin()
    return both.t()[1:], both.relu(), both, both.view(2, 8)


def change_first(results: Results) -> Tensor:
    results[0].mul_(2)
    return sum(each.sum() for each in results[1:])  # type: ignore[return-value]


def change_last(results: Results) -> Tensor:
    results[-1].mul_(2)
    return results[0].square().sum()


@pytest.mark.parametrize("change", [change_first, change_last])
@pytest.mark.parametrize("program", [two_views, view_and_more])
def test_views_of_what_is_changed_later(program: Any, change: Any) -> None:
    """The gradient of one goes through the change of the other."""
    found = []
    for function in (program, dynacap.compile(program, backend="native")):
        torch.manual_seed(0)
        leaves = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
        change(function(*leaves)).backward()
        found.append([each.grad for each in leaves])
    torch.testing.assert_close(found[1], found[0])


def test_steps_of_a_loop_that_breaks() -> None:
    """Each step differentiates by what an earlier piece of the function made."""

    def adapted(w: Tensor, x: Tensor) -> Tensor:
        for _ in range(3):
            (grad,) = torch.autograd.grad((x @ w).tanh().sum(), w, create_graph=True)
            w = w - 0.1 * grad
        return w

    found = []
    for function in (adapted, dynacap.compile(adapted, backend="native")):
        torch.manual_seed(0)
        w = torch.randn(4, 4, requires_grad=True)
        out = function(w, torch.randn(4, 4))
        out.square().sum().backward()
        found.append((out, w.grad))
    torch.testing.assert_close(found[1], found[0])


class Heads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.heads = torch.nn.Linear(3, 3), torch.nn.ModuleList()
        self.heads.extend(torch.nn.Linear(3, 2) for _ in range(3))

    def forward(self, x: Tensor) -> Results:
        h = self.trunk(x).tanh()
        first, second, third = (head(h) for head in self.heads)
        return first, second[0], second[1], third.detach(), h.argmax(), x


def test_what_no_result_comes_from_has_no_gradient() -> None:
    """Zeros instead would have an optimizer move parameters of heads that a step does not use."""
    found = []
    for backend in ("eager", "native"):
        torch.manual_seed(0)
        net = Heads()
        compiled = dynacap.compile(net, backend=backend)
        optimizer = torch.optim.AdamW(net.parameters(), 0.1)
        x = torch.ones(2, 3, requires_grad=True)
        for place in (0, 0, 2, 1, 5):
            optimizer.zero_grad()
            compiled(x)[place].sum().backward()
            found.append([None if p.grad is None else p.grad.clone() for p in net.parameters()])
            optimizer.step()
        found.append([p.detach() for p in net.parameters()])
    torch.testing.assert_close(found[6:], found[:6])


def test_a_result_can_be_changed() -> None:
    found: list[Any] = []
    for function in (chain, dynacap.compile(chain, backend="native")):
        torch.manual_seed(0)
        x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
        _, second, last = function(x, w)
        before = last._version
        last.mul_(2)
        found.append(
            (last, torch.autograd.grad(last, x, retain_graph=True), last._version - before)
        )
        found.append((torch.autograd.grad(second.sum() + last, [second, x]),))
    torch.testing.assert_close(found[2:], found[:2])


def test_parts_that_record_in_a_call_that_does_not() -> None:
    def parts(x: Tensor, w: Tensor) -> Results:
        scale = (x * w).sin()
        with torch.enable_grad():
            first = (scale * w).exp()
            second = first * first
        return first, second, second * w

    found = []
    for function in (parts, dynacap.compile(parts, backend="native")):
        torch.manual_seed(0)
        x, w = torch.randn(4, 4), torch.randn(4, 4, requires_grad=True)
        with torch.no_grad():
            results = function(x, w)
        first, second, third = results
        (grad,) = torch.autograd.grad(second.sum(), w, create_graph=True)
        between = torch.autograd.grad(second.sum(), [first, w], retain_graph=True)
        twice = torch.autograd.grad(grad.sum(), w)
        found.append((*results, grad, *between, *twice, third.requires_grad))
    torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2), (2, 0), (2, 2), (1, 1)])
def test_backward_passes_of_parts_one_after_the_other(order: Sequence[int]) -> None:
    """Each frees what it has passed, and no more."""

    def parts(x: Tensor, v: Tensor, w: Tensor) -> Results:
        features = F.dropout(x * v, 0.5).tanh()
        return features.sin(), features.detach() @ w, w.exp().sum() * features.cos()

    found = []
    for function in (parts, dynacap.compile(parts, backend="native")):
        torch.manual_seed(0)
        leaves = [torch.randn(4, 4, requires_grad=True) for _ in range(3)]
        results = function(*leaves)
        errors = []
        for index in order:
            try:
                results[index].square().sum().backward()
            except RuntimeError as error:
                errors.append(str(error)[:60])
        found.append((errors, [leaf.grad for leaf in leaves]))
    assert found[1][0] == found[0][0]
    if not found[0][0]:
        torch.testing.assert_close(found[1][1], found[0][1])
