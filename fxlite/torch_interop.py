"""To and from ``torch.fx``, without loss.  The only file here that loads torch, when asked."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynacap.errors import GraphError
from dynacap.fxlite.attributes import get_attribute
from dynacap.fxlite.graph import Graph
from dynacap.fxlite.locations import StackTraces
from dynacap.fxlite.node import RESERVED_NAMES, Node, map_arg

if TYPE_CHECKING:
    from dynacap.fxlite.module import GraphModule

_ATTRIBUTE_OPS = ("get_attr", "call_module")


def to_torch_fx(module: "GraphModule") -> Any:
    """A ``torch.fx.GraphModule`` with the nodes, names, meta and attributes of ``module``.

    A node without a ``stack_trace`` gets one from its other record of the user's line.
    """
    fx = importlib.import_module("torch.fx")
    graph = fx.Graph()
    made: dict[Node, Any] = {}
    traces = StackTraces()
    for node in module.graph.nodes:
        args = map_arg(node.args, made.__getitem__)
        kwargs = map_arg(node.kwargs, made.__getitem__)
        # What torch.library.custom_op makes of a function has no name; the operator has.
        target = getattr(node.target, "_opoverload", node.target)
        copied = graph.create_node(node.op, target, args, kwargs, node.name, node.type)
        if copied.name != node.name:  # torch is stricter with names, but only when it makes them
            copied.name = node.name
        copied.meta = dict(node.meta)
        trace = traces.text(node.meta)
        if trace is not None:
            copied.meta["stack_trace"] = trace
        made[node] = copied
    root = importlib.import_module("torch.nn").Module()
    kind = type(module)
    for target, value in module.attributes.items():
        _assign(root, target, to_torch_fx(value) if isinstance(value, kind) else value)
    converted = fx.GraphModule(root, graph, module.name)
    for target in module.attributes:  # torch.fx takes over only what the graph names
        _assign(converted, target, get_attribute(root, target))
    converted.meta.update(module.meta)
    return converted


def _assign(owner: Any, target: str, value: object) -> None:
    """Set a dotted attribute of a torch module, with modules made on the way as needed."""
    torch = importlib.import_module("torch")
    *path, last = target.split(".")
    for name in path:
        if not hasattr(owner, name):
            owner.add_module(name, torch.nn.Module())
        owner = getattr(owner, name)
    if hasattr(owner, last) and getattr(owner, last) is value:
        return
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        owner.register_buffer(last, value)
    else:
        setattr(owner, last, value)


def from_torch_fx(torch_module: Any, kind: "Callable[..., GraphModule]") -> "GraphModule":
    """A ``kind`` with the nodes, names, meta and attributes of a ``torch.fx.GraphModule``."""
    graph = Graph()
    made: dict[Any, Node] = {}
    for node in torch_module.graph.nodes:
        args = _plain(node.args, made)
        kwargs = {key: _plain(value, made) for key, value in node.kwargs.items()}
        copied = graph.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        if copied.name != node.name and node.name not in RESERVED_NAMES:
            graph.rename(copied, node.name)
        copied.meta = dict(node.meta)
        made[node] = copied
    attributes = {
        name: _from_torch_value(value, kind) for name, value in _attributes(torch_module).items()
    }
    module = kind(attributes, graph, type(torch_module).__name__)
    module.meta.update(torch_module.meta)
    return module


def _attributes(torch_module: Any) -> dict[str, Any]:
    found = dict(torch_module.named_parameters(remove_duplicate=False))
    found.update(torch_module.named_buffers(remove_duplicate=False))
    for node in torch_module.graph.nodes:
        if node.op in _ATTRIBUTE_OPS:
            found[node.target] = get_attribute(torch_module, node.target)
    return found


def _from_torch_value(value: Any, kind: "Callable[..., GraphModule]") -> Any:
    """The graph of a branch or loop body is converted too; anything else is the same object."""
    fx = importlib.import_module("torch.fx")
    return from_torch_fx(value, kind) if isinstance(value, fx.GraphModule) else value


def _plain(value: Any, made: dict[Any, Node]) -> Any:
    """An argument with our nodes for torch's and plain containers for its immutable ones."""
    name = type(value).__name__
    if name == "immutable_list":
        return [_plain(item, made) for item in value]
    if name == "immutable_dict":
        return {key: _plain(item, made) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(_plain(part, made) for part in (value.start, value.stop, value.step)))
    if isinstance(value, tuple):
        items = [_plain(item, made) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    fx_node = importlib.import_module("torch.fx").Node
    if isinstance(value, fx_node):
        if value not in made:
            raise GraphError(f"a torch.fx graph uses {value!r} before it is made; run its lint()")
        return made[value]
    return value
