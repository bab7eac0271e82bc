"""Captures PyTorch programs out of running Python bytecode and compiles the captured graphs.

The public names are loaded when they are first asked for, so that ``import dynacap.fxlite`` loads
neither torch nor the executor.
"""

import importlib
from typing import TYPE_CHECKING

# Bound at once: the submodule of the same name would otherwise take the name ``dynacap.config``.
from dynacap.config import config

if TYPE_CHECKING:  # what __getattr__ below loads, for type checkers and editors
    from dynacap import guards as guards
    from dynacap.api import (
        allow_in_graph,
        assume_constant_result,
        compile,
        counters,
        disable,
        disallow_in_graph,
        error_on_graph_break,
        explain,
        forbid_in_graph,
        graph_break,
        is_compiling,
        mark_dynamic,
        mark_static,
        maybe_mark_dynamic,
        nonstrict_trace,
        recompiles,
        reset,
        set_stance,
        skip_frame,
        why,
    )
    from dynacap.backends import cache_info, clear_cache, list_backends, register_backend
    from dynacap.errors import (
        BackendCompilerFailed,
        DynacapError,
        FailOnRecompileLimitHit,
        InvalidBackend,
        RecompileError,
        TorchRuntimeError,
        Unsupported,
        UserError,
    )

__version__ = "0.1.0"

__all__ = [
    "BackendCompilerFailed",
    "DynacapError",
    "FailOnRecompileLimitHit",
    "InvalidBackend",
    "RecompileError",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
    "allow_in_graph",
    "assume_constant_result",
    "cache_info",
    "clear_cache",
    "compile",
    "config",
    "counters",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "guards",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "nonstrict_trace",
    "recompiles",
    "register_backend",
    "reset",
    "set_stance",
    "skip_frame",
    "why",
]

_HOMES = dict.fromkeys(
    ("cache_info", "clear_cache", "list_backends", "register_backend"), "dynacap.backends"
)


def _home(name: str) -> str:
    """The module that a public name is loaded from: exceptions begin with a capital."""
    return _HOMES.get(name) or ("dynacap.errors" if name[0].isupper() else "dynacap.api")


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'dynacap' has no attribute {name!r}")
        module = importlib.import_module(_home(name))
        value: object = getattr(module, name)  # AttributeError while the module is being loaded
        # All of the module at once: compiled code should find the others loaded.
        found = vars(module)
        globals().update((each, found[each]) for each in __all__ if each in found)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
