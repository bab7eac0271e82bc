"""Numbers of a tensor's metadata as sources: a size, a stride, where its elements begin."""

from typing import Any

from dynacap.guards.raw import MISSING, is_a
from dynacap.guards.source import Source, Step
from dynacap.guards.tensor import torch_module

SIZE, STRIDE, OFFSET = "size", "stride", "storage_offset"
_TEXTS = {SIZE: ".shape[{}]", STRIDE: ".stride({})", OFFSET: ".storage_offset()"}


def read_number(tensor: Any, what: str, dim: int) -> object:
    """One number of a tensor's metadata, or MISSING."""
    torch = torch_module()
    if torch is None or not is_a(tensor, torch.Tensor):
        return MISSING
    method = getattr(torch._C.TensorBase, what)
    try:
        with torch._C.DisableTorchFunction():
            return method(tensor) if what == OFFSET else method(tensor, dim)
    except (RuntimeError, IndexError):
        return MISSING


class TensorNumber(Step):
    """A size or stride of one dimension, or the offset into the storage."""

    __slots__ = ()
    op = "tensor_number"

    def __init__(self, tensor: Source, what: str, dim: int = 0) -> None:
        super().__init__(tensor, (what, dim))

    @property
    def text(self) -> str:
        """What stands behind the tensor in Python."""
        what, dim = self.key
        return _TEXTS[what].format(dim)

    def step(self, value: object) -> object:
        return read_number(value, *self.key)

    def name(self) -> str:
        return self.base.name() + self.text
