"""`torch.compile` and its marks beside dynacap, either way round."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor, nn

import dynacap
from dynacap.fxlite import GraphModule

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    dynacap.reset()
    torch._dynamo.reset()


class Counting:
    """The eager backend, keeping the graphs."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        self.graphs.append(gm)
        return gm.forward


def triple(x: Tensor) -> Tensor:
    return x * 3


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layer(x).relu()
        return y


def test_what_torch_wrapped_is_captured_as_what_it_wraps() -> None:
    theirs, ours = Counting(), Counting()
    wrapped = torch.compile(triple, backend=theirs)
    compiled = dynacap.compile(lambda x: wrapped(x) + 1, backend=ours, fullgraph=True)
    assert torch.equal(compiled(X), X * 3 + 1)
    again = dynacap.compile(wrapped, backend=ours)
    assert torch.equal(again(X), X * 3)
    assert (len(theirs.graphs), len(ours.graphs)) == (0, 2)


def test_modules_that_torch_wrapped() -> None:
    theirs, ours = Counting(), Counting()
    net = Net()
    wrapped = torch.compile(net, backend=theirs)
    compiled = dynacap.compile(wrapped, backend=ours)
    assert type(compiled).__name__ == "Net"
    assert list(compiled.state_dict()) == list(net.state_dict())
    assert torch.equal(compiled(X), net(X))
    outer = dynacap.compile(nn.Sequential(wrapped), backend=ours, fullgraph=True)
    assert torch.equal(outer(X), net(X))
    assert (len(theirs.graphs), len(ours.graphs)) == (0, 2)


def test_wrapped_functions_below_a_break_are_captured_by_us() -> None:
    theirs, ours = Counting(), Counting()
    wrapped = torch.compile(triple, backend=theirs)

    @dynacap.disable(recursive=False)
    def calls(x: Tensor) -> Tensor:
        return wrapped(x)  # type: ignore[no-any-return]

    compiled = dynacap.compile(lambda x: calls(x + 1) + 1, backend=ours)
    for _ in range(3):
        assert torch.equal(compiled(X), (X + 1) * 3 + 1)
    assert not theirs.graphs or not dynacap.hook.choose_hook().capabilities.replaces_running_frame


def test_torch_compile_of_what_we_compiled() -> None:
    ours = Counting()
    net = Net()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for target in (dynacap.compile(triple, backend=ours), dynacap.compile(net, backend=ours)):
            outer = torch.compile(target, backend="eager")
            for _ in range(2):
                assert torch.equal(outer(X), target(X))


@pytest.mark.parametrize("disable", [torch.compiler.disable, torch._dynamo.disable])
def test_disabled_by_torch(disable: Any) -> None:
    ours = Counting()

    @disable
    def outside(x: Tensor) -> Tensor:
        assert not dynacap.is_compiling()
        return triple(x)

    compiled = dynacap.compile(lambda x: outside(x + 1) + 1, backend=ours)
    for _ in range(3):
        assert torch.equal(compiled(X), (X + 1) * 3 + 1)
    assert len(ours.graphs) == 2
    assert dynacap.compile(outside) is outside


def test_disabled_by_torch_in_one_frame_only() -> None:
    ours = Counting()

    @torch.compiler.disable(recursive=False)
    def outside(x: Tensor) -> Tensor:
        return triple(x)

    compiled = dynacap.compile(lambda x: outside(x + 1) + 1, backend=ours)
    for _ in range(3):
        assert torch.equal(compiled(X), (X + 1) * 3 + 1)
    assert len(ours.graphs) == 3


def test_graph_break_of_torch() -> None:
    ours = Counting()

    def function(x: Tensor) -> Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    assert torch.equal(dynacap.compile(function, backend=ours)(X), (X + 1) * 2)
    assert len(ours.graphs) == 2


def test_allowed_by_torch() -> None:
    def opaque(x: Tensor) -> Tensor:
        return x * 2 if x.requires_grad else x * 3

    torch.compiler.allow_in_graph(opaque)
    ours = Counting()
    compiled = dynacap.compile(lambda x: opaque(x) + 1, backend=ours, fullgraph=True)
    assert torch.equal(compiled(X), X * 3 + 1)
    assert opaque in {node.target for node in ours.graphs[0].graph.nodes}


def test_constant_by_torch() -> None:
    calls: list[int] = []

    @torch.compiler.assume_constant_result
    def setting() -> int:
        calls.append(1)
        return 10

    compiled = dynacap.compile(lambda x: x + setting(), fullgraph=True)
    assert torch.equal(compiled(X), X + 10)
    assert torch.equal(compiled(X), X + 10)
    assert calls == [1]


def test_marks_of_dimensions_are_accepted() -> None:
    x = X.clone()
    torch._dynamo.mark_dynamic(x, 0)
    torch._dynamo.mark_static(x, 1)
    torch._dynamo.maybe_mark_dynamic(x, 0)

    def function(x: Tensor) -> Tensor:
        torch._check(x.shape[0] > 1)
        return x * 2

    assert torch.equal(dynacap.compile(function, fullgraph=True)(x), X * 2)


def test_backend_by_torchs_name() -> None:
    compiled = dynacap.compile(triple, backend="aot_eager")
    assert torch.equal(compiled(X), X * 3)


def test_graph_modules_are_ours() -> None:
    ours = Counting()
    dynacap.compile(triple, backend=ours)(X)
    assert isinstance(ours.graphs[0], GraphModule)


def test_modules_made_inside_after_torch_compile_was_used() -> None:
    """torch.compile has every module note its birth from then on; that is nothing of ours."""
    torch.compile(triple, backend="eager")(X)

    def program(x: Tensor) -> Tensor:
        y: Tensor = nn.ReLU()(x - 2)
        return y

    compiled = dynacap.compile(program, fullgraph=True)
    assert torch.equal(compiled(X), program(X))
