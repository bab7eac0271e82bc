"""What an entry of the zoo is: a name, and a way to build the model and its calls from scratch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

AnyFunction = Callable[..., Any]


@dataclass(frozen=True)
class Built:
    """A model (a module or any function) and the calls to make, in order.

    `drive` takes the model, compiled or not, makes the calls and returns all that came out. `state`
    is what the calls may change beside it, when the model is not itself a module.
    """

    model: AnyFunction
    drive: Callable[[AnyFunction], Any]
    state: Any = None


@dataclass(frozen=True)
class Entry:
    """A model of the zoo. `build` gives the same weights and inputs each time it is called.

    `train`: it is also run in training mode, with gradients. `grad_in_eval`: it needs gradients to
    be recorded at all times, since it makes its own backward pass.
    """

    name: str
    family: str
    make: Callable[[], Built]
    train: bool = False
    grad_in_eval: bool = False

    def build(self, train: bool = False) -> Built:
        """Build it for evaluation, or for training."""
        torch.manual_seed(7)
        built = self.make()
        if isinstance(built.model, torch.nn.Module):
            built.model.train(train)
        return built


def calls(model: AnyFunction, *made: dict[str, Any]) -> Built:
    """A model called once for each dict of keyword arguments, on copies of them."""

    def drive(target: AnyFunction) -> list[Any]:
        return [target(**copy.deepcopy(kwargs)) for kwargs in made]

    return Built(model, drive)


def token_ids(batch: int, length: int, vocabulary: int = 99) -> torch.Tensor:
    """Token numbers that avoid the first few, which models give meanings of their own."""
    return torch.randint(5, vocabulary, (batch, length))


def by_name(groups: Iterable[Iterable[Entry]]) -> dict[str, Entry]:
    """All entries under their names, which must differ."""
    found: dict[str, Entry] = {}
    for group in groups:
        for entry in group:
            if entry.name in found:
                raise ValueError(f"two entries of the zoo are named {entry.name}")
            found[entry.name] = entry
    return found
