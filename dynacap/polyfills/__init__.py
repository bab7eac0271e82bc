"""Python versions of library functions written in C, inlined like user code."""

from dynacap.polyfills import bisection, copying, counting, heaps

__all__ = ["bisection", "copying", "counting", "heaps"]
