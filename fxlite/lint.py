"""What must hold in every graph; each violation is shown with the node and what to do."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from dynacap.errors import GraphError
from dynacap.fxlite.attributes import get_attribute
from dynacap.fxlite.node import OPS, RESERVED_NAMES, Node, iter_nodes

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph


def lint_graph(graph: "Graph", attributes: object | None = None) -> None:
    """Check ``graph``; with ``attributes``, also that what its nodes name is there."""
    before: dict[Node, None] = {}
    names: dict[str, Node] = {}
    _check_links(graph)
    for node in graph.nodes:
        for check in _NODE_CHECKS:
            check(node)
        _check_name(node, names)
        _check_inputs(node, before)
        _check_position(node, before)
        if attributes is not None and node.op in ("get_attr", "call_module"):
            _check_attribute(node, attributes)
        before[node] = None
    _check_users(before)


def _fail(node: Node, found: str, advice: str) -> NoReturn:
    where = f" (from {node.stack_trace.strip()})" if node.stack_trace else ""
    raise GraphError(f"lint found {found} at node {node.format_node()!r}{where}; {advice}")


def _check_links(graph: "Graph") -> None:
    node, count = graph._root, 0
    while True:
        if node._next._prev is not node:
            _fail(node, "a broken chain of nodes", "move nodes with node.append or node.prepend")
        node = node._next
        if node is graph._root:
            break
        count += 1
    if count != graph.node_count:
        _fail(
            graph._root,
            f"{count} nodes where the graph counts {graph.node_count}",
            "add and remove nodes only through graph.create_node and graph.erase_node",
        )


def _check_op(node: Node) -> None:
    if node.op not in OPS or node.op == "root":
        _fail(node, f"an unknown op {node.op!r}", f"the kinds are {', '.join(sorted(OPS))}")


def _check_target(node: Node) -> None:
    if node.op == "call_function":
        if not callable(node.target):
            _fail(
                node,
                f"a call_function whose target is {type(node.target).__name__}, not a callable",
                "give the function itself, or use call_method for a method's name",
            )
    elif not isinstance(node.target, str):
        _fail(
            node,
            f"a {node.op} whose target is {type(node.target).__name__}, not a string",
            "give the name as a string, or use call_function for a callable",
        )


def _check_arguments(node: Node) -> None:
    if not isinstance(node.args, tuple) or not isinstance(node.kwargs, dict):
        _fail(
            node,
            f"args of type {type(node.args).__name__} and kwargs of {type(node.kwargs).__name__}",
            "args is a tuple and kwargs a dict with strings as keys",
        )
    if not all(isinstance(key, str) for key in node.kwargs):
        _fail(node, "a keyword that is not a string", "keywords of a call are strings")
    if node.op == "call_method" and not node.args:
        _fail(node, "a method call without a receiver", "the receiver is args[0]")


_NODE_CHECKS: tuple[Callable[[Node], None], ...] = (_check_op, _check_target, _check_arguments)


def _check_name(node: Node, names: dict[str, Node]) -> None:
    other = names.get(node.name)
    if other is not None:
        _fail(
            node,
            f"the name {node.name!r} taken twice, also by {other.format_node()!r}",
            "rename with graph.rename",
        )
    if not node.name.isidentifier() or (node.name in RESERVED_NAMES and node.op != "output"):
        _fail(
            node,
            f"the name {node.name!r}, which generated source cannot use",
            "rename with graph.rename to an identifier that is neither a keyword nor a builtin",
        )
    names[node.name] = node


def _check_inputs(node: Node, before: dict[Node, None]) -> None:
    held = dict.fromkeys(iter_nodes((node.args, node.kwargs)))
    if held.keys() != node._inputs.keys():
        _fail(
            node,
            f"arguments that hold {list(held)} where the node has noted {list(node._inputs)}",
            "assign node.args or node.kwargs, never change the containers in them",
        )
    for used in held:
        if used.graph is not node.graph:
            _fail(
                node,
                f"an argument {used.name!r} of another graph",
                "bring it over with graph.node_copy",
            )
        if used not in before:
            state = "was erased" if used._erased else "comes later"
            _fail(
                node,
                f"a use of {used.format_node()!r}, which {state}",
                "a node stands after all nodes that it uses: move it with node.append",
            )
        if node not in used.users:
            _fail(
                node,
                f"an argument {used.name!r} that does not have it among its users",
                "assign node.args or node.kwargs, never change the containers in them",
            )


def _check_position(node: Node, before: dict[Node, None]) -> None:
    previous = node.prev
    if previous.op == "output":
        _fail(node, "a node after the output", "the output is the last node and the only one")
    if node.op == "placeholder" and before and previous.op != "placeholder":
        _fail(
            node,
            f"a placeholder after {previous.format_node()!r}",
            "placeholders are the first nodes: insert it with graph.inserting_before",
        )


def _check_attribute(node: Node, attributes: object) -> None:
    try:
        value = get_attribute(attributes, str(node.target))
    except GraphError as error:
        _fail(node, "an attribute that is not there", str(error))
    if node.op == "call_module" and not callable(value):
        _fail(
            node,
            f"a call_module of {type(value).__name__}, which is not callable",
            "use get_attr for a value",
        )


def _check_users(nodes: dict[Node, None]) -> None:
    for node in nodes:
        for user in node.users:
            if user not in nodes:
                _fail(
                    node,
                    f"a user {user.name!r} that is not in the graph",
                    "remove nodes with graph.erase_node",
                )
            if node not in user._inputs:
                _fail(
                    node,
                    f"a user {user.format_node()!r} that does not use it",
                    "change inputs through node.args, node.kwargs or node.replace_input_with",
                )
