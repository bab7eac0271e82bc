"""To torch.fx and back: nothing is lost on the way."""

import copy
import gc
import operator
import pickle
from typing import Any

import pytest
import torch
import torch.fx as fx
from torch import nn

from dynacap.errors import UserFrame
from dynacap.fxlite import Graph, GraphModule
from dynacap.fxlite.locations import user_stack


class Model(nn.Module):
    """Calls of every kind."""

    table: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("table", torch.arange(3.0))

    def forward(self, x: torch.Tensor, scale: float = 2.0) -> dict[str, Any]:
        """Modules, attributes, slices, nested containers, a default."""
        y = self.layer(x) * self.weight + self.table
        parts = torch.cat([y, x], dim=-1)[..., 1:, None]
        return {"parts": (parts, scale), "sum": [y.sum(dim=0), torch.zeros(2, dtype=torch.int32)]}


class Tracked(torch.Tensor):
    """A tensor that can be counted."""


def describe(graph: Any) -> list[tuple[Any, ...]]:
    """What a round trip must keep of either kind of graph."""
    return [
        (node.op, node.name, node.target, str(node.args), str(node.kwargs), node.type)
        for node in graph.nodes
    ]


def flat(result: dict[str, Any]) -> list[torch.Tensor]:
    return [result["parts"][0], *result["sum"]]


def test_from_torch_to_torch() -> None:
    torch.manual_seed(0)
    original = fx.symbolic_trace(Model())
    module = GraphModule.from_torch_fx(original)
    module.lint()
    back = module.to_torch_fx()
    back.graph.lint()
    assert describe(module.graph) == describe(original.graph) == describe(back.graph)
    assert back.state_dict().keys() == original.state_dict().keys()
    assert back.weight is original.weight
    assert isinstance(back.table, torch.Tensor)
    assert "table" in dict(back.named_buffers())
    x = torch.randn(2, 3)
    expected = flat(original(x))
    for run in (module, back):
        for got, wanted in zip(flat(run(x)), expected, strict=True):
            assert torch.equal(got, wanted)


def test_to_torch_and_back() -> None:
    graph = Graph()
    x = graph.placeholder("x", type_expr=torch.Tensor)
    y = graph.create_node("placeholder", "L_x_", name="renamed_input")
    graph.rename(y, "lambda_")
    part = graph.call_function(operator.getitem, (x, (slice(None, 2), None, ...)))
    made = graph.call_function(
        torch.ops.aten.full.default,
        ([2, 3], float("inf")),
        {"dtype": torch.float64, "device": torch.device("cpu"), "layout": torch.strided},
    )
    moved = graph.call_method("to", (part, torch.bfloat16), {"memory_format": None})
    nested = graph.call_function(dict, (), {"a": [x, {"b": (y, moved)}], "s": slice(x, 3)})
    nested.meta.update(example_value=[1], source_stack=(UserFrame("u.py", 3, "f"),), custom="kept")
    graph.output((nested, made, graph.get_attr("inner.constant")))
    attributes = {
        "inner.constant": torch.ones(1),
        "unused": torch.zeros(2),
        "inner.also": nn.Parameter(torch.ones(2)),
    }
    module = GraphModule(attributes, graph, "my_graph")
    module.meta["note"] = 1
    converted = module.to_torch_fx()
    converted.graph.lint()
    back = GraphModule.from_torch_fx(converted)
    assert describe(back.graph) == describe(module.graph)
    assert back.attributes.keys() == module.attributes.keys()
    assert all(back.attributes[name] is value for name, value in module.attributes.items())
    assert (back.meta, back.name) == (module.meta, "my_graph")
    restored = next(node for node in back.graph.nodes if node.target is dict)
    assert nested.meta.items() <= restored.meta.items()
    assert user_stack({"stack_trace": restored.meta["stack_trace"]}) == (UserFrame("u.py", 3, "f"),)
    assert type(restored.kwargs["a"]) is list
    assert type(restored.kwargs["a"][1]) is dict


def test_graphs_as_attributes_are_converted_too() -> None:
    inner = Graph()
    inner.output((inner.call_function(torch.sin, (inner.placeholder("x"),)),))
    graph = Graph()
    x = graph.placeholder("x")
    branch = graph.get_attr("branch")
    graph.output((graph.call_module("branch", (x,)), graph.call_function(type, (branch,))))
    module = GraphModule({"branch": GraphModule({}, inner)}, graph)
    converted = module.to_torch_fx()
    assert isinstance(converted.branch, fx.GraphModule)
    value = torch.ones(2)
    assert torch.equal(converted(value)[0][0], value.sin())
    back = GraphModule.from_torch_fx(converted)
    assert isinstance(back.branch, GraphModule)
    assert torch.equal(back(value)[0][0], value.sin())


def test_torch_code_is_spelled_publicly() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    a = graph.call_function(torch._C._nn.gelu, (x,), {"approximate": "tanh"})
    b = graph.call_function(torch.conv2d, (a, x), {"padding": torch.Size([1, 1])})
    c = graph.call_function(torch.ops.aten.add.Tensor, (b, x))
    d = graph.call_function(torch.nn.functional.relu, (c,))
    e = graph.call_method("to", (d, torch.device("cpu"), torch.float16))
    f = graph.call_function(torch.zeros, (2,), {"device": torch.device("cpu")})
    graph.output((e, f, torch.channels_last))
    assert GraphModule({}, graph).code == (
        "import torch\n"
        "cpu = torch.device('cpu')\n"
        "\n"
        "\n"
        "def forward(self, x):\n"
        "    # 1 inputs\n"
        "    gelu = torch.nn.functional.gelu(x, approximate='tanh')\n"
        "    conv2d = torch.conv2d(gelu, x, padding=torch.Size([1, 1]));  gelu = None\n"
        "    add_tensor = torch.ops.aten.add.Tensor(conv2d, x);  conv2d = x = None\n"
        "    relu = torch.nn.functional.relu(add_tensor);  add_tensor = None\n"
        "    to = relu.to(cpu, torch.float16);  relu = None\n"
        "    zeros = torch.zeros(2, device=cpu)\n"
        "    return (to, zeros, torch.channels_last)\n"
    )


def test_operators_of_torch_survive_pickle_and_deepcopy() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.add.Tensor, (x, graph.get_attr("w")))
    z = graph.call_function(torch.ops.aten.mul, (y, 2))
    w = graph.call_function(torch.nn.functional.softmax, (z,), {"dim": -1, "dtype": torch.float64})
    graph.output((w,))
    module = GraphModule({"w": nn.Parameter(torch.ones(3))}, graph)
    value = torch.randn(3)
    for copied in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        assert torch.equal(copied(value)[0], module(value)[0])
        assert copied.w is not module.w
        assert isinstance(copied.w, nn.Parameter)


def test_peak_memory_is_eagers() -> None:
    """Whatever is alive at each step in eager is alive here, and no more."""

    def alive(value: torch.Tensor) -> torch.Tensor:
        gc.collect()
        counts.append(sum(type(o) is Tracked for o in gc.get_objects()))
        return (value + 1).as_subclass(Tracked)

    counts: list[int] = []
    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(4):
        node = graph.call_function(alive, (node,))
    graph.output((node,))
    GraphModule({}, graph)(torch.ones(1))
    found = counts.copy()
    counts.clear()
    value = torch.ones(1)
    for _ in range(4):
        value = alive(value)
    assert found == counts


def test_errors_of_operations_are_torchs_own() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    node = graph.call_function(torch.mm, (x, x))
    node.meta["source_loc"] = (__file__, 3, "user_function")
    graph.output((node,))
    value = torch.ones(2, 3)
    with pytest.raises(RuntimeError) as eager:
        torch.mm(value, value)
    with pytest.raises(RuntimeError) as compiled:
        GraphModule({}, graph)(value)
    assert str(compiled.value) == str(eager.value)
    assert compiled.traceback[-1].name == "user_function"
