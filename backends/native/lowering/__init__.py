"""From a functional ATen graph to the loop IR."""

from dynacap.backends.native.lowering.graph import lower, lowered

__all__ = ["lower", "lowered"]
