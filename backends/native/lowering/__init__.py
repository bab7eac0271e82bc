"""From a functional ATen graph to the loop IR."""

from dynacap.backends.native.lowering.graph import lower

__all__ = ["lower"]
