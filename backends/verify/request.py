"""What was asked for: how many calls of each graph are checked, and what a mismatch comes to."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynacap.config import VERIFY, config
from dynacap.errors import UserError
from dynacap.fxlite import GraphModule

OPTION = "verify"


@dataclass(frozen=True)
class Verification:
    """The first ``calls`` calls of each graph are checked; ``heal`` goes on in eager, not raising.

    Called with a backend, a graph and its inputs, as that backend would be.
    """

    calls: int
    heal: bool = False

    def __call__(
        self, backend: Callable[..., Any], graph_module: GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        """What the backend makes of the graph, with the checks around it."""
        check = importlib.import_module("dynacap.backends.verify.check")  # it loads torch
        made: Callable[..., Any] = check.verified(self, backend, graph_module, example_inputs)
        return made


def verification() -> Verification | None:
    """What ``config.verify`` asks for."""
    return _asked(config.verify)


def split(options: Mapping[str, Any] | None) -> tuple[Verification | None, dict[str, Any]]:
    """What a compile call's ``options`` ask for, and the options that are the backend's own."""
    left = dict(options or {})
    if OPTION not in left:
        return None, left
    value = left.pop(OPTION)
    try:
        return _asked(VERIFY.accept(value)), left
    except (TypeError, ValueError):
        message = f"options[{OPTION!r}] was given {value!r}; it accepts {VERIFY.words}"
    raise UserError(message)


def _asked(value: object) -> Verification | None:
    text = str(value)
    heal = text.startswith("heal")
    calls = int(text.partition(":")[2] or 1) if heal else int(text)
    return Verification(calls, heal) if calls else None
