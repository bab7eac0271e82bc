"""Which functions that eager code calls are worth capturing: the user's, and torch's modules."""

from __future__ import annotations

import functools
import gc
import importlib.util
import sysconfig
from pathlib import Path
from types import CodeType, FunctionType

from dynacap.hook.functions import search_only


def _folders(*packages: str) -> tuple[str, ...]:
    """Where packages lie, those that there are."""
    specs = map(importlib.util.find_spec, packages)
    return tuple(str(Path(spec.origin).resolve().parent) for spec in specs if spec and spec.origin)


_PATHS = sysconfig.get_paths()
_PACKAGES = tuple(str(Path(_PATHS[name]).resolve()) for name in ("purelib", "platlib"))
_LIBRARY = tuple(str(Path(_PATHS[name]).resolve()) for name in ("stdlib", "platstdlib"))
_TORCH = _folders("torch")
_MODELS = tuple(str(Path(home, "nn", "modules")) for home in _TORCH)
# Where torch.compile wraps the user's functions.
_WRAPPERS = tuple(
    str(Path(home, name))
    for home in _TORCH
    for name in ("_compile.py", "_dynamo/eval_frame.py", "_dynamo/external_utils.py")
)
# torch, and what it reckons with when the user's eager code has something compiled by it; NumPy.
_THEIRS = _folders("torch", "torchgen", "functorch", "sympy", "mpmath", "numpy")
# In a checkout the packages within lie beside each other.
_OURS = _folders("dynacap", "dynacap.backends", "dynacap.fxlite", "dynacap.guards")


def is_users(function: FunctionType, code: CodeType) -> bool:
    """Whether to offer a frame of this function to capture.

    What the garbage collector calls runs at any time, and is no part of what the user compiles.
    """
    return _is_users_file(code.co_filename) and function not in gc.callbacks


@functools.lru_cache(maxsize=4096)
def _is_users_file(filename: str) -> bool:
    if filename.startswith("<"):
        # Of the standard library, dataclasses and namedtuple make such code; also doctest.
        return filename.startswith(("<ipython-input", "<stdin>", "<doctest"))
    if filename.startswith(_MODELS):
        return True
    if filename.startswith(_THEIRS + _OURS):
        return False
    return filename.startswith(_PACKAGES) or not filename.startswith(_LIBRARY)


def may_be_users(code: CodeType) -> bool:
    """Whether a function of this code may be the user's, or wrap one."""
    return _is_users_file(code.co_filename) or code.co_filename.startswith(_WRAPPERS)


search_only(may_be_users)
