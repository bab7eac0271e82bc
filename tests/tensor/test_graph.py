"""The graph that operations make: which nodes, on what, from which line."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import dynacap
from dynacap.fxlite.locations import user_stack

X = torch.arange(12.0).reshape(3, 4)


def capture(function: Callable[..., Any], *args: Any) -> Any:
    """The only graph of a function, captured whole."""
    graphs: list[Any] = []

    def backend(gm: Any, example_inputs: Any) -> Any:
        graphs.append(gm.graph)
        return gm

    dynacap.compile(function, backend=backend, fullgraph=True)(*args)
    assert len(graphs) == 1
    graphs[0].lint()
    return graphs[0]


def calls(graph: Any) -> list[str]:
    """The calls of a graph, as ``op target``, without the word call."""
    return [
        f"{node.op[5:]} {getattr(node.target, '__name__', node.target)}"
        for node in graph.nodes
        if node.op.startswith("call_")
    ]


def test_one_node_for_each_operation() -> None:
    def f(x: Tensor) -> Any:
        y = F.relu(x @ x.T) + 1
        y[0] = 2
        return torch.softmax(y.view(-1), dim=0)[1:].clone()

    assert calls(capture(f, X)) == [
        "function getattr",
        "function matmul",
        "function relu",
        "function add",
        "function setitem",
        "method view",
        "function softmax",
        "function getitem",
        "method clone",
    ]


def test_metadata_leaves_no_node() -> None:
    def f(x: Tensor) -> Any:
        rows, columns = x.shape
        size = x.size(0) * x.dim() + x.numel() + len(x) + x.stride(0)
        if x.is_contiguous() and torch.is_floating_point(x) and x.dtype == torch.float32:
            return x.reshape(columns, rows) * size
        return x

    graph = capture(f, X)
    assert calls(graph) == ["method reshape", "function mul"]
    assert [node.args[1:] for node in graph.nodes if node.op.startswith("call_")] == [
        (4, 3),
        (12 + 6 + 3 + 4,),
    ]


def test_functions_written_in_python_are_one_node() -> None:
    def f(x: Tensor) -> Any:
        a = F.max_pool1d(x[None], 2, return_indices=True)
        b = torch.einsum("ij,kj->ik", x, x)
        c = F.scaled_dot_product_attention(x[None], x[None], x[None])
        return a, b, c, F.cross_entropy(x, torch.tensor([0, 1, 2])), x.norm()

    targets = calls(capture(f, X))
    for name in ("einsum", "scaled_dot_product_attention", "cross_entropy"):
        assert f"function {name}" in targets
    assert "method norm" in targets


def test_parameters_are_inputs() -> None:
    linear = nn.Linear(4, 2)

    def f(x: Tensor) -> Any:
        return linear(x) + linear.bias

    graph = capture(f, X)
    assert [node.name for node in graph.nodes if node.op == "placeholder"] == [
        "x",
        "linear_weight",
        "linear_bias",
    ]
    assert not [node for node in graph.nodes if node.op == "get_attr"]


def test_unused_items_are_dropped() -> None:
    def f(x: Tensor) -> Any:
        a, b, c = x.split(1)
        return x.max(1)[0] + b[None][..., None]

    names = calls(capture(f, X))
    assert names.count("function getitem") == 4  # one half of max, b, and the two of its views


def test_unused_inputs_are_dropped() -> None:
    def f(x: Tensor, y: Tensor) -> Any:
        return x * y.shape[0]

    graph = capture(f, X, X[0])
    assert [node.name for node in graph.nodes if node.op == "placeholder"] == ["x"]


def test_nodes_tell_metadata_and_line() -> None:
    def f(x: Tensor) -> Any:
        y = x.to(torch.float64)
        return y.max(dim=1)

    graph = capture(f, X)
    for node in graph.nodes:
        if node.op.startswith("call_"):
            assert "example_value" in node.meta
            assert user_stack(node.meta)[-1].source in (
                "y = x.to(torch.float64)",
                "return y.max(dim=1)",
            )
    to = next(node for node in graph.nodes if node.target == "to")
    assert to.meta["example_value"].dtype == torch.float64
    assert tuple(to.meta["example_value"].shape) == (3, 4)


def test_in_place_operations_are_in_order() -> None:
    def f(x: Tensor) -> Any:
        y = x + 1
        y.add_(2)
        return y * 3

    graph = capture(f, X)
    mul = next(node for node in graph.nodes if getattr(node.target, "__name__", "") == "mul")
    assert mul.args[0].target == "add_"


def test_the_backend_may_run_the_graph_elsewhere() -> None:
    def f(x: Tensor) -> Any:
        with torch.no_grad():
            y = x.sin()
        return y.split([1, 2]), x.topk(2)

    def backend(gm: Any, example_inputs: Any) -> Any:
        return gm.to_torch_fx()

    got = dynacap.compile(f, backend=backend)(X)
    torch.testing.assert_close(got, f(X))


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "item": (lambda x: x.sum().item(), "data-dependent-value"),
    "tolist": (lambda x: x.tolist(), "data-dependent-value"),
    "float": (lambda x: float(x.sum()), "data-dependent-value"),
    "branch": (lambda x: x if x.sum() > 0 else -x, "data-dependent-branch"),
    "nonzero": (lambda x: x.nonzero(), "data-dependent-shape"),
    "mask": (lambda x: x[x > 3], "data-dependent-shape"),
    "unique": (lambda x: torch.unique(x), "data-dependent-shape"),
    "equal": (lambda x: torch.equal(x, x), "data-dependent-value"),
    "numpy": (lambda x: torch.sin(x.numpy()), "numpy-interop"),
    "memory": (lambda x: x.data_ptr(), "tensor-storage"),
    "view": (lambda x: x._is_view(), "tensor-storage"),
    "hook": (lambda x: (x * 2).register_hook(print), "tensor-hook"),
    "text": (lambda x: repr(x), "tensor-print"),
    "seed": (lambda x: torch.set_rng_state(x), "random-state"),
    "data": (lambda x: setattr(x, "data", x * 2), "tensor-field-write"),
    "grad_fn": (lambda x: (x * torch.ones(2, requires_grad=True)[0]).grad_fn, "autograd-call"),
    "generator": (lambda x: torch.rand(2, generator=torch.default_generator), "random-generator"),
    "mismatch": (lambda x: x @ x, "fake-tensor-error"),
}


@pytest.mark.parametrize(("function", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_for_a_reason(function: Callable[[Tensor], Any], reason: str) -> None:
    def f(x: Tensor) -> Any:
        return function(x + 1)

    with pytest.raises(dynacap.errors.Unsupported) as caught:
        dynacap.compile(f, fullgraph=True)(X.clone())
    assert caught.value.reason == reason
    assert caught.value.detail
    assert "function(x + 1)" in str(caught.value)


def test_subclasses_with_a_dispatch_of_their_own_are_refused() -> None:
    class Loud(Tensor):
        @classmethod
        def __torch_dispatch__(  # type: ignore[override]
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    with pytest.raises(dynacap.errors.Unsupported, match="tensor-subclass"):
        dynacap.compile(lambda x: x + 1, fullgraph=True)(X.as_subclass(Loud))
