"""What a graph may change, as it was before it ran: random streams, and memory of its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


class Before:
    """Kept when a graph is called that may have to be run again from its start.

    ``devices``: those besides the CPU whose random streams are kept; None to keep none at all.
    ``changed``: the inputs that the graph may write to, which ``keep_memory()`` keeps.
    """

    def __init__(self, devices: list[Any] | None, changed: Sequence[torch.Tensor]) -> None:
        self._streams: list[tuple[Any, torch.Tensor]] = []
        if devices is not None:
            self._streams = [(None, torch.default_generator.get_state())]
            self._streams += [(device, torch.cuda.get_rng_state(device)) for device in devices]
        self._changed = changed
        self._inputs: list[_Input] = []
        self._memory: dict[int, tuple[Any, Any]] = {}

    @property
    def has_memory(self) -> bool:
        """Whether memory is kept, or would be, and not only random streams."""
        return bool(self._changed)

    def keep_memory(self) -> None:
        """Until then nothing is changed, so that there is nothing to restore."""
        self._inputs = [_Input(tensor) for tensor in self._changed]
        storages = [tensor.untyped_storage() for tensor in self._changed]
        self._memory = {each._cdata: (each, each.clone()) for each in storages}

    def restore(self) -> bool:
        """Have all be as it was; False if more was changed than the memory."""
        for device, held in self._streams:
            if device is None:
                torch.default_generator.set_state(held)
            else:
                torch.cuda.set_rng_state(held, device)
        if not all(each.is_like_before() for each in self._inputs):
            return False
        for storage, kept in self._memory.values():
            storage.copy_(kept)
        for each in self._inputs:
            each.restore_version()
        return True


class _Input:
    """One input: its version, and what else a graph may change of it."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.version = None if tensor.is_inference() else tensor._version
        self.was = self._now()

    def _now(self) -> tuple[Any, ...]:
        tensor = self.tensor
        sizes = tensor.shape, tensor.stride(), tensor.storage_offset()
        return (*sizes, tensor.untyped_storage()._cdata, tensor.requires_grad, tensor.grad_fn)

    def is_like_before(self) -> bool:
        """Whether nothing but the numbers is other than before."""
        return self._now() == self.was

    def restore_version(self) -> None:
        """Nobody shall see that it was written to."""
        if self.version is not None:
            torch._C._autograd._unsafe_set_version_counter((self.tensor,), (self.version,))
