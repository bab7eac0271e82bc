"""One attempt after another at capturing a region, until it is known where it ends.

A region ends where its outermost frame returns, or before the instruction that cannot be
captured.  The latter is found out by running into it; capture then starts afresh and stops there,
so that nothing of the failed instruction is left behind.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import CodeType
from typing import Any

from dynacap.backends import torch_state
from dynacap.break_reasons import RUNNING_FRAME, WARNS_CALLER
from dynacap.errors import GraphBreak, SkipFrame
from dynacap.executor import Machine, StopHere
from dynacap.executor.chain import Site, leave, start_function, start_piece
from dynacap.executor.warned import place_warning
from dynacap.guards.guard_set import GuardSet
from dynacap.guards.process_state import ProcessState
from dynacap.resume import throw_code
from dynacap.resume.layout import GENERATOR_FLAGS
from dynacap.resume.point import checked_kinds
from dynacap.values.base import UserRaise, Value
from dynacap.values.object import ExceptionValue
from dynacap.values.tensor.dynamic import History
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


class Attempts:
    """Captures a region that starts at a function's entry (``sites`` None) or at sites.

    After a failure, ``guards`` are those under which capture fails again: what it read until then.
    """

    def __init__(
        self,
        sites: tuple[Site, ...] | None,
        code: CodeType,
        flat: tuple[Any, ...],
        history: History | None = None,
    ) -> None:
        self._history = history
        self.sites = sites
        self.code = code
        self.flat = flat
        self.guards = GuardSet()
        self._machine: Machine | None = None

    def release(self) -> None:
        """Let go of the user's objects, once what was captured is built."""
        if self._machine is not None:
            self._machine.release()
            self._machine = None

    def capture(self) -> Region:
        """The region; GraphBreak or SkipFrame if there is none."""
        if self.code.co_flags & GENERATOR_FLAGS:
            raise SkipFrame("generator", "the body of a generator or coroutine function")
        stop_at, reason, until = -1, None, Machine.until
        for _ in range(MAX_ATTEMPTS):
            machine = self._new_machine(stop_at)
            try:
                return Region(machine, self._run(machine))
            except StopHere:
                machine.guards.update(until)
                return self._stopped(machine, reason)
            except GraphBreak as found:
                stop_at = machine.whole_steps if found.before == -1 else found.before
                reason, until = found.bare(), machine.until
            except UserRaise as raised:
                stop_at, reason = _raised_at(machine, raised)
            if stop_at < 0:
                break
        raise reason if reason is not None else GraphBreak("capture", "capture did not settle")

    def earlier(self, steps: int, reason: GraphBreak) -> Region | None:
        """The region that ends after fewer steps, for a reason that showed later; None if none."""
        machine = self._new_machine(steps)
        try:
            self._run(machine)
        except StopHere:
            return self._stopped(machine, reason)
        except (GraphBreak, UserRaise):
            pass
        return None

    def _new_machine(self, stop_at: int) -> Machine:
        tensors = TensorFamily(self._history)
        self.release()
        machine = self._machine = Machine(tensors, stop_at)
        self.guards = machine.guards
        machine.guards.add(ProcessState.current())
        refusal = torch_state.refusal()
        if refusal is not None:
            raise SkipFrame("torch-mode", refusal)
        return machine

    def _stopped(self, machine: Machine, reason: GraphBreak | None) -> Region:
        if reason is not None and reason.reason == WARNS_CALLER and not place_warning(machine):
            reason = GraphBreak(RUNNING_FRAME, reason.detail, reason.hint, reason.stack)
        whole = reason is not None and reason.reason == RUNNING_FRAME
        where, values = leave(machine, whole)
        check_sites(where)
        return Region(machine, None, reason, where, tuple(values))

    def _run(self, machine: Machine) -> Value:
        machine.tensors.enter_capture()
        try:
            if self.sites is None:
                start_function(machine, self.code, self.flat)
            else:
                start_piece(machine, self.sites, self.flat)
                machine.tensors.late_errors.inside_try = machine.inside_try()
            return machine.run_chain()
        finally:
            machine.tensors.exit_capture()


def check_sites(sites: tuple[Site, ...]) -> None:
    """ResumeError unless the frames can go on from there, whatever happens."""
    for site in sites:
        checked_kinds(site.code, site.point)
    for site in sites[:-1]:
        throw_code(site.code, site.point)


def _raised_at(machine: Machine, raised: UserRaise) -> tuple[int, GraphBreak]:
    """An exception leaves the region: the instruction that raised it runs eagerly."""
    exc = raised.exc
    steps = exc.raised_at if isinstance(exc, ExceptionValue) else -1
    steps = steps if steps >= 0 else machine.whole_steps
    stack = machine.user_stack()
    return steps, GraphBreak(RAISED, f"{exc.describe()} is raised", stack=stack)
