"""From a functional ATen graph to the loop IR."""

from dynacap.backends.native.lowering.graph import lower, lowered
from dynacap.backends.native.lowering.lower import NotLowered

__all__ = ["NotLowered", "lower", "lowered"]
