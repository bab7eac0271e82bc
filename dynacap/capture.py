"""One attempt after another at capturing a region, until it is known where it ends.

A region ends where its outermost frame returns, or before the instruction that cannot be
captured.  The latter is found out by running into it; capture then starts afresh and stops there,
so that nothing of the failed instruction is left behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dynacap.errors import GraphBreak, SkipFrame
from dynacap.executor import Machine, StopHere
from dynacap.executor.chain import Site, leave, start_function, start_piece
from dynacap.guards.process_state import ProcessState
from dynacap.values.base import UserRaise, Value
from dynacap.values.object import ExceptionValue
from dynacap.values.tensor.family import TensorFamily

MAX_ATTEMPTS = 8
RAISED = "exception"  # the reason where the traced program raises


@dataclass
class Region:
    """What a capture found: the machine with graph, guards and effects, and how it ended.

    ``result`` is what the function returns; or, at a break, ``sites`` and ``values`` say where the
    frames stand and ``reason`` why.
    """

    machine: Machine
    result: Value | None
    reason: GraphBreak | None = None
    sites: tuple[Site, ...] = ()
    values: tuple[Value, ...] = ()
    attempts: int = 1


def capture(sites: tuple[Site, ...] | None, flat: tuple[Any, ...]) -> Region:
    """Capture a region that starts at a function's entry (``sites`` None) or at sites."""
    stop_at, reason = -1, None
    for attempt in range(1, MAX_ATTEMPTS + 1):
        tensors = TensorFamily()
        refusal = tensors.refusal()
        if refusal is not None:
            raise SkipFrame("torch-mode", refusal)
        machine = Machine(tensors, stop_at)
        try:
            tensors.enter_capture()
            try:
                _start(machine, sites, flat)
                result = machine.run_chain()
            finally:
                tensors.exit_capture()
            return Region(machine, result, attempts=attempt)
        except StopHere:
            where, values = leave(machine)
            return Region(machine, None, reason, where, tuple(values), attempt)
        except GraphBreak as found:
            stop_at, reason = machine.steps - 1, found
        except UserRaise as raised:
            stop_at, reason = _raised_at(machine, raised)
        if stop_at < 0:
            break
    raise reason if reason is not None else GraphBreak("capture", "capture did not settle")


def _start(machine: Machine, sites: tuple[Site, ...] | None, flat: tuple[Any, ...]) -> None:
    machine.guards.add(ProcessState.current())
    if sites is None:
        start_function(machine, flat)
    else:
        start_piece(machine, sites, flat)


def _raised_at(machine: Machine, raised: UserRaise) -> tuple[int, GraphBreak]:
    """An exception leaves the region: the instruction that raised it runs eagerly."""
    exc = raised.exc
    steps = (
        exc.raised_at if isinstance(exc, ExceptionValue) and exc.raised_at > 0 else (machine.steps)
    )
    stack = machine.user_stack()
    return steps - 1, GraphBreak(RAISED, f"{exc.describe()} is raised", stack=stack)
