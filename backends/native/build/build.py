"""Libraries for C sources: found in the cache, or compiled, several at a time."""

from __future__ import annotations

import functools
import os
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from dynacap.backends.native.build.cache import Cache, CacheInfo
from dynacap.backends.native.build.compiler import Compiler
from dynacap.config import config

def disk_cache() -> Cache:
    """The cache that the options name."""
    folder = Path(config.cache_dir) if config.cache_dir else Path.home() / ".cache/dynacap/native"
    cache = _cache(folder)
    cache.limit_bytes = config.cache_limit
    return cache


@functools.cache
def _cache(folder: Path) -> Cache:
    return Cache(folder)


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="dynacap-cc")


os.register_at_fork(after_in_child=_workers.cache_clear)  # its threads are not in the child


def cache_info() -> CacheInfo:
    """The folder of compiled libraries: what it holds, and what this process found in it."""
    return disk_cache().info()


def clear_cache() -> None:
    """Drop all compiled libraries on disk.  Those that are loaded go on working."""
    disk_cache().clear()


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
