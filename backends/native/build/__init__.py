"""From C source to a shared library: the compiler, and a cache of what it made."""

from dynacap.backends.native.build.build import (
    build_later,
    cache_info,
    clear_cache,
    find_note,
    keep_note,
    library_name,
    library_path,
)
from dynacap.backends.native.build.compiler import HOW_TO_GET_ONE, Compiler, find_compiler

__all__ = [
    "HOW_TO_GET_ONE",
    "Compiler",
    "build_later",
    "cache_info",
    "clear_cache",
    "find_compiler",
    "find_note",
    "keep_note",
    "library_name",
    "library_path",
]
