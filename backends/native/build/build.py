"""Libraries for C sources: found in the cache, or compiled, several at a time."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from dynacap.backends.native.build.cache import Cache, CacheInfo, NotPrivate
from dynacap.backends.native.build.compiler import Compiler
from dynacap.config import config


def disk_cache() -> Cache:
    """The cache that the options name."""
    cache = _cache(Path(config.cache_dir) if config.cache_dir else _own_folder())
    cache.limit_bytes = config.cache_limit
    return cache


@functools.cache
def _own_folder() -> Path:
    """Below the user's home; where nothing can be written there, one for this process."""
    with contextlib.suppress(OSError, RuntimeError):  # the latter: nobody has this user's id
        folder = Path.home() / ".cache/dynacap/native"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    folder = Path(tempfile.mkdtemp(prefix="dynacap-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
        with tempfile.NamedTemporaryFile(suffix=".c", delete=False) as file:
            file.write(source.encode(errors="replace"))
        try:
            compiler.compile(Path(file.name), path)
        finally:
            os.unlink(file.name)

    return disk_cache().library(_key(source, compiler), make)


def _key(text: str, compiler: Compiler) -> str:
    return "\n".join([compiler.identity, *compiler.flags, text])


def library_name(source: str, compiler: Compiler) -> str:
    """What the library of a C source is called in the cache."""
    return disk_cache().path(_key(source, compiler)).name


def library_path(name: str) -> Path:
    """Where it lies."""
    return disk_cache().folder / name


def keep_note(description: str, compiler: Compiler, note: dict[str, Any]) -> None:
    """Note, for later processes, what a graph came to: ``note["parts"]`` name libraries."""
    with contextlib.suppress(OSError, NotPrivate):
        disk_cache().note(_key(description, compiler), json.dumps(note).encode())


def find_note(description: str, compiler: Compiler) -> dict[str, Any] | None:
    """What was noted in an earlier process, if all of its libraries are there."""
    cache = disk_cache()
    with contextlib.suppress(OSError, NotPrivate):
        text = cache.noted(_key(description, compiler))
        note: dict[str, Any] = {} if text is None else json.loads(text)
        if note and all([cache.has(part["library"]) for part in note["parts"]]):
            return note
    return None


def build_later(source: str, compiler: Compiler) -> Future[Path]:
    """The same, in a thread of its own: the compiler is another process."""
    return _workers().submit(build, source, compiler)
