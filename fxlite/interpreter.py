"""Runs a graph node by node.  Whatever walks a graph is a subclass of :class:`Interpreter`."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynacap.errors import GraphError
from dynacap.fxlite.attributes import get_attribute
from dynacap.fxlite.locations import RawLocation, point_at_user_line, raw_location
from dynacap.fxlite.node import Node, Target, map_arg

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph


class Interpreter:
    """Give it a graph module (or a graph and its attributes) and call :meth:`run`.

    Override a method named for an op to change what nodes of that kind do, or :meth:`run_node`
    for all of them.  Values are dropped after their last use, as the compiled function does.
    """

    def __init__(self, module: Any, graph: "Graph | None" = None) -> None:
        self.module = module
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self._inputs: list[Any] = []

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None) -> Any:
        """Run the graph on the values of its placeholders; its result.

        ``initial_env`` gives values of nodes that are not to be run.
        """
        self.env = dict(initial_env or {})
        self._inputs = list(args)
        nodes = list(self.graph.nodes)
        last_uses = _last_uses(nodes)
        placeholders = sum(node.op == "placeholder" and node not in self.env for node in nodes)
        if len(args) > placeholders:
            raise GraphError(
                f"a graph with {placeholders} placeholders was run on {len(args)} values; give"
                " one value for each"
            )
        try:
            return self._run_nodes(nodes, last_uses)
        finally:
            self.env = {}
            self._inputs = []

    def run_node(self, node: Node) -> Any:
        """Run one node on the values in ``env``."""
        args, kwargs = self.fetch_args(node)
        return getattr(self, node.op)(node.target, args, kwargs)

    def fetch_args(self, node: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The node's arguments, nodes replaced by their values."""
        value_of = self.env.__getitem__
        return map_arg(node.args, value_of), map_arg(node.kwargs, value_of)

    def fetch_attr(self, target: str) -> Any:
        """The value of a (dotted) attribute of the module."""
        attributes = getattr(self.module, "_attributes", self.module)
        return get_attribute(attributes, target)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next input, or the default value."""
        if isinstance(target, str) and target.startswith("*"):
            rest, self._inputs = self._inputs, []
            return tuple(rest)
        if self._inputs:
            return self._inputs.pop(0)
        if args:
            return args[0]
        raise GraphError(f"no value was given for placeholder {target!r}, which has no default")

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute's value."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        assert callable(target)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a callable attribute."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def _run_nodes(self, nodes: list[Node], last_uses: dict[Node, list[Node]]) -> Any:
        for node in nodes:
            if node in self.env:
                continue
            try:
                result = self.run_node(node)
            except BaseException as error:
                point_at_user_line(error, sys._getframe(), _location_of(node))
                raise
            if node.op == "output":
                return result
            self.env[node] = result
            for used in last_uses.get(node, ()):
                del self.env[used]
        return None


def _location_of(node: Node) -> Callable[[int], RawLocation]:
    raw = raw_location(node.meta)
    return lambda line: raw


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    released: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                released.setdefault(node, []).append(used)
    return released
