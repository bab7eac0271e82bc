"""Python versions of library functions written in C, inlined like user code."""

from dynacap.polyfills import arrays, copying, in_python

__all__ = ["arrays", "copying", "in_python"]
