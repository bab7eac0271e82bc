"""Dead code goes; what someone could miss stays."""

import math
import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dynacap.fxlite import Graph, GraphError, GraphModule, run_passes
from dynacap.fxlite.effects import is_impure, is_random, mutates
from dynacap.fxlite.passes import PASSES, register_pass
from dynacap.fxlite.passes.base import Pass

aten: Any = torch.ops.aten


def call(target: Any, *args: Any, **kwargs: Any) -> Any:
    graph = Graph()
    x = graph.placeholder("x")
    op = "call_method" if isinstance(target, str) else "call_function"
    given = tuple(x if arg == "x" else arg for arg in args)
    return graph.create_node(op, target, given, kwargs)


PURE: list[Any] = [
    call(torch.relu, "x"),
    call(torch.add, "x", 1),
    call(operator.add, "x", 1),
    call(operator.getitem, "x", 0),
    call(operator.and_, "x", 1),
    call(operator.not_, "x"),
    call(getattr, "x", "shape"),
    call(math.sqrt, 2.0),
    call(F.linear, "x", "x"),
    call(F.gelu, "x"),
    call(F.relu, "x"),
    call(F.relu, "x", False),
    call(F.relu, "x", inplace=False),
    call(F.embedding, "x", "x"),
    call(F.softmax, "x", dim=1),
    call(torch.cat, ["x"], out=None),
    call(aten.add.Tensor, "x", "x"),
    call(aten.add, "x", "x"),
    call("view", "x", -1),
    call("__add__", "x", 1),
    call(torch.zeros, 2),
    call(torch.linalg.norm, "x"),
    call(torch.fft.fft, "x"),
    call(torch.Tensor.add, "x", 1),
    call(F.dropout, "x", 0.5, False),
    call(F.dropout, "x", training=False, p=0.5),
    call(F.dropout, "x", 0.0),
    call(torch.dropout, "x", 0.5, False),
    call(F.scaled_dot_product_attention, "x", "x", "x"),
    call(F.scaled_dot_product_attention, "x", "x", "x", dropout_p=0.0, is_causal=True),
    call(F.batch_norm, "x", "x", "x"),
    call(F.batch_norm, "x", "x", "x", training=False),
    call(torch.batch_norm, "x", "x", "x", "x", "x", False, 0.1, 1e-5, True),
]
MUTATING: list[Any] = [
    call("add_", "x", 1),
    call("__setitem__", "x", 0, 1),
    call("__iadd__", "x", 1),
    call("backward", "x"),
    call(operator.setitem, "x", 0, 1),
    call(operator.delitem, "x", 0),
    call(operator.iadd, "x", 1),
    call(operator.ixor, "x", 1),
    call(torch.relu_, "x"),
    call(torch.add, "x", 1, out="x"),
    call(F.relu, "x", True),
    call(F.relu, "x", inplace=True),
    call(F.dropout, "x", 0.5, True, True),
    call(F.batch_norm, "x", "x", "x", training=True),
    call(torch.batch_norm, "x", "x", "x", "x", "x", True, 0.1, 1e-5, True),
    call(F.embedding, "x", "x", max_norm=1.0),
    call(aten.add_.Tensor, "x", "x"),
    call(aten.add_, "x", "x"),
    call(aten.add.out, "x", "x", out="x"),
    call(torch.Tensor.add_, "x", 1),
]
RANDOM: list[Any] = [
    call(torch.rand, 2),
    call(torch.randn_like, "x"),
    call(torch.bernoulli, "x"),
    call(torch.normal, "x"),
    call(F.dropout, "x"),
    call(torch.dropout, "x", 0.5, True),
    call(F.gumbel_softmax, "x"),
    call(F.scaled_dot_product_attention, "x", "x", "x", None, 0.1),
    call("bernoulli", "x"),
    call("multinomial", "x", 1),
    call(aten.rand.default, [2]),
    call(aten.native_dropout.default, "x", 0.5, True),
]
UNKNOWN: list[Any] = [
    call(print, "x"),
    call(lambda x: x, "x"),
    call(torch.manual_seed, 0),
    call(torch._C._set_grad_enabled, False),
    call(torch._assert, "x", "message"),
    call(torch.set_default_dtype, torch.float64),
    call(next, "x"),
]


def describe(node: Any) -> str:
    return str(node.format_node())


@pytest.mark.parametrize("node", PURE, ids=describe)
def test_pure(node: Any) -> None:
    assert not mutates(node)
    assert not is_random(node)
    assert not is_impure(node)


@pytest.mark.parametrize("node", MUTATING, ids=describe)
def test_mutating(node: Any) -> None:
    assert mutates(node)
    assert is_impure(node)


@pytest.mark.parametrize("node", RANDOM, ids=describe)
def test_random(node: Any) -> None:
    assert is_random(node)
    assert is_impure(node)


@pytest.mark.parametrize("node", UNKNOWN, ids=describe)
def test_unknown(node: Any) -> None:
    assert is_impure(node)


def test_chains_go_and_inputs_stay() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    unused = graph.placeholder("unused")
    node = x
    for _ in range(5):
        node = graph.call_function(torch.sin, (node,))
    graph.get_attr("weight")
    kept = graph.call_function(torch.cos, (x,))
    graph.output((kept,))
    assert graph.eliminate_dead_code()
    graph.lint()
    assert list(graph.nodes) == [x, unused, kept, graph.output_node()]
    assert not graph.eliminate_dead_code()


def test_a_dead_view_that_is_written_through_stays() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    view = graph.call_method("view", (x, -1))
    graph.call_function(operator.setitem, (view, 0, 7.0))
    graph.call_method("view", (x, 1))
    graph.output((x,))
    run_passes(graph, ["dce"], lint=True)
    value = torch.zeros(2, 2)
    (result,) = GraphModule({}, graph)(value)
    assert result is value
    assert value[0, 0] == 7
    assert graph.node_count == 4


def test_the_random_stream_is_eagers() -> None:
    graph = Graph()
    graph.call_function(torch.rand, (3,))
    graph.call_function(torch.ones, (3,))
    graph.output((graph.call_function(torch.rand, (2,)),))
    graph.eliminate_dead_code()
    module = GraphModule({}, graph)
    torch.manual_seed(5)
    torch.rand(3)
    expected = torch.rand(2)
    torch.manual_seed(5)
    assert torch.equal(module()[0], expected)
    assert graph.node_count == 3


def test_what_counts_as_impure_can_be_given() -> None:
    graph = Graph()
    graph.call_method("add_", (graph.placeholder("x"), 1))
    graph.output(())
    graph.eliminate_dead_code(lambda node: False)
    assert graph.node_count == 2


def test_passes_are_found_by_name() -> None:
    assert "dce" in PASSES
    with pytest.raises(GraphError, match="no pass is called 'dse'; there are: dce"):
        run_passes(Graph(), ["dse"])

    class Nameless(Pass):
        """No name."""

    class Taken(Pass):
        """Another's name."""

        name = "dce"

    for kind in (Nameless, Taken):
        with pytest.raises(GraphError, match="cannot register pass"):
            register_pass(kind)
