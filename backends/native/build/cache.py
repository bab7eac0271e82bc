"""Compiled libraries on disk, by a hash of all that they depend on.

A library is written under a name of its own and then renamed, so that another process sees all of
it or nothing.  Beside it lies its own hash: what does not match is built again.  Nothing is loaded
that another user could have written.  Notes, short texts that say which library a graph came to,
are kept in the same way.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

FORMAT = "1"
DIGITS = 40
WHILE_WRITING = ".part"
_SHARE = 8  # of the room that is left, after which to look again: other processes write too
NOTE = "graph"


@dataclass(frozen=True)
class CacheInfo:
    """What the folder holds, and what this process found in it."""

    folder: Path
    entries: int
    size_bytes: int
    limit_bytes: int
    hits: int
    misses: int


class NotPrivate(RuntimeError):
    """The folder, or one above it, can be written by others."""


class Cache:
    """One folder of libraries."""

    def __init__(self, folder: Path, limit_bytes: int = 1 << 30) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self.hits = 0
        self.misses = 0
        self._counted = limit_bytes  # bytes in the folder when they were counted last
        self._written = 0  # bytes written since then

    def library(self, key: str, make: Callable[[Path], None]) -> Path:
        """The library for a key; ``make(path)`` writes it where there is none, or a bad one."""
        self._make_folder()
        path = self.path(key)
        if self.has(path.name):
            return path
        self.misses += 1
        self._build(path, make)
        self._shrink(path)
        return path

    def path(self, key: str, kind: str = "so") -> Path:
        """Where the file for a key lies, or would lie."""
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:DIGITS]}.{kind}"

    def has(self, name: str) -> bool:
        """Whether a library of this name is there, whole; it counts as used now."""
        path = self.folder / name
        if self._content(path) is None:
            return False
        self.hits += 1
        with contextlib.suppress(OSError):
            os.utime(path)
        return True

    def note(self, key: str, content: bytes, kind: str = NOTE) -> None:
        """Keep a note for a key."""

        def make(path: Path) -> None:
            path.write_bytes(content)

        self._make_folder()
        self._build(self.path(key, kind), make)

    def noted(self, key: str, kind: str = NOTE) -> bytes | None:
        """What was kept for a key."""
        self._make_folder()
        return self._content(self.path(key, kind))

    def _build(self, path: Path, make: Callable[[Path], None]) -> None:
        with tempfile.TemporaryDirectory(suffix=WHILE_WRITING, dir=self.folder) as room:
            made = Path(room, path.name)
            make(made)
            content = made.read_bytes()
            digest = _digest(content)
            # In one file, so that neither is ever there without the other.
            made.write_bytes(content + digest)
            made.chmod(0o600)
            os.replace(made, path)

    def _content(self, path: Path) -> bytes | None:
        """What a file holds, if it is there, private, and as it was written."""
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode) or not _private(status):
                path.unlink()
                return None
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        content, digest = content[:-DIGEST_BYTES], content[-DIGEST_BYTES:]
        return content if _digest(content) == digest else None

    def _make_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(self.folder)
        whole = stat.S_ISDIR(status.st_mode) and _private(status)
        if not whole or any(map(_open_to_others, self.folder.absolute().parents)):
            raise NotPrivate(
                f"{self.folder}, or a folder above it, belongs to another user or can be written"
                " by others; make it yours alone (chmod 700), or set DYNACAP_CACHE_DIR"
            )

    def _shrink(self, keep: Path) -> None:
        """Drop what was not used for longest, beyond the limit."""
        self._written += keep.stat().st_size
        if self._written * _SHARE < self.limit_bytes - self._counted:
            return  # to count thousands of files takes as long as a compile
        entries = sorted(self._entries("*"), key=lambda entry: entry[1].st_mtime)
        total = sum(status.st_size for _, status in entries)
        for path, status in entries:
            if total <= self.limit_bytes:
                break
            if path != keep:
                path.unlink(missing_ok=True)
                total -= status.st_size
        self._counted, self._written = total, 0

    def _entries(self, names: str = "*.so") -> Iterator[tuple[Path, os.stat_result]]:
        for path in filter(Path.is_file, self.folder.glob(names)):
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat()

    def info(self) -> CacheInfo:
        """What is in the folder now."""
        libraries = len(list(self._entries()))
        size = sum(status.st_size for _, status in self._entries("*"))
        return CacheInfo(self.folder, libraries, size, self.limit_bytes, self.hits, self.misses)

    def clear(self) -> None:
        """Drop all libraries.  Those that are loaded go on working."""
        for path, _ in list(self._entries("*")):
            path.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(FORMAT.encode() + content).digest()


DIGEST_BYTES = len(_digest(b""))


def _open_to_others(folder: Path) -> bool:
    """Whether another user could put a folder of his own in the place of one in here."""
    status = os.stat(folder)
    if status.st_uid not in (0, os.getuid()):
        return True
    return bool(status.st_mode & stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX


def _private(status: os.stat_result) -> bool:
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
