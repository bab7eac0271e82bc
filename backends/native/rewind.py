"""Random numbers that a graph drew before it failed are drawn again, the same ones, by eager."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

Run = Callable[..., Any]


class Rewind:
    """A pair for one graph: ``eager`` begins where the call in ``around(run)`` began."""

    def __init__(self, eager: Run) -> None:
        self._eager = eager
        self._begun = threading.local()

    def eager(self, *args: Any) -> Any:
        """Run the graph eagerly, from the random state that its call found."""
        state = getattr(self._begun, "state", None)
        if state is not None:
            torch.default_generator.set_state(state)
        return self._eager(*args)

    def around(self, run: Run) -> Run:
        """``run``, which calls ``eager`` if it fails."""

        def call(*args: Any) -> Any:
            self._begun.state = torch.default_generator.get_state()
            try:
                return run(*args)
            finally:
                self._begun.state = None

        return call
