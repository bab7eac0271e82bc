"""Python versions of library functions written in C, inlined like user code."""

from dynacap.polyfills import copying, groups, in_python

__all__ = ["copying", "groups", "in_python"]
