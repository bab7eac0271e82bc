"""The graph: a doubly linked list of nodes, made quickly and changed safely."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dynacap.errors import GraphError
from dynacap.fxlite.codegen import PythonCode, generate
from dynacap.fxlite.lint import lint_graph
from dynacap.fxlite.node import (
    OPS,
    RESERVED_NAMES,
    Args,
    Kwargs,
    Node,
    Target,
    base_name,
    map_arg,
    without_address,
)
from dynacap.fxlite.passes.dce import DeadCodeElimination
from dynacap.fxlite.pickling import Record, from_records, to_records
from dynacap.fxlite.printer import table


class NodeList:
    """The nodes of a graph in order; the graph may change while one iterates."""

    def __init__(self, graph: "Graph", *, backwards: bool = False) -> None:
        self._graph = graph
        self._backwards = backwards

    def __len__(self) -> int:
        return self._graph.node_count

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node = root._prev if self._backwards else root._next
        while node is not root:
            if not node._erased:
                yield node
            node = node._prev if self._backwards else node._next

    def __reversed__(self) -> Iterator[Node]:
        return iter(NodeList(self._graph, backwards=not self._backwards))


class Graph:
    """Operations in the order in which they run.  New nodes go to the insertion point."""

    def __init__(self) -> None:
        self.node_count = 0
        self._names: dict[str, int] = {}
        self._bases: dict[object, str] = {}
        self._root = root = Node(self, "", "root", "", (), {})
        root._prev = root._next = root
        self._insert = root

    @property
    def nodes(self) -> NodeList:
        """All nodes, in order."""
        return NodeList(self)

    def create_node(
        self,
        op: str,
        target: Target,
        args: Args = (),
        kwargs: Kwargs | None = None,
        name: str | None = None,
        type_expr: object = None,
    ) -> Node:
        """A new node at the insertion point; ``name`` is changed if it is taken."""
        if op not in OPS or op == "root":
            raise GraphError(
                f"cannot add a node with op {op!r} and target {target!r}: the kinds are"
                f" {', '.join(sorted(OPS - {'root'}))}"
            )
        # The steps of Node._link_before and of _unique are written out: this is the inner loop
        # of capture.
        try:
            base = self._bases[target if name is None else name]
        except (KeyError, TypeError):
            base = self._new_base(target if name is None else name)
        names = self._names
        if base in names:
            base = self._next_name(base)
        else:
            names[base] = 1
        node = Node(self, base, op, target, args, {} if kwargs is None else kwargs)
        if type_expr is not None:
            node.type = type_expr
        after = self._insert
        before = after._prev
        node._prev = before
        node._next = after
        before._next = after._prev = node
        self.node_count += 1
        return node

    def placeholder(
        self, name: str, type_expr: object = None, default_value: Any = Ellipsis
    ) -> Node:
        """An input of the graph; its position among the placeholders is that of the argument."""
        args = () if default_value is Ellipsis else (default_value,)
        return self.create_node(
            "placeholder", name, args, name=name.lstrip("*"), type_expr=type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: object = None) -> Node:
        """The value of an attribute of the graph module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Args = (),
        kwargs: Kwargs | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: Args = (),
        kwargs: Kwargs | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a method of ``args[0]``."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: Args = (),
        kwargs: Kwargs | None = None,
        type_expr: object = None,
    ) -> Node:
        """A call of a callable attribute of the graph module."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: object = None) -> Node:
        """The result of the graph; the last node."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def output_node(self) -> Node:
        """The node that says what the graph returns."""
        last = self._root._prev
        if last.op == "output":
            return last
        raise GraphError(
            f"asked for the output of a graph whose last node is {last.format_node()!r};"
            " end it with graph.output(...)"
        )

    def find_nodes(self, *, op: str, target: Target | None = None) -> list[Node]:
        """The nodes of that kind (and target), in order."""
        return [
            node
            for node in self.nodes
            if node.op == op and (target is None or node.target == target)
        ]

    @property
    def placeholders(self) -> list[Node]:
        """The inputs, in order."""
        return self.find_nodes(op="placeholder")

    def inserting_before(self, node: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go before ``node`` (or first in the graph) inside the ``with`` block."""
        return self._inserting(self._root._next if node is None else self._mine(node))

    def inserting_after(self, node: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go after ``node`` (or last in the graph) inside the ``with`` block."""
        return self._inserting(self._root if node is None else self._mine(node)._next)

    def erase_node(self, node: Node) -> None:
        """Remove a node that no one uses."""
        self._mine(node)
        if node.users:
            users = ", ".join(user.format_node() for user in node.users)
            raise GraphError(
                f"cannot erase {node.format_node()!r}: it is used by {users}; first call"
                " node.replace_all_uses_with(...)"
            )
        if node._erased:
            return
        if self._insert is node:
            self._insert = node._next
        node._unlink()
        node._erased = True
        node._reset_inputs((), {})
        self.node_count -= 1

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] | None = None) -> Node:
        """Copy a node of any graph to the insertion point here, its inputs mapped."""
        change = arg_transform or (lambda input_node: input_node)
        copied = self.create_node(
            node.op,
            node.target,
            map_arg(node.args, change),
            map_arg(node.kwargs, change),
            node.name,
            node.type,
        )
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, other: "Graph", val_map: dict[Node, Node]) -> Any:
        """Copy all nodes of ``other`` but the output here; what its output would be.

        ``val_map`` gives the counterparts of nodes that are not to be copied, and gains the rest.
        """
        for node in other.nodes:
            if node.op == "output":
                return map_arg(node.args[0], val_map.__getitem__)
            if node not in val_map:
                val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def python_code(self, *, self_name: str | None = "self") -> PythonCode:
        """The graph as Python source; without a self parameter if ``self_name`` is None."""
        return generate(self, self_name=self_name)

    def lint(self) -> None:
        """Check everything that must hold in a graph; raises GraphError that shows the node."""
        lint_graph(self)

    def eliminate_dead_code(self, is_impure: Callable[[Node], bool] | None = None) -> bool:
        """Drop what no one uses and no one could notice missing; whether anything went."""
        return DeadCodeElimination(is_impure).apply(self)

    def table(self) -> str:
        """The graph as a table in plain text."""
        return table(self)

    def print_tabular(self) -> None:
        """Print :meth:`table`."""
        print(table(self))

    def __str__(self) -> str:
        lines = [node.format_node() for node in self.nodes]
        return "graph():\n" + "\n".join("    " + line for line in lines)

    def __copy__(self) -> "Graph":
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> "Graph":
        """The nodes are copied; targets and what stands in arguments and meta are shared."""
        copied = Graph()
        values: dict[Node, Node] = {}
        for node in self.nodes:
            values[node] = copied.node_copy(node, values.__getitem__)
            copied.rename(values[node], node.name)
        memo[id(self)] = copied
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (to_records(self),)

    def rename(self, node: Node, name: str) -> None:
        """Give a node exactly that name; it must be free."""
        if node.name == name:
            return
        if not name.isidentifier() or name in RESERVED_NAMES:
            raise GraphError(
                f"cannot rename {node.format_node()!r} to {name!r}: names of nodes are Python"
                " identifiers, and neither keywords nor builtins"
            )
        holder = next((other for other in self.nodes if other.name == name), None)
        if holder is not None:
            raise GraphError(
                f"cannot rename {node.format_node()!r} to {name!r}: that is the name of"
                f" {holder.format_node()!r}; rename that one first"
            )
        self._names.setdefault(name, 1)
        node.name = name

    @contextlib.contextmanager
    def _inserting(self, before: Node) -> Iterator[None]:
        outer = self._insert
        self._insert = before
        try:
            yield
        finally:
            self._insert = outer if not outer._erased else self._root

    def _mine(self, node: Node) -> Node:
        if node.graph is not self:
            raise GraphError(
                f"{node.format_node()!r} belongs to another graph; bring it over with"
                " graph.node_copy()"
            )
        return node

    def _new_base(self, wanted: object) -> str:
        if isinstance(wanted, str) and wanted.isidentifier():
            name = without_address(wanted)
        else:
            name = base_name(wanted)
        if name in RESERVED_NAMES:
            self._names.setdefault(name, 1)
        with contextlib.suppress(TypeError):  # a callable that cannot be hashed
            self._bases[wanted] = name
        return name

    def _next_name(self, base: str) -> str:
        names = self._names
        number = names[base]
        while (name := f"{base}_{number}") in names:
            number += 1
        names[base] = number + 1
        names[name] = 1
        return name


def _unpickled(records: list[Record]) -> Graph:
    return from_records(records, Graph)
