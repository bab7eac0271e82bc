"""Symbolic execution of frames.  Importing it registers the instruction handlers."""

import importlib
import pkgutil

from dynacap.executor.machine import Machine, StopHere

__all__ = ["Machine", "StopHere"]

for _module in pkgutil.iter_modules(__path__):
    if _module.name.startswith("ops_") or _module.name in ("rebuild", "outside_generators"):
        importlib.import_module(f"{__name__}.{_module.name}")
