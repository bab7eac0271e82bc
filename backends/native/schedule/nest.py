"""From a group to a kernel: what each loop computes, keeps and stores, and how axes are cut.

Row and pass counters are flat; they are cut into several axes only where the arithmetic asks for
it, by a quotient that did not simplify: ``b[row % 64]`` cuts the row into (rows / 64, 64), and what
is contiguous stays one loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dynacap.backends.native.loops.equation import extent
from dynacap.backends.native.loops.expression import (
    Expression,
    Load,
    Local,
    Position,
    checks_index,
    index_of,
    loads,
    rewrite,
    substitute,
    walk,
)
from dynacap.backends.native.loops.index import ZERO, Axis, Index, Size
from dynacap.backends.native.loops.kernel import Fold, Kernel, Loop, Statement, Store
from dynacap.backends.native.loops.program import Buffer
from dynacap.backends.native.schedule.cost import CHEAP, cost, heavy
from dynacap.backends.native.schedule.folds import LONGEST_SUM, fold_loops, identity
from dynacap.backends.native.schedule.group import Group, Member, Pass
from dynacap.backends.native.schedule.tile import Pieces, cut, quotients, staged, tiled

_T = TypeVar("_T")
PARALLEL = 1_000_000.0  # of cost: what pays for waking the other cores


@dataclass(eq=False)
class _Line:
    """One member with its final value."""

    member: Member
    offset: Index
    value: Expression
    local: Local | None = None


class _Nest:
    """Builds the kernel of one group; ``needed`` buffers are read by others."""

    def __init__(self, group: Group, needed: Iterable[Buffer]) -> None:
        self.group = group
        self.needed = frozenset(needed)
        self.lines: dict[Member, _Line] = {}
        self.scratch: dict[Buffer, Buffer] = {}
        self.read_back: set[Buffer] = set()
        self.tiles: tuple[Buffer, ...] = ()
        for one in group.passes:
            for member in one.members:
                self._resolve(member)
        for member, line in self.lines.items():
            kept = not line.local or member.row_size != 1
            if member.equation.combiner and kept and member.equation.buffer not in self.needed:
                self._memory(member.equation.buffer)

    def _resolve(self, member: Member) -> None:
        equation = member.equation

        def leaf(node: Expression) -> Expression | None:
            if isinstance(node, Load):
                return self._read(node.buffer, node.offset.substitute(member.places), member)
            if isinstance(node, Position):
                return Position(node.index.substitute(member.places), node.dtype)
            return None

        value = rewrite(equation.value, leaf)
        offset = equation.offset.substitute(member.places)
        line = self.lines[member] = _Line(member, offset, value)
        if equation.combiner:
            line.local = Local(f"{equation.buffer.name}_{equation.combiner}", equation.buffer.dtype)

    def _read(self, buffer: Buffer, offset: Index, reader: Member) -> Expression:
        """A load, or what stands for it where this group has written the element itself."""
        writers = self.group.writers.get(buffer)
        if not writers:
            return Load(buffer, offset)
        writer = writers[-1]
        line = self.lines[writer]
        if line.local is not None:
            if writer.row_size == 1:
                return line.local
        elif writer.equation.whole:
            if writer.number == reader.number or writer.row_size == 1:
                return line.value
            if heavy(line.value) <= CHEAP:
                inside = offset - self._row_start(writer.row_size)
                return substitute(line.value, {self.group.inner_axis(writer.row_size): inside})
        return self._load_back(buffer, offset)

    def _row_start(self, size: Size) -> Index:
        return Index({self.group.row: size}) if self.group.rows != 1 else ZERO

    def _load_back(self, buffer: Buffer, offset: Index) -> Load:
        self.read_back.add(buffer)
        if buffer in self.needed:
            return Load(buffer, offset)
        return Load(self._memory(buffer), offset - self._row_start(buffer.numel // self.group.rows))

    def _memory(self, buffer: Buffer) -> Buffer:
        """The scratch that holds the row of a buffer which nobody else reads."""
        if buffer not in self.scratch:
            size = buffer.numel // self.group.rows
            self.scratch[buffer] = Buffer(f"{buffer.name}_row", buffer.dtype, (size,), (1,))
        return self.scratch[buffer]

    def _store(self, line: _Line, value: Expression) -> Store | None:
        """The store of a line's value, where somebody reads it from memory."""
        buffer, offset = line.member.equation.buffer, line.offset
        if buffer in self.needed:
            return Store(buffer, offset, value)
        if buffer not in self.read_back:
            return None
        start = self._row_start(buffer.numel // self.group.rows)
        return Store(self._memory(buffer), offset - start, value)

    def kernel(self, name: str) -> Kernel:
        """The whole loop nest."""
        bodies = [self._pass(number, one) for number, one in enumerate(self.group.passes)]
        body = [statement for statements in bodies for statement in statements]
        body = self._rows(body)
        reads = _unique(load.buffer for s in _stored(body) for load in loads(s))
        reads += _unique(load.buffer for s in _indices(body) for load in loads(s))
        scratch = (*self.scratch.values(), *self.tiles)
        own = {*scratch, *self.needed.intersection(self.group.writers)}
        origins = _unique(o for m in self.group.members for o in m.equation.origins)
        return Kernel(
            name,
            tuple(buffer for buffer in _unique(reads) if buffer not in own),
            tuple(buffer for buffer in self.group.writers if buffer in self.needed),
            body,
            scratch,
            origins=tuple(origins),
            faults=any(map(checks_index, walk(*_stored(body), *_indices(body)))),
        )

    def _pass(self, number: int, one: Pass) -> list[Statement]:
        lines = [self.lines[member] for member in one.members]
        pointwise = [s for line in lines if not line.local and (s := self._store(line, line.value))]
        folds = [line for line in lines if line.local]
        if one.columns:
            return self._columns(one, pointwise, folds)
        counter = self.group.inner.get(one.extent)
        kept_size, reduced = one.fold or (one.extent, 1)
        axes = cut(counter, _divisors(counter, lines), _boundary(reduced, folds))
        kept, inner = _split(axes, kept_size) if one.fold else (axes.pieces, ())
        after = [s for line in folds if line.local and (s := self._store(line, line.local))]
        body: list[Statement] = list(pointwise)
        if inner or folds:
            body = fold_loops(inner, body, [_fold_of(line, axes) for line in folds])
        body = _nest(kept, [*body, *after], vector=not folds)
        return [_replaced(statement, axes.values) for statement in body]

    def _columns(
        self, one: Pass, pointwise: Sequence[Store], folds: Sequence[_Line]
    ) -> list[Statement]:
        """Sums down the columns: a row of accumulators in memory, the loop over them innermost."""
        assert one.fold is not None
        reduced, width = one.fold
        counter = self.group.inner.get(one.extent)
        axes = cut(counter, _divisors(counter, [self.lines[m] for m in one.members]), {width})
        outer, inner = _split(axes, reduced)
        start: list[Statement] = []
        body: list[Statement] = list(pointwise)
        for line in folds:
            buffer = line.member.equation.buffer
            target, offset = buffer, line.offset
            if buffer not in self.needed:
                target = self._memory(buffer)
                offset = offset - self._row_start(width)
            combiner = line.member.equation.combiner
            start.append(Store(target, offset, identity(combiner, buffer.dtype)))
            body.append(Store(target, offset, line.value, combiner))
        loops = [*_nest(inner, start), *_nest(outer, _nest(inner, body), vector=False)]
        return [_replaced(statement, axes.values) for statement in loops]

    def _rows(self, body: list[Statement]) -> list[Statement]:
        if self.group.rows == 1:
            return body
        axes = cut(self.group.row, _row_divisors(self.group.row, body))
        flat = all(isinstance(statement, Store) for statement in body)
        total = self.group.rows * sum(
            one.extent * cost(*(self.lines[member].value for member in one.members))
            for one in self.group.passes
        )
        body = [_replaced(statement, axes.values) for statement in body]
        parallel = not isinstance(total, int | float) or total > PARALLEL
        if flat:
            tiles = staged(axes.pieces, body)
            if tiles is not None:
                self.tiles = tiles.scratch
                return _nest(tiles.axes, tiles.body, vector=False, parallel=parallel)
            axes = tiled(axes.pieces, body)
            body = [_replaced(statement, axes.values) for statement in body]
        return _nest(axes.pieces, body, vector=flat, parallel=parallel)


def _split(axes: Pieces, outer: Size) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The pieces that make up the outer so many iterations, and the rest."""
    count = next(n for n in range(len(axes.pieces) + 1) if extent(axes.pieces[:n]) == outer)
    return axes.pieces[:count], axes.pieces[count:]


def _boundary(reduced: Size, folds: Sequence[_Line]) -> set[Size]:
    """Where a pass must be cut: between what is kept and reduced, and within long sums."""
    if not folds:
        return set()
    cuts = {reduced}
    if isinstance(reduced, int) and reduced > LONGEST_SUM:
        part = next((d for d in range(LONGEST_SUM, 255, -1) if reduced % d == 0), None)
        cuts.update({part} if part else ())
    return cuts


def _divisors(counter: Axis | None, lines: Sequence[_Line]) -> set[Size]:
    if counter is None:
        return set()
    indices = [index for line in lines for index in (line.offset, *_indices_in(line.value))]
    return set().union(*(quotients(index, counter) for index in indices))


def _row_divisors(row: Axis, body: Sequence[Statement]) -> set[Size]:
    found: set[Size] = set()
    for statement in _stores(body):
        found.update(quotients(statement.offset, row))
    for value in _stored(body):
        for index in _indices_in(value):
            found.update(quotients(index, row))
    return found


def _indices_in(value: Expression) -> Iterator[Index]:
    return (index for node in walk(value) if (index := index_of(node)) is not None)


def _stores(body: Sequence[Statement]) -> Iterator[Store]:
    for statement in body:
        if isinstance(statement, Store):
            yield statement
        else:
            yield from _stores(statement.body)


def _stored(body: Sequence[Statement]) -> Iterator[Expression]:
    """Every value that the statements compute."""
    for statement in body:
        if isinstance(statement, Store):
            yield statement.value
        else:
            yield from _stored(statement.body)
            yield from (fold.value for fold in statement.folds)


def _indices(body: Sequence[Statement]) -> Iterator[Expression]:
    """The offsets of stores, as expressions."""
    return (Position(store.offset) for store in _stores(body))


def _replaced(statement: Statement, values: dict[Axis, Index]) -> Statement:
    """A statement with axes replaced by their pieces."""
    if not values:
        return statement
    if isinstance(statement, Store):
        offset = statement.offset.substitute(values)
        value = substitute(statement.value, values)
        return Store(statement.buffer, offset, value, statement.combiner)
    body = [_replaced(inner, values) for inner in statement.body]
    folds = [
        Fold(f.result, f.combiner, substitute(f.value, values), f.wide) for f in statement.folds
    ]
    how = statement.vector, statement.parallel
    return Loop(statement.axis, body, *how, folds, statement.lanes)


def _nest(
    axes: Sequence[Axis], body: Sequence[Statement], vector: bool = True, parallel: bool = False
) -> list[Statement]:
    """Loops over axes around a body; the innermost in vectors, all of them on several cores."""
    result = list(body)
    if not result:
        return []
    for axis in reversed(axes):
        result = [Loop(axis, result, vector, parallel and (not vector or len(axes) == 1))]
        vector = False
    return result


def _fold_of(line: _Line, axes: Pieces) -> Fold:
    assert line.local is not None
    return Fold(line.local, line.member.equation.combiner, substitute(line.value, axes.values))


def _unique(items: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(items))


def kernel_of(group: Group, name: str, needed: Iterable[Buffer]) -> Kernel:
    """The kernel that a group becomes."""
    return _Nest(group, needed).kernel(name)
