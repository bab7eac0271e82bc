"""Scalar expressions: what one element of a tensor is computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from dynacap.backends.native.loops.index import Axis, Index
from dynacap.backends.native.loops.program import Buffer, Number


class Expression:
    """A node of a scalar expression; shared freely, never changed.

    ``dtype`` is that of the value in torch's terms: bfloat16 values are computed in wider
    registers and rounded when they are stored or cast.
    """

    __slots__ = ("dtype",)
    dtype: torch.dtype

    def operands(self) -> tuple[Expression, ...]:
        """The expressions that it is computed from."""
        return ()

    def key(self, numbers: tuple[int, ...]) -> Any:
        """Equal for nodes that compute the same from operands numbered so."""
        raise NotImplementedError

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        """The same computation of other operands."""
        return self

    def to(self, dtype: torch.dtype) -> Expression:
        """Its value as another dtype."""
        return self if dtype is self.dtype else Op("cast", (self,), dtype)

    def __add__(self, other: Operand) -> Expression:
        return op("add", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return op("add", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return op("sub", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return op("sub", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return op("mul", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return op("mul", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return op("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return op("div", other, self)

    def __neg__(self) -> Expression:
        return op("neg", self)


class Constant(Expression):
    """A number that is known when the code is written."""

    __slots__ = ("value",)

    def __init__(self, value: bool | int | float, dtype: torch.dtype) -> None:
        self.value = value
        self.dtype = dtype

    def key(self, numbers: tuple[int, ...]) -> Any:
        return (repr(self.value), self.dtype)

    def __str__(self) -> str:
        return repr(self.value)


class Given(Expression):
    """A number that is known when the graph runs, as torch converts it to a dtype."""

    __slots__ = ("number",)

    def __init__(self, number: Number, dtype: torch.dtype) -> None:
        self.number = number
        self.dtype = dtype

    def key(self, numbers: tuple[int, ...]) -> Any:
        return (self.number, self.dtype)

    def __str__(self) -> str:
        return self.number.name


class Position(Expression):
    """Where the loop stands, as a number."""

    __slots__ = ("index",)

    def __init__(self, index: Index, dtype: torch.dtype = torch.int64) -> None:
        self.index = index
        self.dtype = dtype

    def key(self, numbers: tuple[int, ...]) -> Any:
        return (self.index, self.dtype)

    def __str__(self) -> str:
        return f"({self.index})"


class Load(Expression):
    """The element of a buffer that lies so many elements from its start."""

    __slots__ = ("buffer", "offset")

    def __init__(self, buffer: Buffer, offset: Index) -> None:
        self.buffer = buffer
        self.offset = offset
        self.dtype = buffer.dtype

    def key(self, numbers: tuple[int, ...]) -> Any:
        return (self.buffer, self.offset)

    def __str__(self) -> str:
        return f"{self.buffer.name}[{self.offset}]"


class Local(Expression):
    """A scalar variable of the kernel: what a reduction has come to."""

    __slots__ = ("name",)

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        self.name = name
        self.dtype = dtype

    def key(self, numbers: tuple[int, ...]) -> Any:
        return self.name

    def __str__(self) -> str:
        return self.name


class Op(Expression):
    """A scalar operation by name; ``cast`` converts to its dtype, and rounds as a store would."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: tuple[Expression, ...], dtype: torch.dtype) -> None:
        self.name = name
        self.args = args
        self.dtype = dtype

    def operands(self) -> tuple[Expression, ...]:
        return self.args

    def key(self, numbers: tuple[int, ...]) -> Any:
        return (self.name, self.dtype, numbers)

    def with_operands(self, operands: tuple[Expression, ...]) -> Expression:
        return Op(self.name, operands, self.dtype)

    def __str__(self) -> str:
        if self.name in INFIX and len(self.args) == 2:
            return f"({self.args[0]} {INFIX[self.name]} {self.args[1]})"
        name = str(self.dtype).removeprefix("torch.") if self.name == "cast" else self.name
        return f"{name}({', '.join(map(str, self.args))})"


Operand = Expression | Number | bool | int | float


def op(name: str, *operands: Operand) -> Expression:
    """A scalar operation on expressions of one dtype; numbers among them take that dtype."""
    dtype = next(x.dtype for x in operands if isinstance(x, Expression))
    args = tuple(x if isinstance(x, Expression) else constant(x, dtype) for x in operands)
    return Op(name, args, torch.bool if name in PREDICATES else dtype)


def where(condition: Expression, yes: Operand, no: Operand) -> Expression:
    """``yes`` where the condition holds, else ``no``; a number takes the dtype of the other."""
    dtype = next(x.dtype for x in (yes, no) if isinstance(x, Expression))
    branches = (x if isinstance(x, Expression) else constant(x, dtype) for x in (yes, no))
    return Op("where", (condition, *branches), dtype)


def constant(value: Number | bool | int | float, dtype: torch.dtype) -> Expression:
    """A number in a dtype; TypeError for one that is not known yet, and would be an integer."""
    if not isinstance(value, Number):
        return Constant(as_dtype(value, dtype), dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"{value.name} as {dtype}")
    return Given(value, dtype)


def as_dtype(value: bool | int | float, dtype: torch.dtype) -> bool | int | float:
    """A Python number as torch converts it; floats are rounded when they are written."""
    if dtype is torch.bool:
        return bool(value)
    return float(value) if dtype.is_floating_point else int(value)


PREDICATES = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "not"})

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "and": "&", "or": "|", "xor": "^",
}  # fmt: skip


class Gathered:
    """An atom of an index: an integer that is computed while the loop runs, 0 to ``size - 1``."""

    __slots__ = ("size", "value")

    def __init__(self, value: Expression, size: Any) -> None:
        self.value = value
        self.size = size

    def bounds(self) -> tuple[Any, Any]:
        """The least and the greatest value."""
        return 0, self.size - 1

    def axes(self) -> Iterator[Axis]:
        """The axes that it depends on."""
        return axes_of(self.value)

    def substitute(self, values: Mapping[Axis, Index]) -> Index:
        """What it becomes when axes are replaced."""
        return Index({Gathered(substitute(self.value, values), self.size): 1})

    def __str__(self) -> str:
        return str(self.value)


def walk(*roots: Expression) -> Iterator[Expression]:
    """Each node below the roots once, operands before what uses them; indices' own nodes too."""
    seen: set[int] = set()
    stack: list[tuple[Expression, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            stack.extend((operand, False) for operand in reversed(below(node)))


def below(node: Expression) -> tuple[Expression, ...]:
    """What a node needs computed first: its operands, and what its index reads."""
    index = index_of(node)
    if index is None:
        return node.operands()
    return tuple(atom.value for atom in gathered(index))


def index_of(node: Expression) -> Index | None:
    """The index of a load or a position."""
    if isinstance(node, Load):
        return node.offset
    return node.index if isinstance(node, Position) else None


def gathered(index: Index) -> Iterator[Gathered]:
    """The atoms of an index that are read from memory, inside quotients too."""
    for atom in index.terms:
        if isinstance(atom, Gathered):
            yield atom
        elif not isinstance(atom, Axis):
            yield from gathered(atom.dividend)


def loads(*roots: Expression) -> Iterator[Load]:
    """Each load below the roots."""
    return (node for node in walk(*roots) if isinstance(node, Load))


def numbers_in(*roots: Expression) -> dict[Number, None]:
    """The numbers below the roots that are known when the graph runs, each once."""
    return dict.fromkeys(node.number for node in walk(*roots) if isinstance(node, Given))


def checks_index(node: Expression) -> bool:
    """Whether a node finds out, as it runs, that an index lies outside."""
    return isinstance(node, Op) and node.name == "within"


def is_rounded(value: Expression) -> bool:
    """Whether a value of a half has the precision of its dtype, and no more."""
    return isinstance(value, Load) or (isinstance(value, Op) and value.name == "cast")


def chosen_by(root: Expression) -> Iterator[Buffer]:
    """The buffers whose values are indices into others, or that of the element itself."""
    for index in filter(None, map(index_of, walk(root))):
        for atom in gathered(index):
            yield from (inner.buffer for inner in loads(atom.value))


def axes_of(root: Expression) -> Iterator[Axis]:
    """The axes that a value depends on, one perhaps more than once."""
    for node in walk(root):
        index = index_of(node)
        if index is not None:
            yield from index.axes()


def rewrite(root: Expression, leaf: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with the nodes for which ``leaf`` has an answer replaced by it."""
    done: dict[int, Expression] = {}
    stack: list[tuple[Expression, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if ready:
            operands = node.operands()
            new = tuple(done[id(operand)] for operand in operands)
            same = all(a is b for a, b in zip(new, operands, strict=True))
            done[id(node)] = node if same else node.with_operands(new)
            continue
        replaced = leaf(node)
        if replaced is not None:
            done[id(node)] = replaced
        elif node.operands():
            stack.append((node, True))
            stack.extend((operand, False) for operand in node.operands())
        else:
            done[id(node)] = node
    return done[id(root)]


def substitute(root: Expression, values: Mapping[Axis, Index]) -> Expression:
    """The expression with loop axes replaced."""

    def leaf(node: Expression) -> Expression | None:
        if isinstance(node, Load):
            return Load(node.buffer, node.offset.substitute(values))
        if isinstance(node, Position):
            return Position(node.index.substitute(values), node.dtype)
        return None

    return rewrite(root, leaf) if values else root
