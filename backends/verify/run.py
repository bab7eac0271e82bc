"""One run of a graph on copies of its inputs, and all that it left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from dynacap.backends.verify.copies import Copies

_SEED = 20_240_607


@dataclass
class Run:
    """What a run gave: results, gradients of the inputs, the inputs as it left them, or an error.

    ``random`` is where it left torch's random stream.
    """

    inputs: list[Any]
    outputs: list[Any] = field(default_factory=list)
    gradients: list[torch.Tensor | None] = field(default_factory=list)
    random: torch.Tensor | None = None
    error: Exception | None = None


class RandomState:
    """torch's random streams as they are now."""

    def __init__(self) -> None:
        self.cpu = torch.default_generator.get_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def restore(self) -> None:
        """Put them back."""
        torch.default_generator.set_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(self.cuda)


def run(function: Callable[..., Any], copies: Copies) -> Run:
    """Call ``function`` on copies, then go backward; the random stream and grad mode are kept."""
    random, gradients_on = RandomState(), torch.is_grad_enabled()
    made = Run(copies.values)
    try:
        made.outputs = list(function(*copies.values))
        made.random = torch.default_generator.get_state()
        made.gradients = _backward(made.outputs, copies.leaves)
    except Exception as error:
        made.error = error
    finally:
        torch.set_grad_enabled(gradients_on)
        random.restore()
    return made


def _backward(outputs: Sequence[Any], leaves: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """Gradients of the leaves for fixed gradients of all results."""
    results = [one for one in outputs if isinstance(one, torch.Tensor) and one.requires_grad]
    if not results or not leaves:
        return []
    found = torch.autograd.grad(
        results, leaves, [_incoming(one) for one in results], allow_unused=True
    )
    return list(found)


def _incoming(result: torch.Tensor) -> torch.Tensor:
    """The same numbers whatever the precision, so that runs in several can be compared."""
    generator = torch.Generator().manual_seed(_SEED)
    wide = torch.complex128 if result.is_complex() else torch.float64
    made = torch.randn(result.shape, generator=generator, dtype=wide)
    return made.to(torch.bfloat16 if not result.is_complex() else torch.complex64).to(
        result.device, result.dtype
    )
