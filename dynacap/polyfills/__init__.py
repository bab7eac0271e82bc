"""Python versions of library functions written in C, inlined like user code."""
