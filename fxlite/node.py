"""One operation of a graph: what it calls, on what, and who uses its result."""

import builtins
import keyword
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dynacap.errors import GraphError
from dynacap.fxlite.locations import StackTraces

if TYPE_CHECKING:
    from dynacap.fxlite.graph import Graph

Target = Callable[..., Any] | str
Args = tuple[Any, ...]
Kwargs = dict[str, Any]

OPS = frozenset(
    {"placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root"}
)
# Generated source calls builtins by their own names, so no node may be called like one.
RESERVED_NAMES = frozenset({*keyword.kwlist, *dir(builtins)})

# The types that hold no node and need no copy; anything else takes the slow path once.
_LEAVES = frozenset({int, float, bool, str, type(None), complex, bytes, type(Ellipsis), type})


class Node:
    """A step of a :class:`Graph`.  Made by the graph's methods, never directly.

    ``args`` and ``kwargs`` may hold nodes at any depth of tuples, lists, dicts and slices.  The
    containers belong to the node: to change an input, assign ``node.args`` or call one of the
    methods here, so that ``users`` on the other side follows.
    """

    __slots__ = (
        "__weakref__",
        "_args",
        "_erased",
        "_inputs",
        "_kwargs",
        "_next",
        "_prev",
        "graph",
        "meta",
        "name",
        "op",
        "target",
        "type",
        "users",
    )

    _next: "Node"
    _prev: "Node"

    def __init__(
        self, graph: "Graph", name: str, op: str, target: Target, args: Args, kwargs: Kwargs
    ) -> None:
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self.type: object = None
        self._erased = False
        self._inputs: dict[Node, None] = {}
        self._set_inputs(args, kwargs)

    @property
    def args(self) -> Args:
        """Positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, args: Args) -> None:
        self._reset_inputs(args, self._kwargs)

    @property
    def kwargs(self) -> Kwargs:
        """Keyword arguments; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: Kwargs) -> None:
        self._reset_inputs(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list["Node"]:
        """The nodes among the arguments, each once, in the order in which they stand there."""
        return list(self._inputs)

    @property
    def next(self) -> "Node":
        """The node after this one; after the last comes the graph's root."""
        return self._next

    @property
    def prev(self) -> "Node":
        """The node before this one; before the first comes the graph's root."""
        return self._prev

    @property
    def stack_trace(self) -> str | None:
        """The user's stack as text, outermost call first."""
        return StackTraces().text(self.meta)

    def update_arg(self, index: int, value: object) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[index] = value
        self.args = tuple(args)

    def insert_arg(self, index: int, value: object) -> None:
        """Add a positional argument before ``index``."""
        args = list(self._args)
        args.insert(index, value)
        self.args = tuple(args)

    def update_kwarg(self, key: str, value: object) -> None:
        """Replace or add one keyword argument."""
        self.kwargs = {**self._kwargs, key: value}

    def replace_input_with(self, old: "Node", new: "Node") -> None:
        """Take ``new`` wherever ``old`` stands among the arguments."""

        def swap(node: "Node") -> "Node":
            return new if node is old else node

        self._reset_inputs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self,
        replacement: "Node",
        delete_user_cb: Callable[["Node"], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list["Node"]:
        """Have every user take ``replacement`` instead; the users that were changed.

        ``delete_user_cb`` may refuse a user by returning False.
        """
        if propagate_meta:
            replacement.meta.update(self.meta)
        changed = [
            user
            for user in self.users
            if user is not replacement and (delete_user_cb is None or delete_user_cb(user))
        ]
        for user in changed:
            user.replace_input_with(self, replacement)
        return changed

    def append(self, other: "Node") -> None:
        """Move ``other`` to directly after this node."""
        if other is not self:
            self._next.prepend(other)

    def prepend(self, other: "Node") -> None:
        """Move ``other`` to directly before this node."""
        if other.graph is not self.graph:
            raise GraphError(
                f"cannot move {other.format_node()!r} before {self.format_node()!r}: they belong"
                " to different graphs; use graph.node_copy() to bring a node over"
            )
        if other is self:
            return
        other._unlink()
        self._link_before(other)

    def format_node(self) -> str:
        """The node as one line of text, arguments included."""
        if self.op == "placeholder":
            default = f" = {self._args[0]!r}" if self._args else ""
            return f"%{self.name} : placeholder {self.target}{default}"
        if self.op == "output":
            return f"return {format_arg(self._args[0]) if self._args else ''}"
        if self.op == "get_attr":
            return f"%{self.name} = self.{self.target}"
        parts = [format_arg(arg) for arg in self._args]
        parts += [f"{key}={format_arg(value)}" for key, value in self._kwargs.items()]
        return f"%{self.name} = {self.op} {target_text(self.target)}({', '.join(parts)})"

    def __repr__(self) -> str:
        return self.name

    def _set_inputs(self, args: Args, kwargs: Kwargs) -> None:
        inputs = self._inputs
        for arg in args:
            kind = type(arg)
            if kind is Node:
                inputs[arg] = None
            elif kind not in _LEAVES:
                args = _own(args, inputs)
                break
        if kwargs:
            kwargs = {key: _own(kwargs[key], inputs) for key in kwargs}
        self._args = args
        self._kwargs = kwargs
        for node in inputs:
            node.users[self] = None

    def _reset_inputs(self, args: Args, kwargs: Kwargs) -> None:
        for node in self._inputs:
            del node.users[self]
        self._inputs = {}
        self._set_inputs(tuple(args), kwargs)

    def _unlink(self) -> None:
        self._prev._next = self._next
        self._next._prev = self._prev

    def _link_before(self, other: "Node") -> None:
        before = self._prev
        other._prev = before
        other._next = self
        before._next = self._prev = other


def _own(value: Any, inputs: dict[Node, None]) -> Any:
    """``value`` with its containers copied, so that no one else can change them.

    The nodes in it are added to ``inputs``.
    """
    kind = type(value)
    if kind is Node:
        inputs[value] = None
        return value
    if kind in _LEAVES:
        return value
    if kind is tuple:
        return tuple([_own(item, inputs) for item in value])
    rebuild = _REBUILD.get(kind) or _rebuild_for_subclass(value)
    return value if rebuild is None else rebuild(value, lambda item: _own(item, inputs))


def _rebuild_tuple(value: Any, change: Callable[[Any], Any]) -> Any:
    return tuple([change(item) for item in value])


def _rebuild_list(value: Any, change: Callable[[Any], Any]) -> Any:
    return [change(item) for item in value]


def _rebuild_dict(value: Any, change: Callable[[Any], Any]) -> Any:
    return {key: change(item) for key, item in value.items()}


def _rebuild_slice(value: Any, change: Callable[[Any], Any]) -> Any:
    return slice(change(value.start), change(value.stop), change(value.step))


_Rebuild = Callable[[Any, Callable[[Any], Any]], Any]
_REBUILD: dict[type, _Rebuild] = {
    tuple: _rebuild_tuple,
    list: _rebuild_list,
    dict: _rebuild_dict,
    slice: _rebuild_slice,
}


def _rebuild_for_subclass(value: object) -> _Rebuild | None:
    """How to copy a named tuple, a torch.Size, an OrderedDict and their like: by their class."""
    kind: Any = type(value)
    if isinstance(value, tuple):
        if hasattr(kind, "_fields"):
            return lambda old, change: kind(*[change(item) for item in old])
        return lambda old, change: _keep_or(kind, old, [change(item) for item in old])
    if isinstance(value, list):
        return lambda old, change: kind([change(item) for item in old])
    if isinstance(value, dict):
        return lambda old, change: kind({key: change(item) for key, item in old.items()})
    return None


def _keep_or(kind: Any, old: Any, items: list[Any]) -> Any:
    # torch.Size takes only numbers; with a node among its items it becomes a plain tuple.
    if all(new is item for new, item in zip(items, old, strict=True)):
        return old
    return tuple(items) if any(isinstance(item, Node) for item in items) else kind(items)


def map_aggregate(value: Any, change: Callable[[Any], Any]) -> Any:
    """``value`` with ``change`` applied to each leaf of its tuples, lists, dicts and slices."""
    rebuild = _REBUILD.get(type(value)) or _rebuild_for_subclass(value)
    if rebuild is None:
        return change(value)
    return rebuild(value, lambda item: map_aggregate(item, change))


def map_arg(value: Any, change: Callable[[Node], Any]) -> Any:
    """``value`` with ``change`` applied to each node in it."""
    return map_aggregate(value, lambda leaf: change(leaf) if isinstance(leaf, Node) else leaf)


def iter_nodes(value: object) -> Iterator[Node]:
    """The nodes in ``value``, in order, with repeats."""
    found: list[Node] = []
    map_arg(value, found.append)
    return iter(found)


def format_arg(value: object) -> str:
    """An argument as text, nodes by name with a percent sign."""
    return repr(map_arg(value, _Named))


class _Named:
    def __init__(self, node: Node) -> None:
        self.name = node.name

    def __repr__(self) -> str:
        return f"%{self.name}"


def target_text(target: object) -> str:
    """A target as a short text: the qualified name of a callable, or the string itself."""
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", None) or type(target).__name__
    module = getattr(target, "__module__", None)
    if module is None or module == "builtins":
        return str(name)
    return f"{module.removeprefix('_')}.{name}"


_NOT_IN_NAMES = re.compile(r"\W+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ADDRESS = re.compile(r"_object_at_0x[0-9a-f]+")


def without_address(name: str) -> str:
    """A name that is the same in each process, of what Python shows as ``<… object at 0x…>``."""
    return _ADDRESS.sub("", name) if "_at_0x" in name else name


def base_name(target: object) -> str:
    """A readable identifier for the result of ``target``, before it is made unique."""
    raw = target if isinstance(target, str) else getattr(target, "__name__", None)
    if not isinstance(raw, str):
        raw = type(target).__name__
    if raw.startswith("__") and raw.endswith("__"):
        raw = raw[2:-2]
    if not raw.isidentifier():
        raw = _NOT_IN_NAMES.sub("_", raw).strip("_")
    name = _CAMEL.sub("_", raw).lower()
    if name.startswith("_"):
        name = name.lstrip("_") or "value"
    return f"_{name}" if name[:1].isdigit() or not name else name
