"""A captured graph in words that say all on which its C code depends: a key for the disk cache.

The words name what is called only where every process means the same by the name: operators and
functions of torch's own, and of Python's ``operator`` and ``math``.  A graph that holds anything
else, a tensor among it, has no description.  Sizes that vary are said as torch's expressions, with
all that is known of their symbols: only where tracing adds nothing to that may a graph be noted.
"""

from __future__ import annotations

import functools
import hashlib
import math
import operator
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch._functorch import config as functorch_config

from dynacap.backends.native.aten.inputs import is_variable, shape_env, share_memory
from dynacap.backends.native.aten.trace import needs_gradient
from dynacap.backends.torch_state import current_state, hooks_of_saved_tensors
from dynacap.fxlite import GraphModule, Node
from dynacap.fxlite.printer import example_value

_HOMES = (
    *(torch._C._nn, torch._C._VariableFunctions, torch._C, torch, torch.nn.functional),
    *(torch.special, torch.linalg, torch.fft, torch.amp.autocast_mode, operator, math),
)
_TORCH = str(Path(torch.__file__).parent)
_HERE = Path(__file__).parent
_WORDS = frozenset({
    int, float, bool, str, complex, type(None), type(Ellipsis),
    torch.dtype, torch.device, torch.layout, torch.memory_format,
})  # fmt: skip
_NESTS = frozenset({tuple, list, torch.Size})
_SYMBOLIC = frozenset({torch.SymInt, torch.SymFloat})
_NOTHING = ModuleType("nothing")
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})


class _NoWords(Exception):
    """The graph holds something that has no description."""


def description(graph_module: GraphModule, example_inputs: Sequence[Any]) -> str | None:
    """The words; None if there are none for something in the graph."""
    graph = graph_module.graph
    try:
        varies = shape_env(graph_module) is not None
        if varies and needs_gradient(graph_module, example_inputs):
            raise _NoWords("sizes that vary are saved for the backward pass")
        lines = [
            *_circumstances(),
            *_circumstances_of_gradients(example_inputs),
            known_of_symbols(graph_module),
            *map(_input, graph.placeholders, example_inputs),
            *map(_node, graph.nodes),
        ]
    except _NoWords:
        return None
    shared = ("alone", "shared")[share_memory(example_inputs)]
    return "\n".join([*lines, shared])


def known_of_symbols(graph_module: GraphModule) -> str:
    """All that torch knows of the symbols in the inputs' sizes, and what they are now."""
    env = shape_env(graph_module)
    if env is None:
        return "no symbols"
    told = [guard.expr for guard in env.guards]
    return str((told, env.var_to_range, env.replacements, env.divisible, env.backed_var_to_val))


def _circumstances() -> Iterator[str]:
    """What decides, besides the graph, which ATen operators it comes to, and as which loops."""
    c = torch._C
    yield f"torch {torch.__version__} dynacap {_own_sources()}"
    yield f"{current_state()} {torch.get_default_dtype()} {torch.get_default_device()}"
    yield f"{c._get_deterministic_algorithms()} {c._get_mkldnn_enabled()}"
    kernels = (c._get_flash_sdp_enabled, c._get_math_sdp_enabled, c._get_mem_efficient_sdp_enabled)
    yield str([enabled() for enabled in kernels])
    if c._len_torch_dispatch_stack():
        raise _NoWords("a mode of the user's sees each operator")
    # Kernels for ATen's own operators that somebody has registered from Python.
    yield " ".join(sorted(name for name in torch.library._impls if name.startswith("aten/")))


def _circumstances_of_gradients(example_inputs: Sequence[Any]) -> Iterator[str]:
    """What decides how AOTAutograd parts a graph and its backward pass, if there is one."""
    if any(isinstance(value, torch.Tensor) and value.requires_grad for value in example_inputs):
        if hooks_of_saved_tensors():
            raise _NoWords("hooks that may become part of the graph")
        yield functorch_config.get_hash().hex()


@functools.cache
def _own_sources() -> str:
    """The sources of this backend, as a hash."""
    digest = hashlib.sha256()
    for path in sorted((*_HERE.rglob("*.py"), *_HERE.rglob("*.h"))):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _input(node: Node, value: Any) -> str:
    example = example_value(node)
    if type(value) not in _TENSORS:
        return f"{node.name} = {_said(value)} {_said(example)}"
    sizes = ""
    if is_variable(example):
        sizes = f"{example.shape} {example.stride()} {example.storage_offset()}"
    kind = value.dtype, value.device, value.layout, value.is_inference()
    gradient = (value.requires_grad, value.is_leaf) if value.requires_grad else ()
    if value.layout is not torch.strided:
        raise _NoWords("a layout without strides")
    return f"{node.name} = {kind} {gradient} {tuple(value.shape)} {value.stride()} {sizes}"


def _node(node: Node) -> str:
    target = node.target if isinstance(node.target, str) else _name(node.target)
    if node.op == "placeholder":
        return node.name  # its target may hold an object's address
    if node.op not in ("call_function", "call_method", "output"):
        raise _NoWords("an attribute of the graph")
    return f"{node.name} = {node.op} {target} {_said(node.args)} {_said(node.kwargs)}"


def _said(value: Any) -> str:
    kind = type(value)
    if kind is Node:
        return f"%{value.name}"
    if kind in _WORDS:
        return repr(value)
    if kind in _SYMBOLIC:
        return f"{kind.__name__}({value.node.expr})"
    if kind in _NESTS:
        return f"{kind.__name__}({', '.join(map(_said, value))})"
    if kind is slice:
        return f"slice({_said(value.start)}, {_said(value.stop)}, {_said(value.step)})"
    if kind is dict:
        return f"dict({', '.join(f'{_said(k)}: {_said(v)}' for k, v in value.items())})"
    raise _NoWords(f"a {kind.__name__}")


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        name = str(target)
        if name.split(".")[0] in ("aten", "prims"):
            return name
    found = _names().get(id(target)) or _place_of(target)
    if found is None or (isinstance(target, FunctionType) and not _is_torchs(target)):
        raise _NoWords(f"a function that is not torch's: {target}")
    return found


def _place_of(target: Any) -> str | None:
    """Where in a module of torch's a function is found, if it says so truly."""
    module, name = getattr(target, "__module__", None), getattr(target, "__qualname__", None)
    if not (isinstance(module, str) and isinstance(name, str) and module.startswith("torch.")):
        return None
    there = vars(sys.modules.get(module, _NOTHING)).get(name)
    return f"{module}.{name}" if there is target else None


def _is_torchs(function: FunctionType) -> bool:
    return function.__code__.co_filename.startswith(_TORCH)


@functools.cache
def _names() -> dict[int, str]:
    """Functions by identity."""
    found: dict[int, str] = {}
    for home in _HOMES:
        name = getattr(home, "__name__", type(home).__name__)
        for key in dir(home):
            value = getattr(home, key)
            if callable(value):
                found.setdefault(id(value), f"{name}.{key}")
                _kept.append(value)
    return found


_kept: list[Any] = []  # so that an identity stays the one of what was named
