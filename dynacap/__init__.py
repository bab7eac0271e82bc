"""Captures PyTorch programs out of running Python bytecode and compiles the captured graphs.

The public names are loaded when they are first asked for, so that ``import dynacap.fxlite`` loads
neither torch nor the executor.
"""

import importlib

# Bound at once: the submodule of the same name would otherwise take the name ``dynacap.config``.
from dynacap.config import config as config

__version__ = "0.1.0"

_API = (
    "compile",
    "explain",
    "reset",
    "disable",
    "graph_break",
    "allow_in_graph",
    "disallow_in_graph",
    "is_compiling",
    "counters",
)
_BACKENDS = ("list_backends", "register_backend")
_ERRORS = (
    "BackendCompilerFailed",
    "DynacapError",
    "FailOnRecompileLimitHit",
    "RecompileError",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
)
_HOMES = {
    **dict.fromkeys(_API, "dynacap.api"),
    **dict.fromkeys(_BACKENDS, "dynacap.backends"),
    **dict.fromkeys(_ERRORS, "dynacap.errors"),
}

__all__ = ["config", *_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'dynacap' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
