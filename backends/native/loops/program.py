"""What a graph comes to: buffers, and the kernels and calls that fill them, in order.

``print(program)`` shows all of it.  A size is an int, or a sympy expression over the program's
``sizes`` where a dimension is dynamic.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import torch

if TYPE_CHECKING:
    from dynacap.backends.native.loops.kernel import Kernel

Size = int  # or, where sizes are dynamic, a sympy expression, which computes alike
Kind = Literal["input", "output", "temporary", "constant"]

# Functionalization's own views, and those which autograd is not to know as such, do not say in
# their schemas that they are.
_VIEWS_UNSAID = frozenset({
    torch.ops.aten._unsafe_view.default, torch.ops.aten._reshape_alias.default,
    torch.ops.aten.unsafe_split.Tensor, torch.ops.aten.unsafe_split_with_sizes.default,
})  # fmt: skip


@dataclass(eq=False)
class Buffer:
    """Memory seen as a tensor: element ``i`` lies at ``offset + sum(i[k] * strides[k])``.

    The offset counts elements from where the buffer's pointer points; it differs from 0 in views
    only.  ``value`` is the tensor itself in a constant.  Of one that is ``negated`` or conjugated
    when it is read, memory does not hold the elements.
    """

    name: str
    dtype: torch.dtype
    shape: tuple[Size, ...]
    strides: tuple[Size, ...]
    offset: Size = 0
    kind: Kind = "temporary"
    value: torch.Tensor | None = field(default=None, repr=False)
    negated: bool = False

    @property
    def numel(self) -> Size:
        """How many elements it has."""
        count: Size = 1
        for size in self.shape:
            count = count * size
        return count

    def __str__(self) -> str:
        shape = ", ".join(map(str, self.shape))
        strides = ", ".join(map(str, self.strides))
        at = f" + {self.offset}" if self.offset != 0 else ""
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.kind} {self.name}: {dtype}[{shape}] by ({strides}){at}"


@dataclass(frozen=True)
class Number:
    """A float that the graph is given when it runs: a double, as Python's are."""

    name: str

    def __bool__(self) -> bool:
        raise TypeError(f"{self.name} is not known before the graph runs")


@dataclass(eq=False)
class Call:
    """One ATen operator, called as it is.

    In ``args`` and ``kwargs`` buffers stand for tensors, at any depth of lists.  ``results`` has
    one entry for each value that the operator returns: a buffer, or None where nobody uses it (or
    it is no tensor).  A call whose results are all None is there for its effect.
    """

    target: torch._ops.OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[Buffer | None, ...]
    origins: tuple[torch.fx.Node, ...] = ()

    def buffers(self) -> Iterator[Buffer]:
        """The buffers among the arguments, in order."""
        return buffers_in((self.args, tuple(self.kwargs.values())))

    def __str__(self) -> str:
        results = ", ".join("_" if result is None else result.name for result in self.results)
        args = [_shown(arg) for arg in self.args]
        args += [f"{name}={_shown(arg)}" for name, arg in self.kwargs.items()]
        return f"{results} = call {self.target}({', '.join(args)})"


@dataclass(eq=False)
class View:
    """``result`` is ``base``'s memory seen with another shape, strides and offset: no code."""

    result: Buffer
    base: Buffer

    def __str__(self) -> str:
        return f"{self.result.name} = view of {self.base.name}"


Step: TypeAlias = "Kernel | Call | View"


@dataclass(eq=False)
class Program:
    """A whole graph.

    ``inputs`` are the graph's placeholders in order: a buffer, the symbol of a size that comes as
    an integer, or a number.  ``outputs`` are what it returns: a buffer, a size, a number, None or
    another constant.  One that ``continues`` is given what an earlier graph kept for it.  Where one
    of ``finite``, which are inputs or constants, holds NaN or infinities, the graph runs eagerly.
    """

    buffers: list[Buffer]
    inputs: list[Buffer | Size | Number]
    outputs: list[Buffer | Size | Number | None]
    steps: Sequence[Step]
    sizes: tuple[Size, ...] = ()
    continues: bool = False
    finite: Sequence[Buffer] = ()

    def __str__(self) -> str:
        head = [str(buffer) for buffer in self.buffers]
        steps = [str(step) for step in self.steps]
        return "\n".join([*head, *steps, f"return {', '.join(map(_shown, self.outputs))}"])


def buffers_in(value: Any) -> Iterator[Buffer]:
    """The buffers in a nest of lists, tuples and dicts."""
    return (leaf for leaf in leaves(value) if isinstance(leaf, Buffer))


def leaves(value: Any) -> Iterator[Any]:
    """What lies in a nest of lists, tuples and dicts, in order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        yield from leaves(tuple(value.values()))
    else:
        yield value


def touched(step: Step) -> list[Buffer]:
    """All buffers that a step reads or fills."""
    if isinstance(step, View):
        return [step.base]
    if isinstance(step, Call):
        return [*step.buffers(), *buffers_in(step.results)]
    return [*step.reads, *step.writes]


def seen_memory(steps: Sequence[Step]) -> dict[Buffer, Buffer]:
    """Each buffer that lies in another one's memory, with that."""
    found: dict[Buffer, Buffer] = {}
    for step in steps:
        if isinstance(step, View):
            found[step.result] = step.base
        elif isinstance(step, Call) and sees_argument(step.target):
            base = _shown_by(step)
            found.update((result, base) for result in step.results if result and base)
    return found


def _shown_by(call: Call) -> Buffer | None:
    """The argument in whose memory the results lie: the one that the schema says, or the first."""
    schema = call.target._schema
    shown = {
        name for each in schema.returns if each.alias_info for name in each.alias_info.before_set
    }
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info and shown & argument.alias_info.before_set:
            given = call.args[position : position + 1] or call.kwargs.get(argument.name)
            return next(buffers_in(given), None)
    return next(call.buffers(), None)


def sees_argument(target: torch._ops.OpOverload) -> bool:
    """Whether what an operator gives lies in the memory of an argument, mostly the first."""
    if target in _VIEWS_UNSAID:
        return True
    return any(each.alias_info for each in target._schema.returns)


def is_symbolic(value: Any) -> bool:
    """Whether a value is an expression of sizes that are known when the graph runs."""
    return hasattr(value, "free_symbols")


def varies(value: Any) -> bool:
    """Whether a value is a number that is known when the graph runs."""
    return isinstance(value, Number) or is_symbolic(value)


def check_number(value: Any) -> None:
    """Refuse a truth value that varies, where a graph takes or returns it."""
    if isinstance(value, torch.SymBool):
        raise NotImplementedError("it takes or returns a truth value that varies")


def given_numbers(program: Program) -> dict[Any, int]:
    """The numbers that a program is given, and the position of each among them."""
    return {value: position for position, value in enumerate(filter(varies, program.inputs))}


class Origin(NamedTuple):
    """Where a program knows a symbol from: ``times * symbol + plus`` is what lies there.

    "integer", a position among the numbers, and 0; or "size" or "stride", a position among the
    tensors, and a dimension.  ``plus`` is a number, or a sum of symbols that are known before.
    """

    what: str
    position: int
    dim: int
    times: int = 1
    plus: Size = 0


def symbols_of(program: Program) -> dict[Size, Origin]:
    """Each symbol that a program knows from its inputs, and from which; what an origin names comes
    before it."""
    found: dict[Size, Origin] = {}
    composite: list[tuple[Any, Origin]] = []
    for number, origin in _sizes_given(program):
        if number.is_Symbol:
            found.setdefault(number, origin)
        else:
            composite.append((number, origin))
    while (solved := _solved(composite, found)) is not None:
        symbol, origin = solved
        found[symbol] = origin
    return found


def _sizes_given(program: Program) -> Iterator[tuple[Any, Origin]]:
    """The expressions of symbols that the inputs are, or are as long as, and where each lies."""
    for value, position in given_numbers(program).items():
        if is_symbolic(value):
            yield value, Origin("integer", position, 0)
    tensors = [value for value in program.inputs if isinstance(value, Buffer)]
    for what, name in (("size", "shape"), ("stride", "strides")):
        for position, tensor in enumerate(tensors):
            numbers: tuple[Any, ...] = getattr(tensor, name)
            for dim, number in enumerate(numbers):
                if is_symbolic(number):
                    yield number, Origin(what, position, dim)


def _solved(
    composite: Iterable[tuple[Any, Origin]], found: Mapping[Size, Origin]
) -> tuple[Size, Origin] | None:
    """A symbol that is known by now, from an expression in which all others are."""
    for number, origin in composite:
        unknown = number.free_symbols - found.keys()
        if len(unknown) != 1:
            continue
        (symbol,) = unknown
        times, plus = number.coeff(symbol), number.coeff(symbol, 0)
        if times.is_Integer and number == times * symbol + plus:
            return symbol, origin._replace(times=int(times), plus=plus)
    return None


def numbers_of(call: Call) -> list[Any]:
    """The numbers among a call's arguments that are known when the graph runs, in order."""
    return list(filter(varies, leaves((call.args, call.kwargs))))


def _shown(value: Any) -> str:
    if isinstance(value, Buffer):
        return value.name
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)
