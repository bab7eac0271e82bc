"""Fake tensors: stand-ins with the metadata of real ones, on which operations run at capture.

A conversion through ``FakeTensorMode.from_tensor`` takes some 90 microseconds, most of it for the
sake of views, subclasses and symbolic sizes.  A plain strided tensor is rebuilt here from its
metadata in a tenth of that; whatever is not plain takes torch's way.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from dynacap.backends.fakes import refusals
from dynacap.backends.fakes.in_place import written
from dynacap.backends.torch_state import as_outside

_enter_mode = torch._C._set_dispatch_mode
_autograd: Any = torch._C._autograd
_leave_mode = torch._C._unset_dispatch_mode
_empty_strided = torch.empty_strided
SILENCE: list[Any] = [("ignore", None, Warning, None, 0)]
"""The filters of warnings during a capture."""
_LOGS = [
    logging.getLogger(name)
    for name in (
        "torch._subclasses.fake_tensor",
        "torch.fx.experimental.symbolic_shapes",
        "torch.__trace",
    )
]


def raise_warnings_of(module: str) -> None:
    """Have warnings raise in a module that calls C in the program's place: they are its own."""
    SILENCE.insert(0, ("error", None, Warning, module, 0))


class FakeWorld:
    """The fake mode of one capture, entered only while an operation runs."""

    def __init__(self) -> None:
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._key = self.mode._mode_key
        self._saved_hooks: list[tuple[Any, Any]] = []

    def run(self, target: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Call an operation on fake tensors.

        Setting the mode this way skips the bookkeeping of ``with mode``, which is made for modes
        that nest: capture never runs under another fake mode.
        """
        changed = written(target, args, kwargs)
        if changed is not None:
            return changed
        # Kernels in C++ take no symbolic sizes where there is one in Python that does.
        symbolic = None if self.mode.shape_env is None else torch._C._EnablePythonDispatcher()
        _enter_mode(self.mode)
        try:
            result = target(*args, **kwargs)
        finally:
            _leave_mode(self._key)
            del symbolic
        refusals.check(target, args, kwargs)
        return result

    def of(self, real: torch.Tensor) -> torch.Tensor:
        """A fake of a real tensor of a plain class, which is from outside of all transforms."""
        with as_outside():
            return self._of(real)

    def _of(self, real: torch.Tensor) -> torch.Tensor:
        if _is_simple(real):
            made: torch.Tensor = FakeTensor(
                self.mode,
                _empty_strided(real.shape, real.stride(), dtype=real.dtype, device="meta"),
                real.device,
            )
            if real.requires_grad:
                made.requires_grad_()
            return made
        return self.mode.from_tensor(_plain(real), static_shapes=True)

    def use_symbols(self, env: Any) -> None:
        """Let sizes be symbols of a ``ShapeEnv`` from now on."""
        self.mode.shape_env = env
        self.mode.static_shapes = False

    def of_symbolic(self, real: torch.Tensor, env: Any, where: Any, context: Any) -> torch.Tensor:
        """A fake of a real tensor with the symbolic sizes that ``context`` asks for."""
        with as_outside():
            return self._of_symbolic(real, env, where, context)

    def _of_symbolic(self, real: torch.Tensor, env: Any, where: Any, context: Any) -> torch.Tensor:
        if not _is_simple(real):
            return self.mode.from_tensor(
                _plain(real), source=where, symbolic_context=context, static_shapes=False
            )
        size, stride, _ = env.create_symbolic_sizes_strides_storage_offset(
            real, where, symbolic_context=context
        )
        made: torch.Tensor = FakeTensor(
            self.mode, _empty_strided(size, stride, dtype=real.dtype, device="meta"), real.device
        )
        return made.requires_grad_() if real.requires_grad else made

    def hide(self) -> None:
        """Keep the user from noticing that fakes are at work: warnings, logs, and the hooks on
        tensors that autograd saves are for the real run.
        """
        _silence.enter()
        _unheard.depth += 1
        while (hooks := _autograd._top_saved_tensors_default_hooks(True)) is not None:
            _autograd._pop_saved_tensors_default_hooks()
            self._saved_hooks.append(hooks)

    def show(self) -> None:
        """Undo :meth:`hide`."""
        while self._saved_hooks:
            _autograd._push_saved_tensors_default_hooks(*self._saved_hooks.pop())
        _unheard.depth -= 1
        _silence.leave()


class _Silence:
    """No warnings while a capture is going on in any thread.

    ``warnings.filters`` is exchanged, not changed: a change would have Python forget which
    warnings it has shown.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._before: Any = None

    def enter(self) -> None:
        """Begin; the first to do so changes something."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                self._before = warnings.filters
                warnings.filters = SILENCE

    def leave(self) -> None:
        """End; the last to do so puts things back."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and warnings.filters is SILENCE:  # else someone else put it there
                warnings.filters = self._before


_silence = _Silence()


class _Unheard(logging.Filter, threading.local):
    """Drops records of the threads that want none."""

    depth = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record goes on."""
        return not self.depth


_unheard = _Unheard()
for _each in _LOGS:
    _each.addFilter(_unheard)


@contextlib.contextmanager
def without_logs() -> Iterator[None]:
    """Torch logs nothing of operators that refuse fakes: the real run tells the program."""
    _unheard.depth += 1
    try:
        yield
    finally:
        _unheard.depth -= 1


def _plain(real: torch.Tensor) -> torch.Tensor:
    """A parameter that needs no gradient is a tensor like any other."""
    return real.data if type(real) is not torch.Tensor and not real.requires_grad else real


def _is_simple(real: torch.Tensor) -> bool:
    """Whether shape, strides, dtype, device and requires_grad are all there is to know."""
    if real.requires_grad and (real.grad_fn is not None or real._base is not None):
        return False
    return (
        real.layout is torch.strided
        and real.storage_offset() == 0
        and not real.is_conj()
        and not real.is_neg()
        and not real.is_quantized
        and not real.is_inference()
    )
