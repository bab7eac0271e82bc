"""Version counters of arguments: eager PyTorch counts each change, a compiled graph writes once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

Run = Callable[..., Any]
Counts = Sequence[tuple[int, int]]  # the position of an argument, and how often it is changed


def counts_of(fakes: Sequence[Any]) -> Counts:
    """How often each argument was changed on its stand-in, which began at 0; once counts itself."""
    tensors = [(at, fake) for at, fake in enumerate(fakes) if isinstance(fake, torch.Tensor)]
    return [(at, fake._version) for at, fake in tensors if fake._version > 1]


def counted(run: Run, counts: Counts) -> Run:
    """``run``, after which the arguments' counters stand where eager leaves them."""
    if not counts:
        return run

    def call(*args: Any) -> Any:
        watched = [pair for pair in counts if not args[pair[0]].is_inference()]
        before = [args[at]._version for at, _ in watched]
        outputs = run(*args)
        for (at, count), version in zip(watched, before, strict=True):
            missing = version + count - args[at]._version
            torch.autograd.graph.increment_version([args[at]] * missing)
        return outputs

    return call
