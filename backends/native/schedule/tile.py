"""Cutting one loop into several: where arithmetic asks for it, and where the cache does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dynacap.backends.native.loops.expression import Load, loads
from dynacap.backends.native.loops.index import Axis, Index, Quotient, Size
from dynacap.backends.native.loops.kernel import Statement, Store

_PAGE = 4096  # bytes: lines that lie so far apart compete for the same few places in the cache


@dataclass(eq=False)
class Pieces:
    """An axis cut into several, outermost first, and what stands for it then."""

    pieces: tuple[Axis, ...]
    values: dict[Axis, Index]


def cut(axis: Axis | None, divisors: Iterable[Size], forced: Iterable[Size] = ()) -> Pieces:
    """Cut an axis where it must be, and at each divisor that fits between the cuts there are."""
    if axis is None:
        return Pieces((), {})
    cuts = sorted({1, *forced} - {axis.size})
    for divisor in sorted(set(divisors) - {axis.size}):
        around = [axis.size, *cuts]
        if all(a % divisor == 0 or divisor % a == 0 for a in around) and divisor not in cuts:
            cuts = sorted([*cuts, divisor])
    if len(cuts) == 1:
        return Pieces((axis,), {})
    sizes = [b // a for a, b in zip(cuts, [*cuts[1:], axis.size], strict=True)]
    pieces = [Axis(size, f"{axis.name}{n}") for n, size in enumerate(reversed(sizes))]
    value = Index(dict(zip(pieces, reversed(cuts), strict=True)))
    return Pieces(tuple(pieces), {axis: value})


def quotients(index: Index, axis: Axis) -> Iterator[Size]:
    """The numbers by which an index divides an axis."""
    for atom in index.terms:
        if isinstance(atom, Quotient):
            if atom.dividend.terms == {axis: 1} and atom.dividend.const == 0:
                yield atom.divisor
            else:
                yield from quotients(atom.dividend, axis)


def tiled(axes: Sequence[Axis], body: Sequence[Statement]) -> Pieces:
    """Cut the innermost loop into blocks, where it reads across and an outer loop along.

    The loop over blocks goes outside that outer one, so that what a block reads of each line of the
    cache is read again, one element on, before the line is gone.
    """
    found = [load for s in body if isinstance(s, Store) for load in loads(s.value)]
    for load in found if len(axes) > 1 else ():
        along = next((n for n, a in enumerate(axes[:-1]) if load.offset.coefficient(a) == 1), None)
        if along is None:
            continue
        block = _block(load, axes[-1])
        if block is not None:
            last = axes[-1]
            outer, inner = Axis(last.size // block, f"{last.name}b"), Axis(block, last.name)
            order = (*axes[:along], outer, *axes[along:-1], inner)
            return Pieces(order, {last: Index({outer: block, inner: 1})})
    return Pieces(tuple(axes), {})


def _block(load: Load, axis: Axis) -> int | None:
    """How many steps of an axis one block takes, if a load steps far along it."""
    step = load.offset.coefficient(axis)
    if not isinstance(step, int) or not isinstance(axis.size, int) or abs(step) <= 1:
        return None
    bytes_ = step * load.buffer.dtype.itemsize
    sizes = (8,) if bytes_ % _PAGE == 0 else (16, 8)
    return next((size for size in sizes if axis.size % size == 0 and axis.size > size), None)
