"""The values that graph nodes give: tensors, and opaque objects that only pass through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynacap.fxlite.node import Node
from dynacap.values.base import Value, fields
from dynacap.values.container import DictValue


@fields
class NodeValue(Value):
    """What a node of the graph gives at run time; it leaves the graph as one of its outputs."""

    node: Node


@fields
class TensorValue(NodeValue):
    """One Python tensor object.

    ``fake`` is its stand-in: the same metadata, no elements.  ``real`` is the tensor itself if it
    came from outside; then ``source`` says from where, or is None if the entry holds it.  After an
    in-place operation ``node`` is that operation's node, so that what follows depends on it.

    One from outside has neither ``fake`` nor ``node`` before they are asked for (``later`` makes
    them): what is only handed on may have any shape.
    """

    fake: Any
    cls: type = torch.Tensor
    real: Any = None
    attrs: DictValue | None = None  # the mirror of ``__dict__``, once touched
    later: Callable[[TensorValue], None] | None = None

    def __getattr__(self, name: str) -> Any:
        if self.later is None or name not in ("fake", "node"):
            raise AttributeError(name)
        later, self.later = self.later, None
        later(self)
        return getattr(self, name)

    def release(self) -> None:
        self.real = self.attrs = None

    def describe(self) -> str:
        fake = self.fake
        dtype = str(fake.dtype).removeprefix("torch.")
        return f"{self.cls.__name__}({dtype}{list(fake.shape)})"


@fields
class OpaqueValue(NodeValue):
    """An object that is no tensor, made by one node and used by others (a guard object of C++)."""

    cls: type
