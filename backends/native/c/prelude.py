"""The C text before the kernels: types, and those functions of ``math.h`` that they use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dynacap.backends.native.c.sleef import sleef
from dynacap.backends.native.c.types import SUFFIX

_HEAD = """\
#include <stdint.h>
#include <stdbool.h>
#define ALIGNED __attribute__((aligned(64)))
"""
_WORD = re.compile(r"[A-Za-z_]\w*")
_DEFINED = re.compile(r"^static inline \w+ (\w+)\(|^#define (\w+)", re.MULTILINE)
_TYPES = {suffix: name for name, suffix in SUFFIX.items()}

# What a buffer must not be called.
RESERVED = frozenset(
    "auto bool break case char const continue default do double else enum extern false float for"
    " goto if inline int long register restrict return short signed sizeof static struct switch"
    " true typedef union unsigned void volatile while bf16 f16 asm typeof linux unix i386".split()
)


def prelude(code: str) -> str:
    """What a piece of C needs before it."""
    blocks: dict[str, None] = {}
    for name in dict.fromkeys(_WORD.findall(code)):
        _need(name, blocks)
    return "\n\n".join([_HEAD, *blocks])


def _need(name: str, blocks: dict[str, None]) -> None:
    """Add the block that defines a name, after those that it needs itself."""
    block = _block(name)
    if block is None or block in blocks:
        return
    for word in dict.fromkeys(_WORD.findall(block)):
        if word != name and word not in tuple(_defined_in(block)):
            _need(word, blocks)
    blocks[block] = None


@cache
def _block(name: str) -> str | None:
    """The text that defines a name: as it stands, or a template filled in for its type."""
    found = _blocks().get(name)
    if found is not None:
        return found
    stem, _, suffix = name.rpartition("_")
    template = _blocks().get(f"{stem}_SFX")
    if suffix not in _TYPES:
        return None
    if template is None:
        return sleef(name)
    return template.replace("TYPE", _TYPES[suffix]).replace("SFX", suffix)


@cache
def _blocks() -> dict[str, str]:
    """The pieces of ``math.h``, which blank lines separate, by the names that they define."""
    text = (Path(__file__).parent / "math.h").read_text()
    return {name: block for block in text.split("\n\n") for name in _defined_in(block)}


def _defined_in(block: str) -> Iterator[str]:
    for function, macro in _DEFINED.findall(block):
        yield function or macro
    yield from re.findall(r"^typedef .*?(\w+)(?: __attribute__.*)?;", block, re.MULTILINE)
