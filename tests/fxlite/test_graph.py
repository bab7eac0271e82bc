"""Building and changing graphs."""

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from dynacap.fxlite import Graph, GraphError, Node


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.nodes]


def example() -> Graph:
    graph = Graph()
    x = graph.placeholder("x")
    doubled = graph.call_function(operator.mul, (x, 2))
    text = graph.call_method("format", ("{}", [doubled]), {"key": (x, slice(x, None))})
    text.meta.update(source_loc=("user.py", 3, "f"), example_value=object())
    graph.output((text, {"doubled": doubled}))
    return graph


def test_names_are_unique_readable_and_never_shadow_builtins() -> None:
    graph = Graph()
    x = graph.placeholder("input")
    graph.call_function(abs, (x,))
    graph.call_function(abs, (x,))
    graph.create_node("call_function", operator.add, (x, x), name="total")
    graph.create_node("call_function", operator.add, (x, x), name="total")
    graph.create_node("call_function", operator.add, (x, x), name="class")
    graph.create_node("call_function", operator.add, (x, x), name="not a name")
    graph.get_attr("layers.0.weight")
    assert names(graph) == [
        "input_1", "abs_1", "abs_2", "total", "total_1", "class_1", "not_a_name", "layers_0_weight"
    ]  # fmt: skip


def test_names_hold_no_address() -> None:
    graph = Graph()
    for address in ("7fc0fcf0d3b0", "1"):
        graph.placeholder(f"state_Parameter_object_at_0x{address}_step")
    assert names(graph) == ["state_Parameter_step", "state_Parameter_step_1"]


def test_names_stay_unique_when_a_made_name_was_taken_by_hand() -> None:
    graph = Graph()
    x = graph.placeholder("add_1")
    for _ in range(3):
        graph.call_function(operator.add, (x, x))
    assert names(graph) == ["add_1", "add", "add_2", "add_3"]


def test_targets_that_cannot_be_hashed() -> None:
    class Callable_(dict[str, Any]):
        def __call__(self) -> int:
            return 1

    graph = Graph()
    target: Callable[[], int] = Callable_()
    graph.call_function(target)
    graph.output((graph.call_function(target),))
    assert names(graph)[:2] == ["callable", "callable_1"] or len(set(names(graph))) == 3
    graph.lint()


def test_unknown_op_is_refused() -> None:
    with pytest.raises(GraphError, match=r"'call_everything'.*kinds are call_function"):
        Graph().create_node("call_everything", abs)


def test_insertion_point() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    last = graph.call_function(abs, (x,), None)
    with graph.inserting_before(last):
        graph.create_node("call_function", abs, (x,), name="before")
        graph.create_node("call_function", abs, (x,), name="before_too")
        with graph.inserting_after(last):
            graph.create_node("call_function", abs, (x,), name="after")
            graph.create_node("call_function", abs, (x,), name="after_too")
        graph.create_node("call_function", abs, (x,), name="before_again")
    with graph.inserting_before():
        graph.placeholder("zero")
    with graph.inserting_after():
        graph.placeholder("end")
    graph.placeholder("at_end")
    assert names(graph) == [
        "zero", "x", "before", "before_too", "before_again", "abs_1", "after", "after_too",
        "end", "at_end",
    ]  # fmt: skip


def test_insertion_point_survives_the_erasure_of_its_node() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    gone = graph.call_function(abs, (x,))
    graph.create_node("call_function", abs, (x,), name="last")
    with graph.inserting_before(gone):
        graph.erase_node(gone)
        graph.create_node("call_function", abs, (x,), name="here")
    assert names(graph) == ["x", "here", "last"]


def test_erasing() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    used = graph.call_function(abs, (x,))
    user = graph.call_function(operator.neg, (used,))
    with pytest.raises(GraphError, match=r"cannot erase '%abs_1.*used by %neg"):
        graph.erase_node(used)
    graph.erase_node(user)
    graph.erase_node(used)
    graph.erase_node(used)
    assert names(graph) == ["x"]
    assert (x.users, graph.node_count, len(graph.nodes)) == ({}, 1, 1)
    with pytest.raises(GraphError, match="belongs to another graph"):
        Graph().erase_node(x)


def test_the_graph_may_change_while_one_iterates() -> None:
    graph = Graph()
    x = graph.placeholder("x")
    for _ in range(4):
        graph.call_function(abs, (x,))
    seen = []
    for node in graph.nodes:
        seen.append(node.name)
        if node.name == "abs_2":
            graph.erase_node(node)
            graph.erase_node(next(n for n in graph.nodes if n.name == "abs_3"))
    assert seen == ["x", "abs_1", "abs_2", "abs_4"]


def test_queries() -> None:
    graph = example()
    assert [node.name for node in graph.placeholders] == ["x"]
    assert [n.name for n in graph.find_nodes(op="call_function", target=operator.mul)] == ["mul"]
    assert graph.output_node().op == "output"
    with pytest.raises(GraphError, match=r"end it with graph\.output"):
        Graph().output_node()


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda graph: pickle.loads(pickle.dumps(graph))]
)
def test_copies_are_equal_and_apart(duplicate: Callable[[Graph], Graph]) -> None:
    graph = example()
    graph.rename(graph.placeholders[0], "renamed")
    copied = duplicate(graph)
    copied.lint()
    assert str(copied) == str(graph)
    text = copied.find_nodes(op="call_method")[0]
    assert text.meta["source_loc"] == ("user.py", 3, "f")
    text.meta["source_loc"] = None
    text.kwargs = {}
    assert str(copied) != str(graph)
    assert graph.find_nodes(op="call_method")[0].meta["source_loc"] == ("user.py", 3, "f")
    graph.lint()


def test_pickling_a_long_graph_does_not_recurse() -> None:
    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(5000):
        node = graph.call_function(operator.add, (node, 1))
    graph.output((node,))
    assert str(pickle.loads(pickle.dumps(graph))) == str(graph)


def test_graph_copy_into_another() -> None:
    inner = example()
    outer = Graph()
    value = outer.call_function(abs, (outer.placeholder("y"),))
    mapping: dict[Node, Node] = {inner.placeholders[0]: value}
    result = outer.graph_copy(inner, mapping)
    outer.output(result)
    outer.lint()
    assert names(outer) == ["y", "abs_1", "mul", "format_1", "output"]
    assert mapping[inner.placeholders[0]].users


@pytest.mark.parametrize("name", ["taken", "not a name", "class", "print"])
def test_rename_refuses_what_lint_would(name: str) -> None:
    graph = Graph()
    node = graph.placeholder("x")
    graph.placeholder("taken")
    with pytest.raises(GraphError, match="cannot rename"):
        graph.rename(node, name)
