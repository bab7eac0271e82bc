"""Tensors under capture: fake metadata, the graph, and the operations on both."""

from dynacap.values.tensor.family import TensorFamily
from dynacap.values.tensor.value import NodeValue, OpaqueValue, TensorValue

__all__ = ["NodeValue", "OpaqueValue", "TensorFamily", "TensorValue"]
