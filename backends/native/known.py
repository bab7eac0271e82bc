"""What is noted of a graph, so that a later process takes its library up without tracing it."""

from __future__ import annotations

from typing import Any

from dynacap.backends.native.aten.trace import Note
from dynacap.backends.native.c.program import Source
from dynacap.backends.native.loops.program import Buffer, Number, Program, is_symbolic

_PLAIN = (bool, int, float, str, type(None))


def kinds(program: Program) -> tuple[bytes, tuple[Any, ...]]:
    """What a library takes, and what it gives, as the extension is told."""
    inputs = "".join(map(_input_kind, program.inputs))
    return inputs.encode(), tuple(map(_output_kind, program.outputs))


def _input_kind(value: Any) -> str:
    """A tensor, a float, or a size."""
    return "t" if isinstance(value, Buffer) else "f" if isinstance(value, Number) else "s"


def _output_kind(value: Any) -> Any:
    """A tensor (None), a number (its type), or a constant (in a tuple)."""
    if isinstance(value, Buffer):
        return None
    if isinstance(value, Number):
        return float
    return int if is_symbolic(value) else (value,)


def part_of(program: Program, source: Source, library: str) -> Note | None:
    """What to note of one library; None for what holds more than a library and plain values."""
    inputs, outputs = kinds(program)
    if source.constants or "dynacap_python(" in source.text or {int, float} & {*outputs}:
        return None
    if not all(kind is None or type(kind[0]) in _PLAIN for kind in outputs):
        return None
    return {"library": library, "inputs": inputs.decode(), "outputs": outputs}


def noted_kinds(part: Note) -> tuple[bytes, tuple[Any, ...]]:
    """The kinds again."""
    outputs = tuple(None if kind is None else tuple(kind) for kind in part["outputs"])
    return part["inputs"].encode(), outputs
