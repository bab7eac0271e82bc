"""Every ``torch.compile`` backend, handed a ``torch.fx.GraphModule`` made from ours.

The only file here that loads torch's compilers, and only when one is asked for by name.
"""

import contextlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dynacap.fxlite import GraphModule, Node
from dynacap.fxlite.printer import example_value

_REGISTRY = "torch._dynamo.backends.registry"


class TorchBackend:
    """A backend written for ``torch.compile``.

    With sizes all static it gets the real example inputs.  With symbolic sizes it gets fresh fake
    tensors of the graph's own symbols: a size that the backend then relies on becomes a guard of
    the graph's ``ShapeEnv``, which the caller has to read after the call.
    """

    def __init__(
        self, compile_fn: Callable[..., Any], name: str, *, configured: bool = False
    ) -> None:
        self.compile_fn = compile_fn
        self.compiler_name = name
        self.configured = configured  # mode and options are bound already

    def __call__(
        self, graph_module: GraphModule, example_inputs: Sequence[Any], **options: Any
    ) -> Callable[..., Any]:
        """Compile the graph."""
        converted = graph_module.to_torch_fx()
        inputs, context = _inputs(graph_module, example_inputs)
        with context:
            compiled: Callable[..., Any] = self.compile_fn(converted, inputs, **options)
        return compiled

    def __repr__(self) -> str:
        return f"<torch backend {self.compiler_name}>"


def bridged(backend: Callable[..., Any]) -> Callable[..., Any]:
    """A callable of torch's as a :class:`TorchBackend`; any other as it is."""
    function = backend
    while isinstance(function, partial):
        function = function.func
    module = getattr(function, "__module__", None) or type(function).__module__
    if module.partition(".")[0] != "torch":
        return backend
    name = getattr(function, "compiler_name", None) or getattr(function, "__name__", None)
    return TorchBackend(backend, str(name or type(function).__name__))


def backend_names(exclude_tags: Sequence[str] | None) -> list[str]:
    """The names in torch's registry; none where torch is not installed."""
    registry = _registry()
    names: list[str] = [] if registry is None else registry.list_backends(exclude_tags)
    return names


def find_backend(
    name: str, mode: str | None, options: Mapping[str, Any] | None, dynamic: bool | None
) -> TorchBackend | None:
    """The backend of that name in torch's registry, with the options that are torch's to bind."""
    registry = _registry()
    if registry is None or name not in registry.list_backends(None):
        return None
    if name == "inductor":
        torch = sys.modules["torch"]
        wrapper = torch._TorchCompileInductorWrapper(mode, dict(options or {}), dynamic)
        return TorchBackend(wrapper, name, configured=True)
    return TorchBackend(registry.lookup_backend(name), name)


def _registry() -> Any:
    try:
        return importlib.import_module(_REGISTRY)
    except ImportError:
        return None


def _inputs(
    graph_module: GraphModule, example_inputs: Sequence[Any]
) -> tuple[list[Any], contextlib.AbstractContextManager[Any]]:
    """What the backend is shown in place of the example inputs, and the context it runs in."""
    placeholders = graph_module.graph.placeholders
    shape_env = next((env for node in placeholders if (env := _shape_env(node))), None)
    if shape_env is None and any(map(_shape_env, graph_module.graph.nodes)):
        # Only what operations make of data is symbolic: the backend finds symbols of its own.
        symbolic_shapes = importlib.import_module("torch.fx.experimental.symbolic_shapes")
        shape_env = symbolic_shapes.ShapeEnv()
    if shape_env is None:
        return list(example_inputs), contextlib.nullcontext()
    _refuse_shared_storage(placeholders, example_inputs)
    torch = sys.modules["torch"]
    # Not the mode of the capture: its fake inputs carry what the graph's in-place operations did.
    mode = torch._subclasses.FakeTensorMode(shape_env=shape_env)
    inputs = [
        _fresh(node, value, mode) for node, value in zip(placeholders, example_inputs, strict=True)
    ]
    guards = importlib.import_module("torch._guards")
    return inputs, guards.tracing(guards.TracingContext(mode))


def _shape_env(node: Node) -> Any:
    """The environment of the symbols in the sizes of what a node gives, if there are any."""
    for size in _sizes(example_value(node)):
        if type(size).__name__ in ("SymInt", "SymFloat"):
            return size.node.shape_env
    return None


def _sizes(value: Any) -> Sequence[Any]:
    if hasattr(value, "storage_offset") and hasattr(value, "stride"):
        return (*value.shape, *value.stride(), value.storage_offset())
    return (value,)


def _fresh(node: Node, value: Any, mode: Any) -> Any:
    torch = sys.modules["torch"]
    example = example_value(node)
    if not isinstance(value, torch.Tensor):
        return value if example is None else example
    if example is None or _shape_env(node) is None:
        return mode.from_tensor(value, static_shapes=True)
    with mode, torch.no_grad():
        made = torch.empty_strided(
            example.shape, example.stride(), dtype=value.dtype, device=value.device
        )
        return made.requires_grad_(value.requires_grad)


def _refuse_shared_storage(placeholders: Sequence[Node], example_inputs: Sequence[Any]) -> None:
    # A fresh tensor of symbolic sizes shares storage with no other, so that the backend would not
    # learn of the aliasing and could reorder a write and a read.
    torch = sys.modules["torch"]
    owners: dict[int, Node] = {}
    for node, value in zip(placeholders, example_inputs, strict=True):
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        address = value.untyped_storage().data_ptr()
        other = owners.setdefault(address, node)
        if address and other is not node:
            raise NotImplementedError(
                f"inputs {other.name!r} and {node.name!r} share memory in a graph with symbolic"
                " sizes, which this bridge cannot tell a torch backend; mark the sizes static"
            )
