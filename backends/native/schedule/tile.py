"""Cutting one loop into several: where arithmetic asks for it, and where the cache does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dynacap.backends.native.loops.expression import Expression, Load, loads, rewrite, substitute
from dynacap.backends.native.loops.index import Axis, Index, Quotient, Size
from dynacap.backends.native.loops.kernel import Loop, Statement, Store
from dynacap.backends.native.loops.program import Buffer

_TILE = 64  # elements along each side of what is transposed in the nearest cache
_NARROW = 8  # fewer would fill no vector
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


@dataclass(eq=False)
class Staged:
    """Loops over tiles, what is done in each, and the memory that a tile needs."""

    axes: tuple[Axis, ...]
    body: list[Statement]
    scratch: tuple[Buffer, ...]


def staged(axes: Sequence[Axis], body: Sequence[Statement]) -> Staged | None:
    """Loops in tiles, where something is read across: first copied along its lines, then read.

    So each line of memory is touched once and whole, on the way in and on the way out.
    """
    stores = [s for s in body if isinstance(s, Store)]
    crossing = [load for store in stores for load in loads(store.value)]
    for along in axes[:-1]:
        across = [load for load in crossing if _across(load, along, axes[-1])]
        sizes = [_side(axis, across) for axis in (along, axes[-1])]
        if across and all(size >= _NARROW for size in sizes):
            return _staged(axes, stores, along, across, sizes)
    return None


def _across(load: Load, along: Axis, last: Axis) -> bool:
    """Whether neighbours of the last axis lie far apart, and those of the other side by side."""
    step = load.offset.coefficient(last)
    return load.offset.coefficient(along) == 1 and isinstance(step, int) and abs(step) > 1


def _side(axis: Axis, read: Sequence[Load]) -> int:
    """How long a tile is along an axis: what divides it evenly."""
    if not isinstance(axis.size, int) or not read:
        return 0
    most = _TILE * 4 // max(4, *(load.buffer.dtype.itemsize for load in read))
    return next(size for size in range(min(most, axis.size), 0, -1) if axis.size % size == 0)


def _staged(
    axes: Sequence[Axis],
    stores: Sequence[Store],
    along: Axis,
    across: Sequence[Load],
    sizes: Sequence[int],
) -> Staged:
    last = axes[-1]
    blocks = {
        axis: (Axis(axis.size // size, f"{axis.name}b"), Axis(size, axis.name))
        for axis, size in zip((along, last), sizes, strict=True)
    }
    values = {
        axis: Index({block: size, inner: 1})
        for (axis, (block, inner)), size in zip(blocks.items(), sizes, strict=True)
    }
    outer, inner = blocks[along][1], blocks[last][1]
    tiles: dict[tuple[Buffer, Index], Buffer] = {}
    for load in across:
        size, name = sizes[0] * sizes[1], f"tile{len(tiles)}"
        key = load.buffer, load.offset
        tiles.setdefault(key, Buffer(name, load.buffer.dtype, (size,), (1,)))
    at = Index({inner: sizes[0], outer: 1})
    copies: list[Statement] = [
        Store(tile, at, Load(buffer, offset.substitute(values)))
        for (buffer, offset), tile in tiles.items()
    ]

    def read(node: Expression) -> Expression | None:
        if isinstance(node, Load) and (node.buffer, node.offset) in tiles:
            return Load(tiles[node.buffer, node.offset], at)
        return None

    work: list[Statement] = []
    for store in stores:
        value = substitute(rewrite(store.value, read), values)
        work.append(Store(store.buffer, store.offset.substitute(values), value, store.combiner))
    return Staged(
        tuple(blocks[axis][0] if axis in blocks else axis for axis in axes),
        [Loop(inner, [Loop(outer, copies, vector=True)]),
         Loop(outer, [Loop(inner, work, vector=True)])],
        tuple(tiles.values()),
    )  # fmt: skip
