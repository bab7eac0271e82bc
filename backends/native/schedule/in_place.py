"""Has kernels write what an input is to hold into the input itself, where nobody can tell.

A functional graph computes beside the input and ends with ``copy_(input, new)``.  If nothing reads
the old elements any more when a kernel writes the new ones, or only the same round of that kernel
does, the new ones may lie in the input from the start: the copy becomes one of the input to itself,
which moves nothing, but raises, and counts the change, as eager's does.  It stands before the
kernel, since a graph that fails must have changed nothing, or fail no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from dynacap.backends.native.loops.expression import Load, Position, loads
from dynacap.backends.native.loops.kernel import Kernel, Loop, Statement, Store
from dynacap.backends.native.loops.program import (
    Buffer,
    Call,
    Program,
    Step,
    View,
    buffers_in,
    seen_memory,
    touched,
)
from dynacap.backends.native.refused import may_be_refused
from dynacap.fxlite.risks import may_raise

_COPY = torch.ops.aten.copy_.default
# Of others many kernels know nothing, and whole numbers may be divided by zero.
_TAKEN = (torch.float32, torch.float64, torch.bfloat16)


def write_in_place(program: Program) -> None:
    """Do so wherever it is safe."""
    bases = seen_memory(program.steps)
    known = _Steps(bases)
    returned = {_memory(buffer, bases) for buffer in buffers_in(tuple(program.outputs))}
    for step in program.steps:
        if not isinstance(step, Call) or step.target is not _COPY:
            continue
        target, new = step.args[:2]
        memory = _memory(new, bases)
        if memory in returned or not _laid_out_alike(target, new, memory):
            continue
        at = _writer(program.steps, memory)
        if at is not None and not _needs_old(program.steps, at, step, target, known):
            known.forget(program.steps[at])
            program.steps = list(_moved(program.steps, at, step, target, memory))


def copies_to_itself(call: Call) -> bool:
    """Whether a call is such a copy of an input to itself, which changes no element."""
    return call.target is _COPY and call.args[0] is call.args[1]


class _Body:
    """A kernel's stores, run by run, each run with what it reads; and what its folds read."""

    def __init__(self, kernel: Kernel) -> None:
        self.runs = [(run, list(_loads(run))) for run in _segments(kernel.body)]
        self.folded = list(loads(*_folded(kernel.body)))


class _Steps:
    """What many copies ask of the same steps."""

    def __init__(self, bases: dict[Buffer, Buffer]) -> None:
        self.bases = bases
        self._touched: dict[Step, frozenset[Buffer]] = {}
        self._may_fail: dict[Step, bool] = {}
        self._bodies: dict[Kernel, _Body] = {}

    def touched(self, step: Step) -> frozenset[Buffer]:
        """The memory that a step reads or fills."""
        if step not in self._touched:
            self._touched[step] = frozenset(_memory(each, self.bases) for each in touched(step))
        return self._touched[step]

    def may_fail(self, step: Step) -> bool:
        """Whether it may find that the graph cannot go on."""
        if step not in self._may_fail:
            self._may_fail[step] = _may_fail(step)
        return self._may_fail[step]

    def body(self, kernel: Kernel) -> _Body:
        """What its loops read and write."""
        if kernel not in self._bodies:
            self._bodies[kernel] = _Body(kernel)
        return self._bodies[kernel]

    def forget(self, step: Step) -> None:
        """A step is about to touch other memory."""
        self._touched.pop(step, None)


def _memory(buffer: Buffer, bases: dict[Buffer, Buffer]) -> Buffer:
    """The buffer in whose memory another one lies."""
    while buffer in bases:
        buffer = bases[buffer]
    return buffer


def _laid_out_alike(target: Buffer, new: Buffer, memory: Buffer) -> bool:
    """Whether an input may take the place of the memory in which its new elements lie."""
    return (
        target.kind == "input"
        and memory.kind == "temporary"
        and target.dtype is new.dtype is memory.dtype
        and target.shape == new.shape
        and target.strides == new.strides
        and new.offset == 0
        and memory.numel == new.numel
        and (new is memory or _dense(new))
    )


def _dense(buffer: Buffer) -> bool:
    """Whether each element between the first and the last belongs to one place in it."""
    step = 1
    if not all(isinstance(number, int) for number in (*buffer.shape, *buffer.strides)):
        return False
    for stride, size in sorted(zip(buffer.strides, buffer.shape, strict=True)):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _writer(steps: Sequence[Step], memory: Buffer) -> int | None:
    """The one step that fills it, if that is a kernel which may write to an input."""
    found = [
        at
        for at, step in enumerate(steps)
        if memory in (step.results if isinstance(step, Call) else _writes(step))
    ]
    if len(found) != 1:
        return None
    kernel = steps[found[0]]
    return found[0] if isinstance(kernel, Kernel) and not kernel.faults else None


def _writes(step: Step) -> tuple[Buffer, ...]:
    return step.writes if isinstance(step, Kernel) else ()


def _needs_old(steps: Sequence[Step], at: int, copy: Call, target: Buffer, known: _Steps) -> bool:
    """Whether the input's old elements are needed once the kernel has begun to write."""
    kernel = steps[at]
    assert isinstance(kernel, Kernel)
    for later in steps[at + 1 :]:
        if isinstance(later, View) or later is copy:
            continue
        if target in known.touched(later) or known.may_fail(later):
            return True
    bases = known.bases
    seen = [buffer for buffer in kernel.reads if _memory(buffer, bases) is target]
    if target in kernel.writes or any(buffer is not target for buffer in seen):
        return True
    return not _reads_as_it_writes(known.body(kernel), target, _memory(copy.args[1], bases))


def _may_fail(step: Step) -> bool:
    """Whether a step may find that the graph cannot go on; it is then run again from its start."""
    if isinstance(step, Kernel):
        return step.faults
    if not isinstance(step, Call):
        return False
    origin = next(iter(step.origins), None)
    if origin is None or may_raise(origin) or may_be_refused(origin):  # type: ignore[arg-type]
        return True
    return step.target is not _COPY and not all(x.dtype in _TAKEN for x in touched(step))


def _reads_as_it_writes(body: _Body, old: Buffer, new: Buffer) -> bool:
    """Whether each old element is read in the round that writes the new one, before that."""
    stores = [(store, run) for run, _ in body.runs for store in run if store.buffer is new]
    if len(stores) != 1 or stores[0][0].combiner:
        return False
    ((store, beside),) = stores
    for run, read in body.runs:
        for load in read:
            if load.buffer is new:
                return False
            if load.buffer is old and (run is not beside or load.offset != store.offset):
                return False
    return not any(load.buffer in (old, new) for load in body.folded)


def _segments(body: Sequence[Statement]) -> Iterator[list[Store]]:
    """Stores that run one after another, whose values are all computed before the first."""
    run: list[Store] = []
    for statement in body:
        if isinstance(statement, Store):
            run.append(statement)
            continue
        yield run
        run = []
        yield from _segments(statement.body)
    yield run


def _loads(run: Iterable[Store]) -> Iterator[Load]:
    for store in run:
        yield from loads(store.value, Position(store.offset))


def _folded(body: Sequence[Statement]) -> Iterator[Any]:
    for statement in body:
        if isinstance(statement, Loop):
            yield from (fold.value for fold in statement.folds)
            yield from _folded(statement.body)


def _moved(
    steps: Sequence[Step], at: int, copy: Call, target: Buffer, memory: Buffer
) -> Iterator[Step]:
    """The steps with the memory in the input's place."""
    kernel = steps[at]
    assert isinstance(kernel, Kernel)
    yield from steps[:at]
    yield Call(_COPY, (target, target), {}, copy.results, copy.origins)
    yield View(memory, target)
    _replace(kernel.body, memory, target)
    kernel.reads = tuple(buffer for buffer in kernel.reads if buffer is not target)
    kernel.writes = tuple(target if buffer is memory else buffer for buffer in kernel.writes)
    yield kernel
    yield from (step for step in steps[at + 1 :] if step is not copy)


def _replace(body: Sequence[Statement], memory: Buffer, target: Buffer) -> None:
    for statement in body:
        if isinstance(statement, Loop):
            _replace(statement.body, memory, target)
        elif statement.buffer is memory:
            statement.buffer = target
