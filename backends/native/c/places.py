"""Where each buffer of a program lies: with the caller, in the arena, or in a tensor of torch's.

A temporary of known size that a kernel fills, or an operator that takes its result, lies in the
arena, at an offset that others use before and after its life.  What the graph returns, and what an
operator allocates itself, are tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dynacap.backends.native.c.calls import is_foreign, takes_result
from dynacap.backends.native.loops.program import (
    Buffer,
    Call,
    Program,
    Step,
    View,
    seen_memory,
    touched,
)

ALIGNMENT = 64


class Places:
    """What :mod:`.program` asks while it writes."""

    def __init__(self, program: Program) -> None:
        self._views = {s.result: s.base for s in program.steps if isinstance(s, View)}
        self._given = {buffer: position for position, buffer in enumerate(_tensors(program.inputs))}
        self.constants = [buffer for buffer in program.buffers if buffer.kind == "constant"]
        for constant in self.constants:
            self._given[constant] = len(self._given)
        self._seen_by = seen_memory([s for s in program.steps if isinstance(s, Call)])
        kept = [buffer for step in program.steps if _may_keep(step) for buffer in touched(step)]
        self._shown = frozenset((*self._seen_by.values(), *kept))
        self._last_use = self._last_uses(program)
        returned = {owner for buffer in _tensors(program.outputs) for owner in self._owners(buffer)}
        self.before: set[Buffer] = set()  # results that are there before the step that fills them
        stays = returned.union(*map(self._owners, kept))
        births = self._births(program)
        self.offsets: dict[Buffer, int] = {}
        self.arena = self._arrange(
            {root: born for root, born in births.items() if root not in stays}
        )
        self._dead: dict[int, list[Buffer]] = {}
        for root, last in self._last_use.items():
            if root not in returned and root not in self._given:
                self._dead.setdefault(last, []).append(root)
        for view, last in self._last_seen(program).items():
            self._dead.setdefault(last, []).append(view)

    def root(self, buffer: Buffer) -> Buffer:
        """The buffer whose memory a view, or a view of a view, sees; any other itself."""
        while buffer in self._views:
            buffer = self._views[buffer]
        return buffer

    def given(self, buffer: Buffer) -> int | None:
        """Its position among the tensors that come from outside, constants last."""
        return self._given.get(buffer)

    def outlives_its_call(self, buffer: Buffer) -> bool:
        """Whether an operator gives a tensor that shows a buffer's memory, which may be returned,
        or may keep the buffer itself."""
        return buffer in self._shown and self.root(buffer) not in self.offsets

    def dead_after(self, step: int) -> list[Buffer]:
        """Buffers whose tensors no later step needs, where there are any."""
        return self._dead.get(step, [])

    def _owners(self, buffer: Buffer) -> Iterator[Buffer]:
        """What has to live while a buffer is in use: its root, and what that lies in."""
        root = self.root(buffer)
        yield root
        if root in self._seen_by:
            yield from self._owners(self._seen_by[root])

    def _last_uses(self, program: Program) -> dict[Buffer, int]:
        last: dict[Buffer, int] = {}
        for index, step in enumerate(program.steps):
            for buffer in touched(step):
                for owner in self._owners(buffer):
                    last[owner] = index
        return last

    def _last_seen(self, program: Program) -> dict[Buffer, int]:
        """The last step that names a view: its tensor is small, but many together are not."""
        return {
            buffer: index
            for index, step in enumerate(program.steps)
            for buffer in touched(step)
            if buffer in self._views
        }

    def _births(self, program: Program) -> dict[Buffer, int]:
        """Where each root that could lie in the arena is first filled."""
        births: dict[Buffer, int] = {}
        for index, step in enumerate(program.steps):
            if isinstance(step, View):
                continue
            if isinstance(step, Call) and not takes_result(step):
                continue
            for buffer in filter(None, step.results if isinstance(step, Call) else step.writes):
                root = self.root(buffer)
                if root not in self._given:
                    self.before.add(root)
                    births.setdefault(root, index)
        return births

    def _arrange(self, births: dict[Buffer, int]) -> int:
        """Give each an offset, the largest first, where none that lives at the same time lies."""
        placed: list[_Span] = []
        for root in sorted(births, key=lambda buffer: -_bytes(buffer)):
            if not isinstance(root.numel, int):
                continue
            span = _Span(births[root], self._last_use[root], 0, max(_bytes(root), 1))
            rivals = sorted(
                (each for each in placed if each.meets(span)), key=lambda each: each.offset
            )
            for rival in rivals:
                if span.offset + span.size <= rival.offset:
                    break
                end = rival.offset + rival.size
                span.offset = max(span.offset, -(-end // ALIGNMENT) * ALIGNMENT)
            placed.append(span)
            self.offsets[root] = span.offset
        return max((span.offset + span.size for span in placed), default=0)


@dataclass
class _Span:
    born: int
    dies: int
    offset: int
    size: int

    def meets(self, other: _Span) -> bool:
        """Whether both live at one time."""
        return self.born <= other.dies and other.born <= self.dies


def _may_keep(step: Step) -> bool:
    """Whether others' code has tensors in its hands, which it may keep, or give back."""
    return isinstance(step, Call) and is_foreign(step)


def _bytes(buffer: Buffer) -> int:
    if not isinstance(buffer.numel, int):
        return 0
    extent = 1 + sum(
        (size - 1) * stride for size, stride in zip(buffer.shape, buffer.strides, strict=True)
    )
    return int(max(extent, buffer.numel) * buffer.dtype.itemsize) if buffer.numel else 0


def _tensors(values: list[Any]) -> list[Buffer]:
    return [value for value in values if isinstance(value, Buffer)]
