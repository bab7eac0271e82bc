"""The graph module: attributes, compiled function, copies, lifetimes."""

import copy
import gc
import linecache
import operator
import pickle
import types
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dynacap.fxlite import Graph, GraphError, GraphModule, Interpreter


class Value:
    """Something that can be watched by a weak reference."""

    def __init__(self, number: int = 0) -> None:
        self.number = number

    def plus(self, other: int) -> "Value":
        return Value(self.number + other)


def scale_graph() -> Graph:
    graph = Graph()
    product = graph.call_function(operator.mul, (graph.placeholder("x"), graph.get_attr("w.scale")))
    graph.output((product,))
    return graph


def test_attributes_from_a_mapping_or_an_object() -> None:
    holder = types.SimpleNamespace(w=types.SimpleNamespace(scale=3, other=4), more=1)
    for root in ({"w.scale": 3}, holder):
        module = GraphModule(root, scale_graph())
        assert module.attributes == {"w.scale": 3}
        assert module.w.scale == 3
        assert module(2) == (6,)
        module.w.scale = 5
        assert module(2) == (10,)
        module.lint()
    assert holder.w.scale == 3


def test_simple_attributes_can_be_assigned() -> None:
    graph = Graph()
    graph.output((graph.get_attr("bias"),))
    module = GraphModule({"bias": 1}, graph)
    module.bias = 2
    module.note = "mine"
    assert module() == (2,)
    assert module.attributes == {"bias": 2}
    with pytest.raises(AttributeError, match="has no 'missing'"):
        _ = module.missing


def test_a_module_inside_a_module() -> None:
    inner = types.SimpleNamespace(weight=2)
    graph = Graph()
    graph.output((graph.get_attr("inner"), graph.get_attr("inner.weight")))
    module = GraphModule({"inner.weight": inner.weight, "inner": inner}, graph)
    assert module() == (inner, 2)


def test_missing_attributes_are_named() -> None:
    with pytest.raises(GraphError, match=r"attribute 'w.scale'.*found no 'w'"):
        GraphModule(object(), scale_graph())
    module = GraphModule({}, scale_graph())
    with pytest.raises(GraphError, match=r"attribute that is not there at node '%w_scale"):
        module.lint()


def test_forward_is_a_plain_function_where_no_attribute_is_used() -> None:
    graph = Graph()
    graph.output((graph.placeholder("x"),))
    module = GraphModule({"unused": 1}, graph)
    assert type(module.forward) is types.FunctionType
    assert module.forward.__code__.co_varnames[:1] == ("x",)
    assert module.forward is module.forward


def test_changes_show_after_recompile() -> None:
    module = GraphModule({"w.scale": 3}, scale_graph())
    assert module(1) == (3,)
    node = module.graph.find_nodes(op="call_function")[0]
    node.target = operator.add
    module.recompile()
    assert module(1) == (4,)
    assert "x + w_scale" in module.code
    module.graph = scale_graph()
    assert module(1) == (3,)


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_copies(duplicate: Callable[[GraphModule], GraphModule]) -> None:
    module = GraphModule({"w.scale": [1, 2]}, scale_graph(), "named")
    copied = duplicate(module)
    assert copied(2) == module(2) == ([1, 2, 1, 2],)
    assert copied.name == "named"
    assert copied.graph is not module.graph
    assert (copied.w.scale is module.w.scale) == (duplicate is copy.copy)


def test_values_are_dropped_after_their_last_use() -> None:
    alive: list[weakref.ref[Value]] = []
    counts = []

    def make(value: Value) -> Value:
        gc.collect()
        counts.append(sum(ref() is not None for ref in alive))
        made = value.plus(1)
        alive.append(weakref.ref(made))
        return made

    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(4):
        node = graph.call_function(make, (node,))
    graph.output((node,))
    module = GraphModule({}, graph)
    for run in (module, Interpreter(module).run):
        alive.clear()
        counts.clear()
        assert run(Value())[0].number == 4
        assert counts == [0, 1, 1, 1]


def test_function_outlives_module_and_graph_but_holds_neither() -> None:
    module = GraphModule({"w.scale": 3}, scale_graph())
    dead: list[weakref.ref[Any]] = [
        weakref.ref(module),
        weakref.ref(module.graph.placeholders[0]),
    ]
    function = module.forward
    del module
    gc.collect()
    assert [ref() for ref in dead] == [None, None]
    assert function(2) == (6,)


def test_source_leaves_linecache_with_the_function() -> None:
    before = set(linecache.cache)
    module = GraphModule({}, Graph())
    module.forward()
    assert len(set(linecache.cache) - before) == 1
    del module
    gc.collect()
    assert set(linecache.cache) <= before


def test_wrong_number_of_arguments_is_pythons_own_error() -> None:
    module = GraphModule({"w.scale": 3}, scale_graph())
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        module()
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        module(1, 2)


def test_print_readable(capsys: pytest.CaptureFixture[str]) -> None:
    module = GraphModule({"w.scale": 3}, scale_graph())
    text: Any = module.print_readable()
    assert capsys.readouterr().out.strip() == text.strip()
    assert repr(module).startswith("<GraphModule graph_")
