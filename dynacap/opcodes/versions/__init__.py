"""Chooses the bytecode description of the running Python. The only version test in Python code."""

import importlib
import sys
from functools import cache
from typing import Any

from dynacap.errors import UnsupportedPython
from dynacap.opcodes.versions.facts import running
from dynacap.opcodes.versions.protocol import Version


@cache
def version() -> Version:
    """Return the description of the running Python's bytecode."""
    description: Version = module(*sys.version_info[:2]).describe(running())
    return description


def module(major: int, minor: int) -> Any:
    """Return the module that describes one Python's bytecode."""
    name = f"py{major}{minor}"
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise UnsupportedPython(
            f"dynacap does not know the bytecode of Python {major}.{minor}"
            f" (no opcodes/versions/{name}.py); functions run as they are"
        ) from error
