"""Libraries for C sources: found in the cache, or compiled, several at a time."""

from __future__ import annotations

import functools
import os
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from dynacap.backends.native.build.cache import Cache, default_folder
from dynacap.backends.native.build.compiler import Compiler

LIMIT_BYTES = 1 << 30


@functools.cache
def disk_cache() -> Cache:
    """The process's cache."""
    return Cache(default_folder(), LIMIT_BYTES)


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="dynacap-cc")


def build(source: str, compiler: Compiler) -> Path:
    """The library of a C source."""

    def make(path: Path) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".c", delete=False) as file:
            file.write(source)
        try:
            compiler.compile(Path(file.name), path)
        finally:
            os.unlink(file.name)

    key = "\n".join([compiler.identity, *compiler.flags, source])
    return disk_cache().library(key, make)


def build_later(source: str, compiler: Compiler) -> Future[Path]:
    """The same, in a thread of its own: the compiler is another process."""
    return _workers().submit(build, source, compiler)
