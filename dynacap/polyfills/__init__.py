"""Python versions of library functions written in C, inlined like user code."""

from dynacap.polyfills import arrays, bisection, copying, counting, heaps

__all__ = ["arrays", "bisection", "copying", "counting", "heaps"]
