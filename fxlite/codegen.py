"""A graph as Python source: readable, runnable, and no slower than the user's own code."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dynacap.fxlite.literals import expression, operand, receiver
from dynacap.fxlite.locations import RawLocation, innermost, raw_location
from dynacap.fxlite.names import GlobalNames
from dynacap.fxlite.node import Node, base_name

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

_INDENT = "    "


@dataclass(frozen=True)
class PythonCode:
    """Source of a graph and what belongs to it.

    ``preamble`` are the lines before the function, ``globals`` the values that no source can
    spell.  ``locations[n]`` is where line ``n + 1`` of the source came from, ``lines_of`` says
    in which line a node runs.
    """

    preamble: list[str]
    self_name: str | None
    parameters: list[str]
    body: list[str]
    globals: dict[str, object]
    locations: list[RawLocation]
    lines_of: dict[Node, int]
    uses_self: bool

    @property
    def lines(self) -> list[str]:
        """The source, line by line."""
        return [*self.preamble, self._header(self.self_name), self._summary(), *self.body]

    @property
    def source(self) -> str:
        """The source text."""
        return "\n".join(self.lines) + "\n"

    def guarded(self, callback: str) -> str:
        """The source with the body in a ``try`` that hands exceptions to the global ``callback``.

        Line for line the same as :attr:`source`: the ``try`` stands in place of the comment
        below the header, indented half as far as the body.  Without ``self`` if it is not used.
        """
        header = self._header(self.self_name if self.uses_self else None)
        handler = f"  except BaseException as error:\n    {callback}(error)\n    raise\n"
        return "\n".join([*self.preamble, header, "  try:", *self.body, handler])

    def _header(self, self_name: str | None) -> str:
        first = [] if self_name is None else [self_name]
        return f"def forward({', '.join([*first, *self.parameters])}):"

    def _summary(self) -> str:
        return f"    # {len(self.parameters)} inputs"


def generate(graph: "Graph", *, self_name: str | None = "self") -> PythonCode:
    """The source of ``graph`` as a function ``forward``."""
    return Writer(graph, self_name).write()


class Writer:
    """Writes a graph, line by line; its nodes are locals under their own names."""

    def __init__(
        self, graph: "Graph", self_name: str | None, local: dict[Node, str] | None = None
    ) -> None:
        self.nodes = list(graph.nodes)
        taken = {node.name for node in self.nodes}
        self.names = GlobalNames(taken, local)
        self.self_name = _free_name(self_name, taken) if self_name is not None else None
        self.uses_self = False
        self.body: list[str] = []
        self.locations: list[RawLocation] = []
        self.last_uses = _last_uses(self.nodes)
        self.targets: dict[Any, Callable[[Node], str]] = {}

    def write(self) -> PythonCode:
        """All of it."""
        parameters = []
        last_place = None
        rows: dict[Node, int] = {}
        for node in self.nodes:
            if node.op == "placeholder":
                parameters.append(self.parameter(node))
                if not node.users:
                    self.line(self.released([node]) + "  # not used", None)
                continue
            raw = raw_location(node.meta)
            place = innermost(raw)
            if place is not None and place != last_place and node.op != "output":
                self.line(f"# {place}", None)
                last_place = place
            self.line(self.statement(node), raw)
            rows[node] = len(self.body)
        if not self.nodes or self.nodes[-1].op != "output":
            self.line("return None", None)
        preamble = self.names.preamble
        preamble += ["", ""] if preamble else []
        above = len(preamble) + 2  # the head of the function, and the line below it
        return PythonCode(
            preamble,
            self.self_name,
            parameters,
            self.body,
            self.names.values,
            [None] * above + self.locations,
            {node: above + row for node, row in rows.items()},
            self.uses_self,
        )

    def line(self, text: str, raw: RawLocation) -> None:
        """One more line of the body, and where it came from."""
        self.body.append(_INDENT + text)
        self.locations.append(raw)

    def parameter(self, node: Node) -> str:
        """A placeholder in the head of the function."""
        name = node.name
        if isinstance(node.target, str) and node.target.startswith("*"):
            stars = node.target[: len(node.target) - len(node.target.lstrip("*"))]
            name = stars + name
        if node.args:
            return f"{name}={expression(node.args[0], self.names)}"
        return name

    def statement(self, node: Node) -> str:
        """The node as one line: the operation, then its inputs let go after their last use."""
        if node.op == "output":
            return f"return {expression(node.args[0], self.names)}"
        text = self.operation(node)
        done = self.last_uses.get(node)
        released = self.released(done) if done else ""
        return f"{text};  {released}" if released else text

    def kept(self, node: Node) -> str:
        """What the result of a node is assigned to."""
        return node.name

    def released(self, nodes: list[Node]) -> str:
        """A statement that lets go of the values of nodes, or nothing."""
        return f"{' = '.join([node.name for node in nodes])} = None"

    def operation(self, node: Node) -> str:
        """What a node does, and the assignment of what it gives."""
        if node.op == "call_function":
            special = _STATEMENTS.get(_hashable(node.target))
            if special is not None and not node.users and not node.kwargs:
                text = special(node, self.names)
                if text is not None:
                    return text
        value = getattr(self, node.op)(node)
        # The result of a call for its effect only is not kept, as in a statement of the user's.
        return value if not node.users else f"{self.kept(node)} = {value}"

    def get_attr(self, node: Node) -> str:
        """An attribute."""
        return self.attribute(str(node.target))

    def call_module(self, node: Node) -> str:
        """A call of an attribute."""
        return f"{self.attribute(str(node.target))}({self.arguments(node.args, node.kwargs)})"

    def call_method(self, node: Node) -> str:
        """A call of a method of the first argument."""
        owner = receiver(node.args[0], self.names)
        called = self.arguments(node.args[1:], node.kwargs)
        target = str(node.target)
        if target.isidentifier():
            return f"{owner}.{target}({called})"
        return f"getattr({owner}, {target!r})({called})"

    def call_function(self, node: Node) -> str:
        """A call, or the operator that stands for it."""
        if not node.kwargs:
            special = _EXPRESSIONS.get(_hashable(node.target))
            text = special and special(node, self.names)
            if text is not None:
                return text
        hint = base_name(node.target)
        called = self.names.reference(node.target, hint)
        return f"{called}({self.arguments(node.args, node.kwargs)})"

    def attribute(self, target: str) -> str:
        """An attribute of the graph module, by its dotted name."""
        self.uses_self = True
        owner = self.self_name or "self"
        *path, last = target.split(".")
        for part in (*path, last):
            owner = f"{owner}.{part}" if part.isidentifier() else f"getattr({owner}, {part!r})"
        return owner

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """What stands between the brackets of a call."""
        names = self.names
        own = names.locals
        parts = [own[arg] if type(arg) is Node else expression(arg, names) for arg in args]
        spread = {}
        for key, value in kwargs.items():
            if key.isidentifier():
                parts.append(f"{key}={expression(value, names)}")
            else:
                spread[key] = value
        if spread:
            parts.append(f"**{expression(spread, names)}")
        return ", ".join(parts)


def _hashable(target: Any) -> Any:
    try:
        hash(target)
    except TypeError:
        return None
    return target


def _free_name(wanted: str, taken: set[str]) -> str:
    name = wanted
    number = 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def _last_uses(nodes: list[Node]) -> dict[Node, list[Node]]:
    """For each node, those of which nothing needs the value after it."""
    released: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for node in reversed(nodes):
        for used in node._inputs:
            if used not in seen:
                seen.add(used)
                if node.op != "output":
                    released.setdefault(node, []).append(used)
    return released


def _binary(symbol: str) -> Callable[[Node, GlobalNames], str | None]:
    def write(node: Node, names: GlobalNames) -> str | None:
        if len(node.args) != 2:
            return None
        left, right = node.args
        return f"{operand(left, names)} {symbol} {operand(right, names)}"

    return write


def _unary(symbol: str) -> Callable[[Node, GlobalNames], str | None]:
    def write(node: Node, names: GlobalNames) -> str | None:
        if len(node.args) != 1:
            return None
        return f"{symbol}{operand(node.args[0], names)}"

    return write


def _index(value: Any, names: GlobalNames) -> str:
    """What stands between the brackets; slices as the user writes them."""
    if type(value) is tuple and value and any(type(item) is slice for item in value):
        inner = ", ".join(_index_part(item, names) for item in value)
        return f"{inner}," if len(value) == 1 else inner
    return _index_part(value, names)


def _index_part(value: Any, names: GlobalNames) -> str:
    if type(value) is not slice:
        return expression(value, names)
    start, stop, step = (
        "" if part is None else expression(part, names)
        for part in (value.start, value.stop, value.step)
    )
    return f"{start}:{stop}" + (f":{step}" if step else "")


def _getitem(node: Node, names: GlobalNames) -> str | None:
    if len(node.args) != 2:
        return None
    return f"{receiver(node.args[0], names)}[{_index(node.args[1], names)}]"


def _setitem(node: Node, names: GlobalNames) -> str | None:
    if len(node.args) != 3:
        return None
    owner, key, value = node.args
    return f"{receiver(owner, names)}[{_index(key, names)}] = {expression(value, names)}"


def _getattr(node: Node, names: GlobalNames) -> str | None:
    if len(node.args) != 2 or not (isinstance(node.args[1], str) and node.args[1].isidentifier()):
        return None
    return f"{receiver(node.args[0], names)}.{node.args[1]}"


_EXPRESSIONS: dict[Any, Callable[[Node, GlobalNames], str | None]] = {
    operator.add: _binary("+"),
    operator.sub: _binary("-"),
    operator.mul: _binary("*"),
    operator.truediv: _binary("/"),
    operator.floordiv: _binary("//"),
    operator.mod: _binary("%"),
    operator.pow: _binary("**"),
    operator.matmul: _binary("@"),
    operator.and_: _binary("&"),
    operator.or_: _binary("|"),
    operator.xor: _binary("^"),
    operator.lshift: _binary("<<"),
    operator.rshift: _binary(">>"),
    operator.eq: _binary("=="),
    operator.ne: _binary("!="),
    operator.lt: _binary("<"),
    operator.le: _binary("<="),
    operator.gt: _binary(">"),
    operator.ge: _binary(">="),
    operator.neg: _unary("-"),
    operator.pos: _unary("+"),
    operator.invert: _unary("~"),
    operator.not_: _unary("not "),
    operator.getitem: _getitem,
    getattr: _getattr,
}
_STATEMENTS: dict[Any, Callable[[Node, GlobalNames], str | None]] = {operator.setitem: _setitem}
