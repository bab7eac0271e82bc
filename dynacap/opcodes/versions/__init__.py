"""Chooses the bytecode description of the running Python. The only version test in Python code."""

import importlib
import sys
from functools import cache

from dynacap.errors import UnsupportedPython
from dynacap.opcodes.versions.facts import running
from dynacap.opcodes.versions.protocol import Version


def is_known() -> bool:
    """Whether the running Python's bytecode is described here."""
    try:
        version()
    except UnsupportedPython:
        return False
    return True


@cache
def version(major: int = sys.version_info[0], minor: int = sys.version_info[1]) -> Version:
    """Return the description of one Python's bytecode, by default that of the running one."""
    name = f"py{major}{minor}"
    try:
        module = importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise UnsupportedPython(
            f"dynacap does not know the bytecode of Python {major}.{minor}"
            f" (no opcodes/versions/{name}.py); functions run as they are"
        ) from error
    description: Version = module.describe(running())
    return description
