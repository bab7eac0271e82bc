"""Rows of large tensors, fetched before their turn.

A kernel that reads a row several times waits for memory in its first pass, and then computes while
memory idles: the next rows are asked for at the start of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dynacap.backends.native.loops.expression import Expression, Load, walk
from dynacap.backends.native.loops.index import Axis
from dynacap.backends.native.loops.kernel import Kernel, Loop, Statement, Store
from dynacap.backends.native.loops.program import Buffer

_LARGE = 1 << 23  # bytes: a buffer of fewer may lie in a cache, and is read from there as it is
_DISTANCE = 2048  # bytes at least between what is fetched and what is read
_LONGEST = 16384  # bytes of a row: longer ones the processor fetches by itself
_LINE = 64  # bytes


def fetched(kernel: Kernel, loop: Loop) -> Iterator[tuple[Buffer, int, int]]:
    """The buffers of which a loop over rows reads one row after the other: how many elements a row
    has, and how many lie between the row that is fetched and the one that is read."""
    rows = loop.axis.size
    if loop.vector or not isinstance(rows, int) or not any(map(_folds, loop.body)):
        return
    read = dict.fromkeys(
        load.buffer for load in _loads(loop.body) if load.buffer in kernel.reads
        and _large(load.buffer) and _width(load, loop.axis) * rows == load.buffer.numel
    )  # fmt: skip
    for buffer in read:
        width = buffer.numel // rows
        size = width * buffer.dtype.itemsize
        if _LINE < size <= _LONGEST:
            yield buffer, width, width * -(-_DISTANCE // size)


def fetch(buffer: Buffer, name: str, row: Axis, width: int, distance: int) -> str:
    """The line that fetches a row."""
    step = _LINE // buffer.dtype.itemsize
    place = f"&{name}[{width}*{row} + j + {distance}]"
    return f"for (int64_t j = 0; j < {width}; j += {step}) {{ __builtin_prefetch({place}); }}"


def _large(buffer: Buffer) -> bool:
    return isinstance(buffer.numel, int) and buffer.numel * buffer.dtype.itemsize >= _LARGE


def _folds(statement: Statement) -> bool:
    return isinstance(statement, Loop) and bool(statement.folds or any(map(_folds, statement.body)))


def _width(load: Load, row: Axis) -> int:
    factor = load.offset.terms.get(row, 0)
    return factor if isinstance(factor, int) else 0


def _loads(body: Sequence[Statement]) -> Iterator[Load]:
    return (node for value in _values(body) for node in walk(value) if isinstance(node, Load))


def _values(body: Sequence[Statement]) -> Iterator[Expression]:
    for statement in body:
        if isinstance(statement, Store):
            yield statement.value
        else:
            yield from _values(statement.body)
            yield from (fold.value for fold in statement.folds)
