"""Walks an ATen graph: each node becomes equations by its rule, a view, or a call as it is."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._prims_common import is_non_overlapping_and_dense_or_false as _is_dense
from torch.fx import Graph, Node

from dynacap.backends.native.loops.equation import Equation
from dynacap.backends.native.loops.index import ZERO, Axis, Index, Size
from dynacap.backends.native.loops.program import (
    Buffer,
    Call,
    Kind,
    Number,
    View,
    check_number,
    varies,
)
from dynacap.backends.native.lowering.field import Field, Place, memory
from dynacap.backends.native.refused import may_be_refused
from dynacap.fxlite.risks import OWN_NAMESPACES

Step = Equation | Call | View
Rule = Callable[..., Any]
RULES: dict[torch._ops.OpOverload, Rule] = {}

# Batch norm's kernels on other devices ask for some, which nobody reads here.
_ONLY_MEMORY = frozenset({torch.ops.aten.empty.memory_format})
# Views that their schemas do not tell of.
_VIEWS_BY_CONVENTION = frozenset({torch.ops.aten._unsafe_view.default})


def lowers(*targets: torch._ops.OpOverload) -> Callable[[Rule], Rule]:
    """Register ``rule(lowering, *args, **kwargs)``: fields for tensors in, fields out.

    A rule returns a field for each result, or NotImplemented for what it leaves to the operator.
    """

    def register(rule: Rule) -> Rule:
        for target in targets:
            if target in RULES:
                raise ValueError(f"{target} has a rule already: {RULES[target]}")
            RULES[target] = rule
        return rule

    return register


class Lowering:
    """One graph on its way to equations; rules ask it for reductions and for the node's result."""

    def __init__(self, rules: Mapping[torch._ops.OpOverload, Rule]) -> None:
        self.rules = rules
        self.buffers: list[Buffer] = []
        self.steps: list[Step] = []
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []
        self.values: dict[Node, Any] = {}
        self.roots: dict[Buffer, Buffer] = {}
        self.finite: list[Buffer] = []  # what has to be for loops to give what eager does
        self.own: set[Buffer] = set()  # what the rule of the node has made so far
        self.node: Node
        self.result: Any = None  # the fake tensor, or tensors, that the node gives

    def run(self, graph: Graph) -> None:
        """Lower every node."""
        for node in graph.nodes:
            self.node = node
            self.result = node.meta.get("val")
            self.values[node] = getattr(self, f"_{node.op}")(node)

    def _placeholder(self, node: Node) -> Any:
        value: Any = size_of(self.result)
        if _is_tensor(self.result):
            if self.result.is_conj() or self.result.is_neg():
                raise NotImplementedError("a gradient is to be conjugated when it is read")
            value = self.buffer(node.name, self.result, "input")
        elif isinstance(self.result, torch.SymFloat):
            value = Number(f"{node.name}__number")
        check_number(self.result)
        self.inputs.append(value)
        return value

    def _get_attr(self, node: Node) -> Any:
        value = operator.attrgetter(str(node.target))(node.graph.owning_module)
        if not isinstance(value, torch.Tensor):
            return value
        buffer = self.buffer(node.name, value, "constant")
        buffer.value = value
        return buffer

    def _output(self, node: Node) -> None:
        values = node.args[0] if isinstance(node.args[0], list | tuple) else [node.args[0]]
        for output in values:
            check_number(output.meta.get("val") if isinstance(output, Node) else output)
        self.outputs = self.read(values)
        for value in self.outputs:
            if isinstance(value, Buffer) and value.kind == "temporary":
                value.kind = "output"

    def _call_function(self, node: Node) -> Any:
        if node.target is operator.getitem:
            return self.read(node.args[0])[node.args[1]]
        if isinstance(self.result, torch.SymFloat):
            return _known_float(node, self.result)
        if isinstance(self.result, torch.SymInt | torch.SymBool | int | float):
            return size_of(self.result)
        target = node.target
        if not isinstance(target, torch._ops.OpOverload):
            raise NotImplementedError(f"{target} is no ATen operator")
        if _is_view(node, self.result) and not self._detaches_input(node):
            return self._view(node)
        rule = self.rules.get(target)
        if rule is None or not _plain(self.result) or not _is_for_loops(node):
            return self._call(target)
        before = len(self.steps)
        self.own.clear()
        try:
            fields = rule(self, *self.fields(node.args), **self.fields(node.kwargs))
        except TypeError:
            if not any(map(_varies, self.inputs)):
                raise
            fields = NotImplemented  # it needs a number that is not known yet
        if fields is NotImplemented:
            del self.steps[before:]
            return self._call(target)
        if isinstance(fields, Field):
            made = self.store(fields, self.result, node.name)
            self._note_call(target, self.steps[before:], made)
            return made
        return [
            None if field is None else self.store(field, value, f"{node.name}_{i}")
            for i, (field, value) in enumerate(zip(fields, self.result, strict=True))
        ]

    def _note_call(
        self, target: torch._ops.OpOverload, steps: Sequence[Step], made: Buffer
    ) -> None:
        """If one equation is all that a node came to, note which operator it says."""
        if len(steps) == 1 and isinstance(steps[0], Equation):
            args, kwargs = tuple(self.read(self.node.args)), self.read(self.node.kwargs)
            steps[0].call = Call(target, args, kwargs, (made,), (self.node,))

    def read(self, arg: Any) -> Any:
        """An argument with nodes replaced by what they came to."""
        if isinstance(arg, Node):
            return self.values[arg]
        if isinstance(arg, list | tuple):
            return [self.read(item) for item in arg]
        if isinstance(arg, dict):
            return {name: self.read(item) for name, item in arg.items()}
        return arg

    def fields(self, arg: Any) -> Any:
        """An argument with fields in the place of tensors."""
        if isinstance(arg, Node):
            value = self.values[arg]
            return self.field(value) if isinstance(value, Buffer) else value
        if isinstance(arg, list | tuple):
            return [self.fields(item) for item in arg]
        if isinstance(arg, dict):
            return {name: self.fields(item) for name, item in arg.items()}
        return arg

    def field(self, buffer: Buffer) -> Field:
        """A buffer's elements."""
        return memory(buffer, self.roots.get(buffer, buffer))

    def buffer(self, name: str, value: torch.Tensor, kind: Kind = "temporary") -> Buffer:
        """A new buffer laid out as a tensor is."""
        strides = sizes_of(value.stride()) if value.layout is torch.strided else ()
        buffer = Buffer(name, value.dtype, sizes_of(value.shape), strides, 0, kind)
        buffer.negated = value.is_conj() or value.is_neg()
        self.buffers.append(buffer)
        return buffer

    def store(self, field: Field, like: torch.Tensor, name: str) -> Buffer:
        """Memory that holds a field, laid out as eager's result; what is there already serves."""
        there = field.buffer
        strides = sizes_of(like.stride())
        if there and there.strides == strides and there.dtype is like.dtype and there in self.own:
            return there
        buffer = self.buffer(name, like)
        axes, place = loops_over(buffer.shape, buffer.strides)
        offset = dot(place, buffer.strides)
        value = field.at(place).to(like.dtype)
        self.steps.append(Equation(buffer, axes, offset, value, origins=(self.node,)))
        return buffer

    def fold(self, combiner: str, field: Field, dims: Sequence[int], keep: bool = True) -> Field:
        """A reduction over dimensions, as memory of its own; ``keep`` leaves them with size 1."""
        over = set(dims)
        shape = tuple(1 if d in over else size for d, size in enumerate(field.shape))
        axes, place = loops_over(field.shape, contiguous(field.shape))
        kept = tuple(a for a in axes if place_dim(place, a) not in over)
        reduced = tuple(a for a in axes if place_dim(place, a) in over)
        shown = shape if keep else tuple(s for d, s in enumerate(shape) if d not in over)
        name = f"{self.node.name}_{combiner}{len(self.steps)}"
        buffer = Buffer(name, field.dtype, shown, contiguous(shown))
        self.buffers.append(buffer)
        offset = dot(tuple(map(Index.of, kept)), contiguous([axis.size for axis in kept]))
        value = field.at(place).to(field.dtype)
        combiner = combiner if reduced else ""
        equation = Equation(buffer, kept, offset, value, reduced, combiner, (self.node,))
        self.steps.append(equation)
        return self._made(buffer)

    def sees_finite(self, field: Field) -> bool:
        """Whether what comes from outside is looked at before the graph runs, so that loops meet no
        NaN and no infinity in it."""
        root = self.roots.get(field.buffer, field.buffer) if field.buffer else None
        if root is None or root.kind not in ("input", "constant"):
            return False
        self.finite += [] if root in self.finite else [root]
        return True

    def plain(self, operands: Sequence[Any]) -> bool:
        """Whether fields are of dtypes that loops can compute with."""
        return all(x.dtype in DTYPES for x in operands if isinstance(x, Field))

    def _made(self, buffer: Buffer) -> Field:
        self.own.add(buffer)
        return self.field(buffer)

    def _part(self, dtype: torch.dtype, shape: Sequence[Size]) -> Buffer:
        """A new buffer of the node's, in the usual order."""
        name = f"{self.node.name}_part{len(self.steps)}"
        buffer = Buffer(name, dtype, tuple(shape), contiguous(shape))
        self.buffers.append(buffer)
        return buffer

    def called(
        self, target: torch._ops.OpOverload, shape: Sequence[Size], *operands: Buffer
    ) -> Field:
        """What another operator gives for buffers, in the usual order."""
        buffer = self._part(operands[0].dtype, shape)
        self.steps.append(Call(target, operands, {}, (buffer,), (self.node,)))
        return self._made(buffer)

    def seen(self, base: Buffer, shape: Sequence[Size], strides: Sequence[Size]) -> Buffer:
        """A buffer's memory with another shape."""
        name = f"{self.node.name}_view{len(self.steps)}"
        buffer = Buffer(name, base.dtype, tuple(shape), tuple(strides), base.offset)
        self.buffers.append(buffer)
        self.roots[buffer] = self.roots.get(base, base)
        self.steps.append(View(buffer, base))
        self.own.update({buffer} if base in self.own else ())
        return buffer

    def assemble(
        self, parts: Sequence[tuple[Sequence[Size], Field]], shape: Sequence[Size] | None = None
    ) -> Field:
        """The node's result, each region of which, from a corner on, is a field; if there is a
        shape, not the result but something of that shape."""
        if shape is None:
            buffer = self.buffer(self.node.name, self.result)
        else:
            buffer = self._part(parts[0][1].dtype, shape)
        for corner, field in parts:
            axes, place = loops_over(field.shape, buffer.strides)
            start = dot(tuple(ZERO + c for c in corner), buffer.strides)
            value = field.at(place).to(buffer.dtype)
            offset = dot(place, buffer.strides) + start
            whole = len(parts) == 1
            self.steps.append(
                Equation(buffer, axes, offset, value, origins=(self.node,), whole=whole)
            )
        return self._made(buffer)

    def keep(self, field: Field) -> Field:
        """A field as memory of its own, for what a rule reads more than once."""
        axes, place = loops_over(field.shape, contiguous(field.shape))
        buffer = self._part(field.dtype, field.shape)
        value = field.at(place).to(field.dtype)
        offset = dot(place, buffer.strides)
        self.steps.append(Equation(buffer, axes, offset, value, origins=(self.node,)))
        return self._made(buffer)

    def _detaches_input(self, node: Node) -> bool:
        """Whether a node gives the caller an input without its gradient, which no view of it is."""
        base = self.read(node.args[0])
        detaches = node.target is torch.ops.aten.detach.default
        return detaches and self.roots.get(base, base).kind == "input" and _is_returned(node)

    def _view(self, node: Node) -> Any:
        source = node.args[0]
        assert isinstance(source, Node)
        base, base_value = self.values[source], source.meta["val"]
        if isinstance(self.result, list | tuple):
            return [
                self._seen(f"{node.name}_{i}", value, base, base_value)
                for i, value in enumerate(self.result)
            ]
        return self._seen(node.name, self.result, base, base_value)

    def _seen(self, name: str, value: Any, base: Buffer, base_value: Any) -> Buffer:
        result = self.buffer(name, value)
        shift = size_of(value.storage_offset()) - size_of(base_value.storage_offset())
        result.offset = base.offset + shift
        if result.dtype is base.dtype:
            self.roots[result] = self.roots.get(base, base)
        self.steps.append(View(result, base))
        return result

    def _call(self, target: torch._ops.OpOverload) -> Any:
        node, value = self.node, self.result
        if target in _ONLY_MEMORY and not node.users:
            return None
        several = isinstance(value, list | tuple)
        if several and any(isinstance(each, list | tuple) for each in value):
            raise NotImplementedError(f"{target} gives lists of tensors beside others")
        values = value if several else (value,) if target._schema.returns else ()
        results = [
            self.buffer(f"{node.name}_{i}" if several else node.name, v) if _is_tensor(v) else None
            for i, v in enumerate(values)
        ]
        args, kwargs = tuple(self.read(node.args)), self.read(node.kwargs)
        self.steps.append(Call(target, args, kwargs, tuple(results), (node,)))
        return results if several or not results else results[0]


def loops_over(shape: Sequence[Size], strides: Sequence[Size]) -> tuple[tuple[Axis, ...], Place]:
    """An axis for each dimension that is longer than 1, outermost the one that steps furthest."""
    atoms = [None if isinstance(size, int) and size == 1 else Axis(size) for size in shape]
    dims = [d for d, atom in enumerate(atoms) if atom is not None]
    if all(isinstance(strides[d], int) for d in dims):
        dims.sort(key=lambda d: -strides[d])
    place = tuple(ZERO if atom is None else Index({atom: 1}) for atom in atoms)
    return tuple(atom for d in dims if (atom := atoms[d]) is not None), place


def place_dim(place: Place, axis: Axis) -> int:
    """The dimension along which an axis runs."""
    return next(d for d, index in enumerate(place) if axis in index.terms)


def dot(place: Place, strides: Sequence[Size]) -> Index:
    """Where a place lies in memory."""
    offset = ZERO
    for index, stride in zip(place, strides, strict=True):
        offset = offset + index * stride
    return offset


def contiguous(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Strides of a row-major layout."""
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def sizes_of(sizes: Sequence[Any]) -> tuple[Size, ...]:
    """A shape as plain ints, or expressions where it is dynamic."""
    return tuple(map(size_of, sizes))


def size_of(value: Any) -> Any:
    """An int as it is, a symbolic one as its expression."""
    return value.node.expr if isinstance(value, torch.SymInt) else value


def _varies(value: Any) -> bool:
    """Whether an input is a number that varies, or has such a size."""
    return any(
        map(varies, (*value.shape, *value.strides) if isinstance(value, Buffer) else [value])
    )


def _known_float(node: Node, value: torch.SymFloat) -> float:
    """A float that tracing has fixed; what varies is computed before the graph."""
    if not value.node.expr.is_number:
        raise NotImplementedError(f"{node.name} is a float that the graph computes")
    return float(value.node.expr)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_view(node: Node, result: Any) -> bool:
    """Whether a node only shows its first argument's memory with other strides."""
    target = node.target
    if target in _VIEWS_BY_CONVENTION:
        return True
    if target.namespace not in OWN_NAMESPACES:  # type: ignore[union-attr]
        return False  # others' code is to run
    returns = target._schema.returns  # type: ignore[union-attr]
    if not returns or any(r.alias_info is None or r.alias_info.is_write for r in returns):
        return False
    first = result[0] if isinstance(result, list | tuple) and result else result
    if not _is_tensor(first) or not _is_as_it_lies(first):
        return False
    if not isinstance(node.args[0], Node):
        return False
    source = node.args[0].meta["val"]
    return source.dtype is first.dtype and _is_as_it_lies(source)


def _is_as_it_lies(value: torch.Tensor) -> bool:
    """Whether memory holds a tensor's elements: who reads others is to negate what is there."""
    return value.layout is torch.strided and not (value.is_conj() or value.is_neg())


def is_item_or_view(node: Node) -> bool:
    """Whether a node gives a part of a tuple, or the memory of another one."""
    return node.target is operator.getitem or _is_view(node, node.meta["val"])


def _is_returned(node: Node) -> bool:
    """Whether the graph gives what a node gives, or a view of it."""
    return any(
        user.op == "output" or (is_item_or_view(user) and _is_returned(user)) for user in node.users
    )


def _plain(result: Any) -> bool:
    """Whether results are tensors that loops can fill: dense, on the CPU, of a dtype of ours."""
    return all(_dense(value) for value in _tensors(result))


def _is_for_loops(node: Node) -> bool:
    return _readable(node) and _sized(node) and not may_be_refused(node)


def _readable(node: Node) -> bool:
    """Whether what takes part is of dtypes of ours, however it lies in memory."""
    values = [other.meta.get("val") for other in node.all_input_nodes]
    tensors = [tensor for value in values for tensor in _tensors(value)]
    return all(tensor.dtype in DTYPES and not tensor.is_neg() for tensor in tensors)


def _sized(node: Node) -> bool:
    """Whether every tensor that takes part has elements, and a number of them that is known.

    Loops over symbolic sizes are not written yet: those operators are called.
    """
    values = [other.meta.get("val") for other in node.all_input_nodes]
    tensors = [tensor for value in values for tensor in _tensors(value)]
    tensors += list(_tensors(node.meta["val"]))[:1]  # the others may be placeholders for nothing
    return all(
        tensor.layout is torch.strided
        and all(isinstance(size, int) for size in (*tensor.shape, *tensor.stride()))
        and 0 not in tensor.shape
        for tensor in tensors
    )


def _tensors(result: Any) -> Iterator[torch.Tensor]:
    for value in result if isinstance(result, list | tuple) else (result,):
        if _is_tensor(value):
            yield value


DTYPES = frozenset({
    torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.bool,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
})  # fmt: skip


def _dense(value: torch.Tensor) -> bool:
    if value.dtype not in DTYPES or not _is_as_it_lies(value):
        return False
    return bool(_is_dense(value))
