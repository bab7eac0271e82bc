"""What happens when a captured graph raises at run time, as the program itself may have.

If nothing has happened yet that could be noticed, the region is run again as plain Python, where
the exception comes up at its own line and meets the program's own handlers.  Capture sees to it
that a graph which cannot be run again has nothing to raise inside a ``try``
(:mod:`dynacap.values.tensor.late_errors`).
"""

from __future__ import annotations

import re
import signal
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import torch

from dynacap import log
from dynacap.backends.before import Before
from dynacap.backends.fall_back import listen
from dynacap.backends.torch_state import current_state, hooks_of_saved_tensors, restore_state
from dynacap.config import config
from dynacap.errors import DynacapError
from dynacap.fxlite import GraphModule
from dynacap.fxlite.module import line_that_raised
from dynacap.fxlite.replay import Replay, replay_of

Forward = Callable[..., Any]


class Recovery:
    """Called with what a graph raised and its inputs.

    Gives the graph's outputs after all, or None where the program itself is to raise as its region
    runs again; or raises.  ``compiled`` is what the backend made of the graph.  ``inside``: the
    region starts in the midst of frames, whose handlers are to see what interrupts the graph, or
    cannot be raised by running it again: it is raised where the region starts.
    """

    def __init__(
        self, graph: GraphModule, compiled: Forward, sets_state: bool, inside: bool
    ) -> None:
        self.replay, self._draws, change, self._kept = replay_of(graph)
        self.change = None if change is None else graph.line_of(change)
        devices = {value.device for value in _tensors(graph) if value.device.type == "cuda"}
        self.devices = sorted(devices, key=str)
        self.name = graph.name
        self.inside = inside
        self.eager = None if graph.on_call.is_same(compiled) else graph.on_call
        self.state = _State() if sets_state else None
        # A compiled graph may change nothing until it fails and says so.
        self._running = threading.local()
        told = weakref.WeakMethod(self._eager_begins)
        self._is_told = bool(self._kept) and listen(graph, lambda: (told() or _nothing)())
        self._interrupted: dict[int, BaseException] = {}  # by thread

    @property
    def needed(self) -> bool:
        """Whether there is anything to do."""
        return self.inside or self.replay is not Replay.NEVER or self.state is not None

    @property
    def rewinds(self) -> bool:
        """Whether something has to be kept as it is before the graph runs."""
        return self._draws or bool(self._kept)

    def before(self, inputs: tuple[Any, ...]) -> Before:
        """What the graph may change as it is before the graph runs; asked for if ``rewinds``."""
        before = Before(self.devices if self._draws else None, [inputs[at] for at in self._kept])
        if self._is_told:
            self._running.before = weakref.ref(before)
        else:
            before.keep_memory()
        return before

    def _eager_begins(self) -> None:
        before = getattr(self._running, "before", _nothing)()
        if before is not None:
            before.keep_memory()

    def __call__(
        self, error: BaseException, inputs: tuple[Any, ...], before: Before | None = None
    ) -> Any:
        if self.state is not None:
            self.state.restore(error)
        if isinstance(error, DynacapError):
            raise error
        interrupts = _interrupts(error)
        if interrupts or self._stays_as_it_is(error, before):
            if not self.inside:
                raise error
            if interrupts and before is not None:
                before.restore()
            self._interrupted[threading.get_ident()] = error
            return None
        if before is not None:
            before.restore()
        if self.replay is Replay.UNLESS_LATE:
            return None
        outputs = self._whose_fault(error, inputs)
        if outputs is None and before is not None:
            before.restore()
        return outputs

    def _stays_as_it_is(self, error: BaseException, before: Before | None) -> bool:
        """Whether the region cannot be run again: what it changed would be changed twice."""
        if self.replay is Replay.NEVER or not isinstance(error, Exception):
            return True
        if hooks_of_saved_tensors():
            return True
        late = self.replay is Replay.UNLESS_LATE
        behind = late and (_comes_late(error) or self._is_behind_the_change(error))
        return behind and not (before is not None and before.has_memory and before.restore())

    def _is_behind_the_change(self, error: Exception) -> bool:
        """Whether a call raised that was not known to, and something was changed before it."""
        line = line_that_raised(error.__traceback__)
        return self.change is not None and line is not None and line > self.change

    def interruption(self) -> BaseException | None:
        """What interrupted the graph just now, in this thread."""
        return self._interrupted.pop(threading.get_ident(), None)

    def _whose_fault(self, error: BaseException, inputs: tuple[Any, ...]) -> Any:
        """The program's, if the graph raises eagerly too; else the backend's."""
        if self.eager is None:
            return None
        try:
            outputs = self.eager(*inputs)
        except Exception as again:
            if self.state is not None:
                self.state.restore(again)
            return None
        if not config.suppress_backend_errors:
            raise error
        log.warn_once(
            ("run", self.name),
            f"what the backend made of {self.name} raised {type(error).__name__}: {error}, which"
            " eager PyTorch does not; the graph ran eagerly instead",
            graph=self.name,
        )
        return outputs


def _nothing() -> None:
    return None


def _tensors(graph: GraphModule) -> list[torch.Tensor]:
    values = (node.meta.get("example_value") for node in graph.graph.nodes)
    return [value for value in values if isinstance(value, torch.Tensor)]


def _interrupts(error: BaseException) -> bool:
    """Whether it came from without, while the graph ran: Ctrl-C, or what a signal's handler raised.

    To run the graph again would lose it.
    """
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = {getattr(handler, "__code__", None) for handler in handlers}
    entries = traceback.walk_tb(error.__traceback__)
    return isinstance(error, KeyboardInterrupt) or any(f.f_code in codes for f, _ in entries)


def _comes_late(error: Exception) -> bool:
    """Whether any operation may raise this, or one that has already changed something."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    late = "not enough memory|can't allocate memory|Inplace update to inference tensor"
    return re.search(late, str(error)) is not None


class _State:
    """torch's state where the region starts; the guards say that it is the same in each run."""

    def __init__(self) -> None:
        self.inference = torch.is_inference_mode_enabled()
        self.rest = current_state()

    def restore(self, error: BaseException) -> None:
        """Leave what the graph entered and, as it raised, did not leave."""
        if torch.is_inference_mode_enabled() != self.inference:
            traceback.clear_frames(error.__traceback__)  # its context ends with the graph's frame
        restore_state(self.rest)
