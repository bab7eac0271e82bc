"""Python versions of library functions written in C, inlined like user code."""

from dynacap.polyfills import copying, counting, heaps

__all__ = ["copying", "counting", "heaps"]
