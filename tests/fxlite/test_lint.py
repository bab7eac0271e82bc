"""Each way in which a graph can be broken is found, with the node in the message."""

import operator
from collections.abc import Callable
from typing import Any

import pytest

from dynacap.fxlite import Graph, GraphError, GraphModule, Node


def sample() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    total = graph.call_function(operator.add, (x, [1, x]))
    method = graph.call_method("copy", (total,))
    graph.output((method,))
    graph.lint()
    return graph


def find(graph: Graph, name: str) -> Node:
    return next(node for node in graph.nodes if node.name == name)


def use_before_definition(graph: Graph) -> None:
    find(graph, "add").prepend(find(graph, "copy"))


def nested_list_changed(graph: Graph) -> None:
    find(graph, "add").args[1].append(find(graph, "copy"))


def users_changed(graph: Graph) -> None:
    find(graph, "x").users.clear()


def stranger_among_users(graph: Graph) -> None:
    find(graph, "copy").users[find(graph, "add")] = None


def erased_user(graph: Graph) -> None:
    node = graph.call_function(abs, ())
    graph.erase_node(node)
    find(graph, "x").users[node] = None


def name_twice(graph: Graph) -> None:
    find(graph, "copy").name = "add"


def name_is_builtin(graph: Graph) -> None:
    find(graph, "copy").name = "print"


def target_not_callable(graph: Graph) -> None:
    find(graph, "add").target = "add"


def target_not_a_string(graph: Graph) -> None:
    find(graph, "copy").target = abs


def unknown_op(graph: Graph) -> None:
    find(graph, "copy").op = "call"


def no_receiver(graph: Graph) -> None:
    find(graph, "copy").args = ()


def node_after_output(graph: Graph) -> None:
    graph.call_function(abs, (1,))


def late_placeholder(graph: Graph) -> None:
    with graph.inserting_before(graph.output_node()):
        graph.placeholder("late")


def foreign_node(graph: Graph) -> None:
    find(graph, "add").args = (Graph().placeholder("y"),)


def broken_chain(graph: Graph) -> None:
    find(graph, "add")._prev = find(graph, "copy")


def lost_node(graph: Graph) -> None:
    find(graph, "copy").replace_all_uses_with(find(graph, "add"))
    find(graph, "copy")._unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (use_before_definition, "comes later.*move it with node.append"),
        (nested_list_changed, "arguments that hold .* assign node.args"),
        (users_changed, "does not have it among its users"),
        (stranger_among_users, "that does not use it"),
        (erased_user, "that is not in the graph"),
        (name_twice, "taken twice, also by '%add"),
        (name_is_builtin, "the name 'print'.* neither a keyword nor a builtin"),
        (target_not_callable, "target is str, not a callable.* use call_method"),
        (target_not_a_string, "not a string.* use call_function"),
        (unknown_op, "unknown op 'call'"),
        (no_receiver, "without a receiver"),
        (node_after_output, "a node after the output"),
        (late_placeholder, "a placeholder after '%copy"),
        (foreign_node, "'y' of another graph"),
        (broken_chain, "a broken chain"),
        (lost_node, "3 nodes where the graph counts 4"),
    ],
)
def test_damage_is_found(damage: Callable[[Graph], None], message: str) -> None:
    graph = sample()
    damage(graph)
    with pytest.raises(GraphError, match=rf"(?s)lint found .*{message}"):
        graph.lint()


def test_the_users_line_is_shown() -> None:
    graph = sample()
    node = find(graph, "copy")
    node.meta["stack_trace"] = '  File "user.py", line 3, in f\n'
    node.args = ()
    with pytest.raises(GraphError, match=r'%copy.*from File "user.py", line 3, in f'):
        graph.lint()


def test_what_a_module_calls_must_be_callable() -> None:
    graph = Graph()
    graph.output((graph.call_module("layer", ()),))
    root: dict[str, Any] = {"layer": 3}
    with pytest.raises(GraphError, match="call_module of int, which is not callable"):
        GraphModule(root, graph).lint()
    root["layer"] = int
    GraphModule(root, graph).lint()
