"""The values that graph nodes give: tensors, and opaque objects that only pass through."""

from __future__ import annotations

from typing import Any

import torch

from dynacap.fxlite.node import Node
from dynacap.guards.source import Source
from dynacap.values.base import Value
from dynacap.values.container import DictValue


class NodeValue(Value):
    """What a node of the graph gives at run time; it leaves the graph as one of its outputs."""

    __slots__ = ("node",)

    def __init__(self, node: Node, source: Source | None = None) -> None:
        self.source = source
        self.node = node


class TensorValue(NodeValue):
    """One Python tensor object.

    ``fake`` is its stand-in: the same metadata, no elements.  ``real`` is the tensor itself if it
    came from outside; then ``source`` says from where, or is None if the entry holds it.  After an
    in-place operation ``node`` is that operation's node, so that what follows depends on it.
    """

    __slots__ = ("attrs", "fake", "real", "type_")

    def __init__(
        self,
        node: Node,
        fake: torch.Tensor,
        type_: type = torch.Tensor,
        real: torch.Tensor | None = None,
        source: Source | None = None,
    ) -> None:
        self.source = source
        self.node = node
        self.fake = fake
        self.type_ = type_
        self.real = real
        self.attrs: DictValue | None = None  # the mirror of ``__dict__``, once touched

    @property
    def cls(self) -> type:
        return self.type_

    def release(self) -> None:
        self.real = self.attrs = None

    def describe(self) -> str:
        fake = self.fake
        dtype = str(fake.dtype).removeprefix("torch.")
        return f"{self.type_.__name__}({dtype}{list(fake.shape)})"


class OpaqueValue(NodeValue):
    """An object that is no tensor, made by one node and used by others (a guard object of C++)."""

    __slots__ = ("type_",)

    def __init__(self, node: Node, type_: type[Any]) -> None:
        super().__init__(node)
        self.type_ = type_

    @property
    def cls(self) -> type:
        return self.type_
