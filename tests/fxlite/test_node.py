"""Edges between nodes: arguments on one side, users on the other, always the same."""

import operator
from collections import OrderedDict, namedtuple
from typing import Any

import pytest

from dynacap.fxlite import Graph, GraphError, Node, map_arg
from dynacap.fxlite.node import base_name, iter_nodes

Pair = namedtuple("Pair", ["first", "second"])


def two_inputs() -> tuple[Graph, Node, Node]:
    graph = Graph()
    return graph, graph.placeholder("a"), graph.placeholder("b")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda a, b: (a, b),
        lambda a, b: [a, [b]],
        lambda a, b: {"x": a, "y": (b, {"z": b})},
        lambda a, b: slice(a, None, b),
        lambda a, b: Pair(a, [b]),
        lambda a, b: OrderedDict(x=a, y=b),
        lambda a, b: (1, "text", None, ..., 2.5, a, slice(0, b), int),
    ],
)
def test_nodes_are_found_at_any_depth(wrap: Any) -> None:
    graph, a, b = two_inputs()
    value = wrap(a, b)
    by_position = graph.call_function(print, (value,))
    by_keyword = graph.call_function(print, (), {"key": value})
    for node in (by_position, by_keyword):
        assert node.all_input_nodes == [a, b]
    assert list(a.users) == list(b.users) == [by_position, by_keyword]
    assert by_position.args[0] == value
    assert type(by_keyword.kwargs["key"]) is type(value)
    graph.output(None)
    graph.lint()


def test_containers_are_copied_so_that_their_owner_may_change_them() -> None:
    graph, a, b = two_inputs()
    items = [a]
    options = {"dim": [0]}
    node = graph.call_function(sum, (items,), options)
    items.append(b)
    options["dim"].append(1)
    assert node.args == ([a],)
    assert node.kwargs == {"dim": [0]}


def test_assigning_args_moves_the_users() -> None:
    graph, a, b = two_inputs()
    node = graph.call_function(operator.add, (a, a))
    node.args = (a, b)
    assert node.all_input_nodes == [a, b]
    node.args = (b, 1)
    assert (list(a.users), list(b.users)) == ([], [node])
    node.update_arg(1, a)
    node.update_kwarg("alpha", 2)
    node.insert_arg(0, "first")
    args: object = node.args  # of another shape than mypy remembers
    assert args == ("first", b, a)
    assert node.kwargs == {"alpha": 2}
    assert list(a.users) == [node]


def test_replace_all_uses_with() -> None:
    graph, a, b = two_inputs()
    total = graph.call_function(operator.add, (a, a))
    nested = graph.call_function(print, ([a],), {"sep": a})
    graph.output((a,))
    replaced = a.replace_all_uses_with(b, lambda user: user is not nested)
    assert replaced == [total, graph.output_node()]
    assert total.args == (b, b)
    assert list(a.users) == [nested]
    graph.lint()


def test_replacing_a_node_by_one_computed_from_it() -> None:
    graph, a, _ = two_inputs()
    graph.output((a,))
    with graph.inserting_before(graph.output_node()):
        doubled = graph.call_function(operator.mul, (a, 2))
    a.meta["note"] = "kept"
    a.replace_all_uses_with(doubled, propagate_meta=True)
    assert doubled.args == (a, 2)
    assert graph.output_node().args == ((doubled,),)
    assert doubled.meta["note"] == "kept"
    graph.lint()


def test_moving_nodes() -> None:
    graph, a, b = two_inputs()
    first = graph.call_function(abs, (a,))
    second = graph.call_function(abs, (b,))
    first.prepend(second)
    assert list(graph.nodes) == [a, b, second, first]
    second.prepend(second)
    second.append(second)
    first.append(second)
    assert list(graph.nodes) == [a, b, first, second]
    assert list(reversed(graph.nodes)) == [second, first, b, a]
    assert (first.next, first.prev) == (second, b)
    with pytest.raises(GraphError, match="different graphs"):
        first.prepend(Graph().placeholder("x"))


def test_map_arg_leaves_other_values_alone() -> None:
    _, a, b = two_inputs()
    value = {"k": [a, (1, slice(b, 2))], "n": None}
    assert map_arg(value, lambda node: node.name) == {"k": ["a", (1, slice("b", 2))], "n": None}
    assert list(iter_nodes(value)) == [a, b]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (operator.getitem, "getitem"),
        ("__add__", "add"),
        ("layers.0.weight", "layers_0_weight"),
        ("0.weight", "_0_weight"),
        ("?", "_"),
        ("add_", "add_"),
        ("_private", "private"),
        (Pair, "pair"),
        (OrderedDict, "ordered_dict"),
        (lambda x: x, "lambda"),
    ],
)
def test_readable_names(target: Any, expected: str) -> None:
    assert base_name(target) == expected


def test_text_of_a_node() -> None:
    graph, a, b = two_inputs()
    node = graph.call_function(operator.add, (a, [b, 1]), {"alpha": b})
    assert node.format_node() == "%add = call_function operator.add(%a, [%b, 1], alpha=%b)"
    assert repr(node) == "add"
