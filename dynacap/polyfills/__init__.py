"""Python versions of library functions written in C, inlined like user code."""

from dynacap.polyfills import aliases, copying, groups, in_python

__all__ = ["aliases", "copying", "groups", "in_python"]
