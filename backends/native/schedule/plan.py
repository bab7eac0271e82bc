"""The schedule as a whole: equations, calls and views in, kernels, calls and views out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from dynacap.backends.native.loops.equation import Equation
from dynacap.backends.native.loops.expression import loads
from dynacap.backends.native.loops.kernel import Kernel
from dynacap.backends.native.loops.program import Buffer, Call, View, buffers_in
from dynacap.backends.native.schedule.alone import alone
from dynacap.backends.native.schedule.fuse import Fusion
from dynacap.backends.native.schedule.group import Group
from dynacap.backends.native.schedule.inline import inline, unseen
from dynacap.backends.native.schedule.nest import kernel_of
from dynacap.backends.native.schedule.split import split


def schedule(
    steps: Sequence[Equation | Call | View], outputs: Iterable[object]
) -> list[Kernel | Call | View]:
    """The steps of a program, fused; what nobody needs is left out."""
    equations = [step for step in steps if isinstance(step, Equation)]
    pinned = _pinned(steps, outputs)
    pinned |= unseen(equations, pinned)
    equations = inline(equations, pinned)
    fusion = Fusion()
    for step in _in_order(steps, equations):
        if not isinstance(step, Equation):
            fusion.add_step(step)
            continue
        for equation in split(step):
            fusion.add(equation)
    needed = _needed(fusion, pinned)
    return [
        alone(slot) or kernel_of(slot, f"kernel{at}", needed[at])
        if isinstance(slot, Group)
        else slot
        for at, slot in enumerate(fusion.slots)
    ]


def _in_order(
    steps: Sequence[Equation | Call | View], equations: Sequence[Equation]
) -> Iterator[Equation | Call | View]:
    """The steps with these equations only, some of which are new and stand before their readers."""
    left = set(equations)
    waiting = iter(equations)
    for step in steps:
        if not isinstance(step, Equation):
            yield step
        elif step in left:
            for equation in waiting:
                yield equation
                if equation is step:
                    break


def _pinned(
    steps: Sequence[Equation | Call | View], outputs: Iterable[object]
) -> frozenset[Buffer]:
    """The buffers that calls, or whoever called the graph, read from memory."""
    found = set(buffers_in(tuple(outputs)))
    for step in steps:
        if isinstance(step, Call):
            found.update(step.buffers())
    bases = {step.result: step.base for step in steps if isinstance(step, View)}
    for buffer in tuple(found):
        while buffer in bases:
            buffer = bases[buffer]
            found.add(buffer)
    return frozenset(found)


def _needed(fusion: Fusion, pinned: frozenset[Buffer]) -> dict[int, set[Buffer]]:
    """For each group the buffers that it must leave in memory."""
    needed: dict[int, set[Buffer]] = defaultdict(set)
    homes: dict[Buffer, int] = {}
    for at, slot in enumerate(fusion.slots):
        if not isinstance(slot, Group):
            continue
        needed[at].update(pinned.intersection(slot.writers))
        for buffer in slot.writers:  # whose parts several groups write
            if (home := homes.setdefault(buffer, at)) != at:
                needed[home].add(buffer)
                needed[at].add(buffer)
        for member in slot.members:
            for load in loads(member.equation.value):
                source = fusion.filled.get(load.buffer)
                if source is not None and source != at:
                    needed[source].add(load.buffer)
    return needed
