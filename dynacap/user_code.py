"""Which functions that eager code calls are worth capturing: the user's, and torch's modules."""

from __future__ import annotations

import functools
import gc
import importlib.util
import sysconfig
from pathlib import Path
from types import CodeType, FunctionType

import numpy as np
import torch

from dynacap.hook.functions import search_only

_TORCH = Path(torch.__file__).resolve().parent
_MODELS = str(_TORCH / "nn" / "modules")
_PATHS = sysconfig.get_paths()
_PACKAGES = tuple(str(Path(_PATHS[name]).resolve()) for name in ("purelib", "platlib"))
_LIBRARY = tuple(str(Path(_PATHS[name]).resolve()) for name in ("stdlib", "platstdlib"))
# torch, and what it reckons with when the user's eager code has something compiled by it.
_OURS = (
    str(_TORCH),
    *(str(_TORCH.parent / name) for name in ("torchgen", "functorch", "sympy", "mpmath")),
)
# Where torch.compile wraps the user's functions.
_WRAPPERS = tuple(
    str(_TORCH / name)
    for name in ("_compile.py", "_dynamo/eval_frame.py", "_dynamo/external_utils.py")
)
_NUMPY = str(Path(np.__file__).resolve().parent)
# In a checkout the packages within lie beside each other.
_DYNACAP = tuple(
    str(Path(spec.origin).resolve().parent)
    for name in ("", ".backends", ".fxlite", ".guards")
    if (spec := importlib.util.find_spec(f"dynacap{name}")) is not None and spec.origin
)


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
    if filename.startswith((*_OURS, _NUMPY, *_DYNACAP)):
        return False
    return filename.startswith(_PACKAGES) or not filename.startswith(_LIBRARY)


def may_be_users(code: CodeType) -> bool:
    """Whether a function of this code may be the user's, or wrap one."""
    return _is_users_file(code.co_filename) or code.co_filename.startswith(_WRAPPERS)


search_only(may_be_users)
