"""Every torch.compile backend gets a torch.fx graph and gives eager's results."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from dynacap.backends import (
    TorchBackend,
    backend_name,
    compile_graph,
    list_backends,
    lookup_backend,
)
from dynacap.errors import BackendCompilerFailed
from dynacap.fxlite import Graph, GraphModule

SLOW = pytest.mark.slow
NAMES = [
    "aot_eager",
    "eager",
    "interpreter",
    pytest.param("aot_eager_decomp_partition", marks=SLOW),
    pytest.param("inductor", marks=SLOW),
]


def training_step() -> GraphModule:
    """Parameters as placeholders, a write into an input, two results."""
    graph = Graph()
    x, w, b, seen = (graph.placeholder(name) for name in ("x", "w", "b", "seen"))
    graph.call_method("add_", (seen, 1))
    hidden = graph.call_function(F.linear, (x, w, b))
    active = graph.call_function(F.gelu, (hidden,), {"approximate": "tanh"})
    graph.output((active, graph.call_method("mean", (active,), {"dim": [0]})))
    return GraphModule({}, graph)


def inputs() -> list[Any]:
    torch.manual_seed(0)
    weight, bias = nn.Parameter(torch.randn(3, 5)), nn.Parameter(torch.randn(3))
    return [torch.randn(4, 5), weight, bias, torch.zeros(2)]


def results(run: Callable[..., Any], values: list[Any]) -> list[torch.Tensor]:
    """Outputs, gradients and mutated inputs of a training step."""
    for value in values[1:3]:
        value.grad = None
    outputs = run(*values)
    (outputs[0].sum() + outputs[1].square().sum()).backward()
    return [*(out.detach() for out in outputs), values[1].grad, values[2].grad, values[3]]


@pytest.mark.parametrize("name", NAMES)
def test_training_as_in_eager(name: str) -> None:
    expected = results(training_step(), inputs())
    values = inputs()
    compiled = compile_graph(lookup_backend(name), training_step(), values)
    assert torch.equal(values[3], torch.zeros(2))
    found = results(compiled, values)
    for got, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(got, wanted)


def dynamic_step() -> tuple[GraphModule, ShapeEnv]:
    """A graph over a batch of symbolic size, with the size as an input."""
    shape_env = ShapeEnv()
    mode = FakeTensorMode(shape_env=shape_env)
    dynamic: Any = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    fake_x = mode.from_tensor(torch.randn(4, 5), symbolic_context=dynamic)
    graph = Graph()
    x, w, size = (graph.placeholder(name) for name in ("x", "w", "size"))
    x.meta["example_value"] = fake_x
    w.meta["example_value"] = mode.from_tensor(nn.Parameter(torch.randn(3, 5)), static_shapes=True)
    size.meta["example_value"] = fake_x.shape[0]
    hidden = graph.call_function(F.silu, (graph.call_function(F.linear, (x, w)),))
    graph.output((graph.call_method("view", (hidden, size, 3, 1)),))
    return GraphModule({}, graph), shape_env


@pytest.mark.parametrize("name", ["aot_eager", pytest.param("inductor", marks=SLOW)])
def test_one_compile_serves_all_sizes(name: str) -> None:
    module, shape_env = dynamic_step()
    weight = nn.Parameter(torch.randn(3, 5))
    compiled = compile_graph(lookup_backend(name), module, [torch.randn(4, 5), weight, 4])
    for size in (4, 7, 2):
        x = torch.randn(size, 5)
        (found,) = compiled(x, weight, size)
        (wanted,) = module(x, weight, size)
        torch.testing.assert_close(found, wanted)
        gradients = [torch.autograd.grad(out.sum(), weight)[0] for out in (found, wanted)]
        torch.testing.assert_close(*gradients)
    assert shape_env.guards == []


def test_shared_memory_with_symbolic_sizes_is_refused() -> None:
    module, _ = dynamic_step()
    memory = torch.randn(30)
    shared = [memory[:20].view(4, 5), memory[15:].view(3, 5), 4]
    with pytest.raises(BackendCompilerFailed, match="'x' and 'w' share memory"):
        compile_graph(lookup_backend("aot_eager"), module, shared)


def test_torch_names_are_listed_and_found() -> None:
    assert "inductor" in list_backends()
    assert "aot_eager" in list_backends(exclude_tags=())
    found = lookup_backend("aot_eager")
    assert isinstance(found, TorchBackend)
    assert backend_name(found) == "aot_eager"


def test_inductor_takes_mode_and_options() -> None:
    found = lookup_backend("inductor", mode="max-autotune", options={"max_fusion_size": 3})
    assert isinstance(found, TorchBackend)
    config: dict[str, Any] = vars(found.compile_fn)["config"]
    assert config["max_fusion_size"] == 3
    assert config["max_autotune"] is True
    with pytest.raises(RuntimeError, match="Unexpected optimization option nonsense"):
        lookup_backend("inductor", options={"nonsense": 1})


def test_callables_from_torch_get_a_torch_graph() -> None:
    kinds: list[type] = []

    def compiler(graph_module: fx.GraphModule, example_inputs: Any) -> Any:
        kinds.append(type(graph_module).__mro__[1])
        return graph_module.forward

    backend = aot_autograd(fw_compiler=compiler)
    for given in (backend, partial(backend)):
        found = lookup_backend(given)
        assert isinstance(found, TorchBackend)
        values = inputs()
        compile_graph(found, training_step(), values)
    assert kinds[0] is fx.GraphModule
    assert lookup_backend(compiler) is compiler


def test_a_failing_torch_backend_names_the_node() -> None:
    class Broken(fx.Interpreter):
        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            raise NotImplementedError("no such lowering")

    def compile_fn(graph_module: fx.GraphModule, example_inputs: Any) -> Any:
        return Broken(graph_module).run(*example_inputs)

    with pytest.raises(BackendCompilerFailed, match="no such lowering") as caught:
        compile_graph(TorchBackend(compile_fn, "broken"), training_step(), inputs())
    assert caught.value.backend == "broken"
    assert caught.value.node.startswith("%add_ = call_method add_(%seen, 1)")
