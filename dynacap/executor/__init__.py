"""Symbolic execution of frames.  Importing it registers the instruction handlers."""

from dynacap.executor import (
    ops_build,
    ops_call,
    ops_exception,
    ops_generator,
    ops_jump,
    ops_load,
    ops_math,
    ops_stack,
    ops_unsupported,
    rebuild,
)
from dynacap.executor.machine import Machine, StopHere

__all__ = [
    "Machine",
    "StopHere",
    "ops_build",
    "ops_call",
    "ops_exception",
    "ops_generator",
    "ops_jump",
    "ops_load",
    "ops_math",
    "ops_stack",
    "ops_unsupported",
    "rebuild",
]
