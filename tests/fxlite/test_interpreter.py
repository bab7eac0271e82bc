"""The interpreter gives what the compiled function gives, and each step can be overridden."""

import operator
from typing import Any

import pytest

from dynacap.fxlite import Graph, GraphError, GraphModule, Interpreter, Node


def sample() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value="-")
    words = graph.call_method("split", (x,), {"sep": y})
    first = graph.call_function(operator.getitem, (words, slice(0, 2)))
    joined = graph.call_module("tools.join", (first,))
    graph.output((joined, {"n": [graph.get_attr("count"), words]}))
    return GraphModule({"tools.join": "+".join, "count": 3}, graph)


def test_same_as_the_compiled_function() -> None:
    module = sample()
    for args in (("a b c", " "), ("a-b-c",)):
        assert Interpreter(module).run(*args) == module(*args)
    assert module("a-b-c") == ("a+b", {"n": [3, ["a", "b", "c"]]})


def test_a_plain_graph_with_its_attributes() -> None:
    class Root:
        bias = 5

    graph = Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (x, graph.get_attr("bias"))))
    assert Interpreter(Root(), graph).run(1) == 6


def test_methods_can_be_overridden() -> None:
    ran: list[str] = []

    class Loud(Interpreter):
        def run_node(self, node: Node) -> Any:
            ran.append(node.name)
            return super().run_node(node)

        def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            assert target == "split"
            return ["overridden", *super().call_method(target, args, kwargs)]

    assert Loud(sample()).run("a-b")[0] == "overridden+a"
    assert ran == ["x", "y", "split", "getitem", "tools_join", "count", "output"]


def test_initial_values_spare_their_nodes() -> None:
    module = sample()
    split = module.graph.find_nodes(op="call_method")[0]
    x, y = module.graph.placeholders
    result = Interpreter(module).run(initial_env={x: None, y: None, split: ["p", "q", "r"]})
    assert result[0] == "p+q"


def test_inputs_are_counted() -> None:
    with pytest.raises(GraphError, match="2 placeholders was run on 3 values"):
        Interpreter(sample()).run("a", "b", "c")
    with pytest.raises(GraphError, match="no value was given for placeholder 'x'"):
        Interpreter(sample()).run()


def test_values_are_let_go_also_by_an_exception() -> None:
    interpreter = Interpreter(sample())
    with pytest.raises(ValueError, match="empty separator"):
        interpreter.run("a", "")
    assert interpreter.env == {}
