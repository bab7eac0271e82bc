"""Kernels that one team of threads runs together: it starts once, and waits only for what it needs.

A team that starts and ends for each loop of an optimizer's step spends a tenth of the time so.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import TypeGuard

from dynacap.backends.native.loops.kernel import Kernel, Loop
from dynacap.backends.native.loops.program import Step, View
from dynacap.backends.native.schedule.in_place import copies_to_itself


def teams(steps: Sequence[Step]) -> dict[int, range]:
    """Where runs of steps begin, which hold kernels for one team, and copies that move nothing."""
    found: dict[int, range] = {}
    start = 0
    for end in range(len(steps) + 1):
        if end < len(steps) and _joins(steps[end]):
            continue
        run = range(start, end)
        if sum(in_parallel(steps[at]) for at in run) > 1:
            found[start] = run
        start = end + 1
    return found


def in_parallel(step: Step) -> TypeGuard[Kernel]:
    """Whether a step is one loop for all cores."""
    return isinstance(step, Kernel) and len(step.body) == 1 and _is_parallel(step.body[0])


def _joins(step: Step) -> bool:
    if isinstance(step, Kernel):
        alone = not any(_has_parallel(each) for each in step.body)
        return not step.faults and (alone or in_parallel(step))
    return isinstance(step, View) or copies_to_itself(step)


def _is_parallel(statement: object) -> bool:
    return isinstance(statement, Loop) and statement.parallel


def _has_parallel(statement: object) -> bool:
    inner = statement.body if isinstance(statement, Loop) else []
    return _is_parallel(statement) or any(map(_has_parallel, inner))


class Team:
    """The calls of one team, with a barrier where one needs what another has done."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self._read: set[Hashable] = set()
        self._written: set[Hashable] = set()

    def add(self, kernel: Kernel, text: str, reads: set[Hashable], writes: set[Hashable]) -> None:
        """One more call; the memory that it reads and writes."""
        touched = reads | writes
        if touched & self._written or writes & self._read:
            self.calls.append("#pragma omp barrier")
            self._read, self._written = set(), set()
        self._read |= reads
        self._written |= writes
        if not in_parallel(kernel):
            self.calls.append("#pragma omp single nowait")
        self.calls.append(text)

    def lines(self) -> Iterator[str]:
        """The calls as a block."""
        yield "#pragma omp parallel"
        yield "{"
        yield from (f"    {line}" for line in self.calls)
        yield "}"
