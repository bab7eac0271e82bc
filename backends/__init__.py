"""What runs a graph: ``backend(graph_module, example_inputs) -> callable``."""

if __name__ != "dynacap.backends":  # a second copy under the folder's own name would not be equal
    raise ImportError("import this package as dynacap.backends, not as backends")

from dynacap.backends.compile_graph import compile_graph
from dynacap.backends.eager import eager
from dynacap.backends.interpreter import interpreter
from dynacap.backends.native.build import cache_info, clear_cache
from dynacap.backends.registry import (
    backend_name,
    list_backends,
    lookup_backend,
    register_backend,
)
from dynacap.backends.torch_bridge import TorchBackend

__all__ = [
    "TorchBackend",
    "backend_name",
    "cache_info",
    "clear_cache",
    "compile_graph",
    "eager",
    "interpreter",
    "list_backends",
    "lookup_backend",
    "register_backend",
]
