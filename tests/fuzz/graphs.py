"""Graphs that nobody wrote, with inputs: pointwise operations, views, reductions, changes in place.

An operation is tried on real tensors as it is added; what eager refuses is left out, so that no
rule of torch's has to be repeated here.  Operations whose result jumps (comparisons, rounding,
argmax) take only exact values: rounding may differ by a bit, and must not decide anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from dynacap.backends.verify.copies import copied
from dynacap.fxlite import Graph, GraphModule, Node
from dynacap.fxlite.node import map_arg
from tests.fuzz.graph_parts import KINDS as PARTS

Choose = Callable[[int], int]
Arguments = tuple[Any, ...]

SIZES = (1, 2, 3, 5, 8, 17, 40, 0, 130, 64, 16)
FLOATS = (torch.float32,) * 4 + (torch.float64, torch.bfloat16, torch.float16)
OTHERS = (torch.int64, torch.int32, torch.uint8, torch.bool)
LARGEST = 200_000  # elements of any value

SMOOTH: tuple[Callable[..., Any], ...] = (
    torch.neg, torch.exp, torch.tanh, torch.sigmoid, F.gelu, F.silu, torch.erf, torch.sin,
    torch.cos, torch.square, torch.log1p, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.log,
    F.softplus, F.elu, F.mish, torch.expm1, torch.atan, torch.sinh, F.logsigmoid, torch.exp2,
)  # fmt: skip
PIECEWISE = (torch.abs, torch.relu, F.leaky_relu, F.hardtanh, F.hardswish, F.relu6, torch.positive)
JUMPING: tuple[Callable[..., Any], ...] = (
    torch.floor, torch.ceil, torch.round, torch.trunc, torch.sign, torch.logical_not, torch.isnan,
    torch.isfinite, torch.bitwise_not, torch.signbit,
)  # fmt: skip
BINARY: tuple[Callable[..., Any], ...] = (
    torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.minimum, torch.atan2,
    torch.hypot, torch.true_divide, torch.fmax,
)  # fmt: skip
COMPARING: tuple[Callable[..., Any], ...] = (
    torch.eq, torch.ne, torch.lt, torch.ge, torch.logical_and, torch.logical_xor,
    torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor,
)  # fmt: skip
FOLDING: tuple[Callable[..., Any], ...] = (
    torch.sum, torch.mean, torch.amax, torch.amin, torch.var, torch.std, torch.logsumexp,
    torch.prod, torch.linalg.vector_norm,
)  # fmt: skip
ALONG = (torch.softmax, torch.log_softmax, torch.cumsum)
COUNTING = (torch.argmax, torch.argmin, torch.any, torch.all, torch.count_nonzero)


class GraphWriter:
    """Writes one graph by asking ``choose(n)`` for numbers below n."""

    def __init__(self, choose: Choose) -> None:
        self.choose = choose
        self.graph = Graph()
        self.values: dict[Node, torch.Tensor] = {}
        self.exact: list[Node] = []
        self.inputs: list[torch.Tensor] = []

    def write(self, size: int) -> tuple[GraphModule, list[torch.Tensor]]:
        """A graph of about ``size`` operations, and its inputs."""
        for _ in range(1 + self.choose(3)):
            self._add_input()
        for _ in range(size):
            self._any_of(KINDS)(self)
        unused = [node for node in self.values if not node.users]
        self.graph.output(tuple(unused[-4:] or self.values))
        return GraphModule({}, self.graph, "fuzzed"), self.inputs

    # -- inputs ------------------------------------------------------------------------------------

    def _add_input(self) -> None:
        tensor = self._laid_out(self._shape(), self._dtype())
        self.inputs.append(tensor)
        node = self.graph.placeholder(f"x{len(self.inputs)}")
        self.values[node] = copied([tensor]).values[0]
        self.exact.append(node)

    def _shape(self) -> list[int]:
        """A shape of its own, or one that broadcasts with the first input's."""
        if not self.inputs or not self.choose(4):
            return [self._any_of(SIZES) for _ in range(self.choose(5))]
        shape = list(self.inputs[0].shape)
        return [size if self.choose(3) else 1 for size in shape[self.choose(len(shape) + 1) :]]

    def _dtype(self) -> torch.dtype:
        return self._any_of(FLOATS if self.choose(4) else OTHERS)

    def _laid_out(self, shape: list[int], dtype: torch.dtype) -> torch.Tensor:
        """Whole eighths between -4 and 4, in one of many layouts."""
        while torch.Size(shape).numel() > LARGEST:
            shape = shape[1:]
        if shape and torch.Size(shape).numel() and not self.choose(12):
            shape = [*shape[:-1], LARGEST // torch.Size(shape).numel() * shape[-1]]
        layout = self.choose(6)
        if layout == 1:  # transposed
            return self._filled(shape[::-1], dtype).permute(tuple(reversed(range(len(shape)))))
        if layout == 2 and shape:  # every second column of a larger one, not from its start
            wide = [*shape[:-1], 2 * shape[-1] + 1]
            return self._filled(wide, dtype)[..., 1::2]
        if layout == 3 and shape:  # one value repeated along a dimension
            at = self.choose(len(shape))
            narrow = [*shape[:at], 1, *shape[at + 1 :]]
            return self._filled(narrow, dtype).expand(shape)
        made = self._filled(shape, dtype)
        return made.requires_grad_(dtype.is_floating_point and layout > 3)

    def _filled(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.choose(1000))
        numbers = torch.randint(-32, 33, tuple(shape), generator=generator) / 8
        if dtype in (torch.float32, torch.float64) and numbers.numel() and not self.choose(6):
            special = torch.tensor([math.nan, math.inf, -math.inf, -0.0, 1e-40, 3e38, -1e10])
            places = torch.randint(numbers.numel(), (7,), generator=generator)
            numbers.view(-1)[places] = special
        return (numbers.abs() if dtype is torch.uint8 else numbers).to(dtype)

    # -- operations --------------------------------------------------------------------------------

    def _any_of(self, items: Sequence[Any]) -> Any:
        return items[self.choose(len(items))]

    def _node(self, *, exact: bool = False) -> Node:
        """One of the values so far, the later ones more often."""
        nodes = self.exact if exact else list(self.values)
        return nodes[max(self.choose(len(nodes)), self.choose(len(nodes)))]

    def _dim(self, node: Node) -> int:
        rank = self.values[node].dim()
        return self.choose(2 * rank) - rank if rank else 0

    def add(
        self, target: Any, *args: Any, exact: bool = False, **kwargs: Any
    ) -> Node | None:  # fmt: skip
        """Add an operation if eager takes it; a string is a method's name."""
        taken = map_arg(args, self.values.__getitem__)
        try:
            if isinstance(target, str):
                value = getattr(taken[0], target)(*taken[1:], **kwargs)
            else:
                value = target(*taken, **kwargs)
        except (RuntimeError, TypeError, IndexError, ValueError, ZeroDivisionError):
            return None
        if value is not None and value.numel() > 2 * LARGEST:
            return None
        op = "call_method" if isinstance(target, str) else "call_function"
        node = self.graph.create_node(op, target, args, kwargs)
        if value is None:  # something was written to
            return None
        self.values[node] = value
        if exact:
            self.exact.append(node)
        return node

    def pointwise(self) -> None:
        """A smooth function of one value."""
        self.add(self._any_of(SMOOTH + PIECEWISE), self._node())

    def jumping(self) -> None:
        """A function that jumps, of an exact value."""
        self.add(self._any_of(JUMPING + PIECEWISE), self._node(exact=True), exact=True)

    def binary(self) -> None:
        """Two values, or one and a number."""
        other = self._node() if self.choose(4) else self._any_of((2, 0.5, -1, 1.5))
        self.add(self._any_of(BINARY), self._node(), other)

    def comparing(self) -> None:
        """Two exact values compared."""
        other = self._node(exact=True) if self.choose(3) else self._any_of((0, 1, 0.5))
        self.add(self._any_of(COMPARING), self._node(exact=True), other, exact=True)

    def choosing(self) -> None:
        """Values chosen by a condition, or held between bounds."""
        if self.choose(3):
            condition = self.add(torch.gt, self._node(exact=True), 0, exact=True)
            if condition is not None:
                self.add(torch.where, condition, self._node(), self._node())
        else:
            self.add(torch.clamp, self._node(), -1, 1.5)

    def folding(self) -> None:
        """A reduction over one dimension, several, or all."""
        node = self._node()
        rank = self.values[node].dim()
        dims = tuple({self._dim(node) % max(rank, 1) for _ in range(1 + self.choose(2))})
        dim = dims[0] if self.choose(2) else dims
        if self.choose(5):
            self.add(self._any_of(FOLDING), node, dim=dim, keepdim=bool(self.choose(2)))
        else:
            self.add(self._any_of((torch.sum, torch.mean, torch.amax)), node)

    def along(self) -> None:
        """A function along one dimension, which keeps the shape."""
        node = self._node()
        if self.choose(4):
            self.add(self._any_of(ALONG), node, self._dim(node))
        elif self.values[node].dim():
            self.add(F.layer_norm, node, (self.values[node].shape[-1],))

    def counting(self) -> None:
        """A reduction that picks or counts, of an exact value."""
        node = self._node(exact=True)
        self.add(self._any_of(COUNTING), node, self._dim(node), exact=True)

    def casting(self) -> None:
        """Another data type; whole numbers only from exact values that they can hold."""
        if self.choose(2):
            self.add("to", self._node(), self._dtype_of_floats())
        else:
            node = self._node(exact=True)
            self.add("to", node, self._any_of((torch.int32, torch.bool, torch.int64)), exact=True)

    def _dtype_of_floats(self) -> torch.dtype:
        made: torch.dtype = self._any_of(FLOATS)
        return made

    def viewing(self) -> None:
        """The same values seen, or laid out, otherwise."""
        exact = not self.choose(3)
        node = self._node(exact=exact)
        name, arguments = self._any_of(VIEWS)
        self.add(name, node, *arguments(self, node), exact=exact)

    def joining(self) -> None:
        """Values side by side."""
        node = self._node()
        joined = (node, node if self.choose(2) else self._node())
        self.add(self._any_of((torch.cat, torch.stack)), joined, self._dim(node))

    def picking(self) -> None:
        """Values picked by their places."""
        node = self._node()
        if not self.values[node].dim():
            return
        dim = self._dim(node)
        size = self.values[node].shape[dim]
        index = self.add(torch.arange, size, exact=True)
        if index is not None:
            turned = self.add("flip", index, 0, exact=True)
            self.add(torch.index_select, node, dim, turned)

    def in_place(self) -> None:
        """A value changed, with all that see its memory."""
        node = self._node()
        if node in self.exact:
            return  # others that share its memory would not be exact any more
        self.add(self._any_of(("add_", "mul_", "sub_")), node, self._any_of((0.5, 2, -1)))

    def product(self) -> None:
        """A matrix product."""
        self.add(torch.matmul, self._node(), self._node())


def _nothing(writer: GraphWriter, node: Node) -> Arguments:
    return ()


def _one_dim(writer: GraphWriter, node: Node) -> Arguments:
    return (writer._dim(node),)


def _two_dims(writer: GraphWriter, node: Node) -> Arguments:
    return writer._dim(node), writer._dim(node)


def _order(writer: GraphWriter, node: Node) -> Arguments:
    rank = writer.values[node].dim()
    turn = writer.choose(max(rank, 1))
    return tuple((position + turn) % rank for position in range(rank))


def _new_shape(writer: GraphWriter, node: Node) -> Arguments:
    shape = list(writer.values[node].shape)
    return (-1,) if len(shape) < 2 or writer.choose(2) else (shape[0] * shape[1], *shape[2:])


def _wider(writer: GraphWriter, node: Node) -> Arguments:
    return (1 + writer.choose(3), *writer.values[node].shape)


def _part(writer: GraphWriter, node: Node) -> Arguments:
    value, dim = writer.values[node], writer._dim(node)
    size = value.shape[dim] if value.dim() else 1
    start = writer.choose(max(size, 1))
    return dim, start, writer.choose(size - start + 1) if size > start else 0


VIEWS: tuple[tuple[str, Callable[[GraphWriter, Node], Arguments]], ...] = (
    ("transpose", _two_dims), ("permute", _order), ("unsqueeze", _one_dim), ("squeeze", _one_dim),
    ("reshape", _new_shape), ("flatten", _nothing), ("expand", _wider), ("narrow", _part),
    ("contiguous", _nothing), ("flip", _one_dim), ("clone", _nothing), ("diagonal", _nothing),
    ("select", lambda writer, node: (writer._dim(node), 0)),
)  # fmt: skip

KINDS: tuple[Callable[[GraphWriter], None], ...] = (
    GraphWriter.pointwise, GraphWriter.pointwise, GraphWriter.binary, GraphWriter.binary,
    GraphWriter.binary, GraphWriter.jumping, GraphWriter.comparing, GraphWriter.choosing,
    GraphWriter.folding, GraphWriter.folding, GraphWriter.along, GraphWriter.counting,
    GraphWriter.casting, GraphWriter.viewing, GraphWriter.viewing, GraphWriter.joining,
    GraphWriter.picking, GraphWriter.in_place, GraphWriter.product, *PARTS,
)  # fmt: skip
