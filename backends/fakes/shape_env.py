"""Torch's ``ShapeEnv`` without the search for a line of torch's own to blame each symbol on."""

from __future__ import annotations

from typing import Any

from torch._guards import SLoc
from torch.fx.experimental.symbolic_shapes import ShapeEnv


class UnplacedShapeEnv(ShapeEnv):
    """Symbols and conditions that do not carry where in the framework they arose.

    To leave its own files out of that, torch imports most of its compiler (0.25 s in a fresh
    process) and walks the stack for each symbol.  Our guards know the user's line without it.
    """

    def _get_stack_summary(
        self, is_debug: bool = False, framework_loc: str | None = None
    ) -> tuple[Any, str]:
        return SLoc(framework_loc, None), ""
