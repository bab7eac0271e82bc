"""All that decides what a capture finds, other than what its guards look at."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy
import torch

import dynacap.backends
import dynacap.fxlite
import dynacap.guards
from dynacap import stance
from dynacap.backends.registry import Backend, backend_name, is_own
from dynacap.cache import Options
from dynacap.config import config
from dynacap.guards import ProcessState
from dynacap.guards.ref import describe
from dynacap.kept.names import digest

_SHALLOW = 3  # how deep arguments are looked into
_MARKS = ("_dynamo_dynamic_indices", "_dynamo_weak_dynamic_indices", "_dynamo_static_indices")
_TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})
_MOST = 32  # items of one container
_NOT_ASKED = frozenset({"logs", "cache_dir", "cache_limit"})
Stamp = tuple[int, int]


def key_of(place: Any, backend: Backend, options: Options, flat: tuple[Any, ...]) -> str | None:
    """The words; None for what is not kept: other backends may do otherwise each time."""
    name, state = _name(backend), ProcessState.current()
    if name is None or state.function_modes or state.dispatch_modes:
        return None
    asked = options.fullgraph, options.dynamic, options.everything
    strict = stance.STATE.stance.name, stance.STATE.error_on_break
    sites = [(digest(site.code), site.point) for site in place.sites or ()]
    arguments = [_look(value, _SHALLOW) for value in flat]
    found = _process(), _options(), name, str(state), str((asked, strict))
    return "\n".join([*found, digest(place.code), str(sites), *arguments])


def _name(backend: Backend) -> str | None:
    bound: tuple[Any, ...] = ()
    if isinstance(backend, functools.partial):
        bound = (backend.args, sorted(backend.keywords.items()))
        backend = backend.func
    return f"{backend_name(backend)} {bound}" if is_own(backend) else None


def _options() -> str:
    named = (each.name for each in fields(config) if each.name not in _NOT_ASKED)
    return str([(name, getattr(config, name)) for name in named])


@functools.cache
def _process() -> str:
    """Versions, and the sources of this package, by their times and sizes."""
    own = hashlib.sha256()
    for package in (dynacap, dynacap.guards, dynacap.fxlite, dynacap.backends):
        folder = Path(str(package.__file__)).parent
        for path in sorted((*folder.rglob("*.py"), *folder.rglob("*.so"))):
            own.update(f"{path} {_stamp(str(path))}".encode())
    versions = f"{sys.version} torch {torch.__version__} numpy {numpy.__version__}"
    return f"{versions} {sys.flags} {torch.cuda.device_count()} {own.hexdigest()}"


def _look(value: Any, depth: int) -> str:
    """What an argument looks like: not all that guards ask, but what tells most entries apart."""
    kind = type(value)
    if kind in _TENSORS:  # others may say themselves what they look like
        if value.layout is not torch.strided or value.is_nested:
            return f"{describe(kind)} {value.layout}"
        marks = tuple(str(getattr(value, name, None)) for name in _MARKS)
        looks = value.dtype, tuple(value.shape), value.stride(), value.requires_grad, *marks
        return f"{describe(kind)} {looks}"
    if kind in (bool, float, str, type(None)):
        return repr(value)
    if kind is int:
        return hex(value)
    if kind in (tuple, list) and depth:
        return f"{kind.__name__} {[_look(each, depth - 1) for each in value[:_MOST]]} {len(value)}"
    if kind is dict and depth:
        some = list(value.items())[:_MOST]
        return f"{[(_look(k, 0), _look(v, depth - 1)) for k, v in some]} {len(value)}"
    return describe(kind)


def files_now(paths: Any) -> dict[str, Stamp | None]:
    """When these files were written, and how large they are."""
    return {path: _stamp(path) for path in paths}


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
