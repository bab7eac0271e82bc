"""A module that is loaded anew stands for another process: none of its objects is one of before."""

import importlib.util
import sys
import types
from pathlib import Path


def loaded_anew(path: Path, name: str) -> types.ModuleType:
    """The module of a file, under a name that it takes over."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
