"""Graphs with a backward pass that an earlier process compiled: found again, not traced."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import dynacap
from dynacap.backends.native import backend
from dynacap.backends.native.aten import autograd

pytestmark = [pytest.mark.torch, pytest.mark.cc, pytest.mark.usefixtures("own_cache")]
Fn = Callable[..., Any]


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What AOTAutograd was given."""
    seen: list[Any] = []
    trace: Any = vars(autograd)["aot_module_simplified"]

    def noted(module: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(module)
        return trace(module, *args, **kwargs)

    monkeypatch.setattr(autograd, "aot_module_simplified", noted)
    return seen


def leaves() -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(4, 4, requires_grad=True) for _ in range(2)]


def tensors(made: Any) -> list[Tensor]:
    return [one for one in (made if isinstance(made, tuple) else (made,)) if torch.is_tensor(one)]


def gradients(fn: Fn, values: list[Tensor]) -> Any:
    """What a call gives, how its results lie in memory, and the gradients."""
    made = fn(*values)
    wanted = [one for one in tensors(made) if one.requires_grad]
    sum(one.square().sum() for one in wanted).backward()  # type: ignore[union-attr]
    layouts = [(one.stride(), one.requires_grad) for one in tensors(made)]
    return made, layouts, [value.grad for value in values]


def in_new_process(fn: Fn) -> Fn:
    """The function compiled where nothing is known but what lies on disk."""
    dynacap.reset()
    compiled: Fn = dynacap.compile(fn, backend="native", dynamic=False)
    return compiled


def changes_inside(x: Tensor, y: Tensor) -> Tensor:
    z = x * y
    z[0].add_(1)
    z.mul_(y)
    return z


def with_constants(x: Tensor, y: Tensor) -> Tensor:
    z = x * torch.tensor([1.0, 2.0, 3.0, 4.0])
    z[0] = 7
    return z * y


def dropping(x: Tensor, y: Tensor) -> Tensor:
    return F.dropout(x * 2, 0.5) * y


def unrecorded(x: Tensor, y: Tensor) -> Any:
    with torch.no_grad():
        z = x.exp()
    return z * y.sin(), x.cos().detach(), z


FUNCTIONS: dict[str, Fn] = {
    "pointwise": lambda x, y: (x + 1).exp() * torch.sigmoid(y),
    "products": lambda x, y: F.linear(x, y) @ x.softmax(-1),
    "several results": lambda x, y: (x.sin() * y, 3, None, x.shape[0], x.sum()),
    "an unused argument": lambda x, y: x.tanh(),
    "a row": lambda x, y: (x * y)[1],
    "an input": lambda x, y: (x * y, x),
    "a view of an input": lambda x, y: (x * y, x.t(), y[1:]),
    "views of one result": lambda x, y: (lambda z: (z[0], z[1:], z.t()))(x.exp() * y),
    "a loss": lambda x, y: F.cross_entropy(x, y.detach().argmax(-1)),
    "changes inside": changes_inside,
    "constants": with_constants,
    "dropout": dropping,
    "without recording": unrecorded,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_second_process_traces_nothing(name: str, traced: list[Any]) -> None:
    fn = FUNCTIONS[name]
    expected = gradients(fn, leaves())
    for _ in range(2):
        compiled = in_new_process(fn)
        for _ in range(2):
            torch.testing.assert_close(gradients(compiled, leaves()), expected)
    assert len(traced) == 1


class Normed(torch.nn.Module):
    """Running statistics are changed by a call."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Any:
        return self.layer(torch.relu(self.norm(x)))


def trained(compile_model: Fn) -> list[Tensor]:
    torch.manual_seed(0)
    model = Normed()
    compiled, optimizer = compile_model(model), torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        compiled(torch.randn(5, 4)).square().mean().backward()
        optimizer.step()
    return [*model.parameters(), *model.buffers()]


def test_a_model_is_trained(traced: list[Any]) -> None:
    expected = trained(lambda model: model)
    for _ in range(2):
        torch.testing.assert_close(trained(in_new_process), expected)
    assert len(traced) == 1


def test_a_backward_pass_is_made_twice(traced: list[Any]) -> None:
    fn = FUNCTIONS["pointwise"]
    for _ in range(2):
        compiled, values, plain = in_new_process(fn), leaves(), leaves()
        for function, given in ((compiled, values), (fn, plain)):
            function(*given).sum().backward()
            result = function(*given).sum()
            result.backward(retain_graph=True)
            result.backward()
        torch.testing.assert_close([v.grad for v in values], [v.grad for v in plain])
    assert len(traced) == 1


def test_a_gradient_has_a_gradient() -> None:
    def second(fn: Fn) -> list[Any]:
        x, y = leaves()
        (first,) = torch.autograd.grad(fn(x, y).sum(), x, create_graph=True)
        first.square().sum().backward()
        return [x.grad, y.grad]

    fn = FUNCTIONS["pointwise"]
    for _ in range(2):
        compiled = in_new_process(fn)
        gradients(compiled, leaves())
        torch.testing.assert_close(second(compiled), second(fn))


def test_an_index_that_lies_outside_is_eager_s_to_refuse(traced: list[Any]) -> None:
    def fn(x: Tensor, index: Tensor) -> Tensor:
        return x.exp()[index]

    for _ in range(2):
        compiled = in_new_process(fn)
        x = torch.ones(3, requires_grad=True)
        compiled(x, torch.tensor([1, 1])).sum().backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, torch.tensor([0, 2 * torch.e, 0]))
        assert len(traced) == 1
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            compiled(x, torch.tensor([0, 5]))
    assert len(traced) == 2  # what the note has no graph for


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_are_traced_again_where_a_library_cannot_run(
    name: str, traced: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fn = FUNCTIONS[name]
    gradients(in_new_process(fn), leaves())
    monkeypatch.setattr(backend._Compile, "again", lambda _, part, eager: eager)
    compiled = in_new_process(fn)
    for _ in range(2):
        torch.testing.assert_close(gradients(compiled, leaves()), gradients(fn, leaves()))
    assert len(traced) == 2


def test_what_is_traced_otherwise_is_not_mixed_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fn = FUNCTIONS["pointwise"]
    gradients(in_new_process(fn), leaves())
    find: Any = vars(backend)["find_note"]

    def changed(*args: Any) -> Any:
        note: Any = find(*args)
        note["parts"][0]["graph"] = "another"
        return note

    monkeypatch.setattr(backend, "find_note", changed)
    monkeypatch.setattr(backend._Compile, "again", lambda _, part, eager: eager)
    torch.testing.assert_close(
        in_new_process(fn)(*leaves()), fn(*leaves())
    )  # by the captured graph, whole


def test_what_decides_the_graphs_is_part_of_the_description(traced: list[Any]) -> None:
    def fn(x: Tensor, y: Tensor) -> Any:
        return x.detach() * y

    for _ in range(2):
        for inner in (False, True):
            x, y = leaves()
            given = (x * 1, y) if inner else (x, y)
            in_new_process(fn)(*given).sum().backward()
            assert x.grad is None
        with torch.autocast("cpu", torch.bfloat16):
            gradients(in_new_process(fn), leaves())
    assert len(traced) == 3


def test_what_a_gradient_does_not_reach_is_not_walked(traced: list[Any]) -> None:
    """What lies behind the argument was freed: neither eager nor the graph goes there."""

    def scaled(x: Tensor, y: Tensor) -> Tensor:
        return x.detach().exp() * y

    for fn in (scaled, in_new_process(scaled), in_new_process(scaled)):
        x, y = leaves()
        square = x * x
        square.sum().backward()
        fn(square, y).sum().backward()
        torch.testing.assert_close(y.grad, (x * x).exp().detach())
    assert len(traced) == 1


@pytest.mark.parametrize("as_c", [True, False])
def test_a_backward_pass_under_autocast(
    as_c: bool, traced: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs without, as the graph has its casts; so it does in a later process, also where that
    runs its operators one by one."""

    def product(x: Tensor, y: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            z = x @ y
        return z.sin() @ y

    found = []
    for process in range(2):
        if process and not as_c:
            monkeypatch.setattr(backend._Compile, "again", lambda _, part, eager: eager)
        x, y = leaves()
        with torch.autocast("cpu", torch.bfloat16):
            in_new_process(product)(x, y).square().sum().backward()
        found.append((x.grad, y.grad))
    torch.testing.assert_close(
        found[0], found[1], rtol=0 if as_c else 1.3e-6, atol=0 if as_c else 1e-5
    )
    assert len(traced) == (1 if as_c else 2)
