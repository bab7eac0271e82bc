"""What is noted of a graph, so that a later process takes its library up without tracing it."""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._sympy.symbol import SymT, make_symbol

from dynacap.backends.native.aten.trace import Note
from dynacap.backends.native.c.program import Source
from dynacap.backends.native.loops.program import Buffer, Call, Number, Program, is_symbolic

_PLAIN = (bool, int, float, str, type(None))
_NUMBERS = (int, float)
_NUMBERS_BY_NAME = {kind.__name__: kind for kind in _NUMBERS}
_OF_TORCH = (torch.dtype, torch.layout, torch.memory_format)
_MOST = 4096  # elements of a constant that is kept in a note


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
    """What to note of one library; None for what holds more than there are words for."""
    inputs, outputs = kinds(program)
    try:
        held = {
            "outputs": list(map(_output_words, outputs)),
            "steps": _steps(source),
            "constants": [_tensor_words(buffer.value) for buffer in source.constants],
        }
    except _NoWords:
        return None
    return {"library": library, "inputs": inputs.decode(), **held}


def noted_kinds(part: Note) -> tuple[bytes, tuple[Any, ...]]:
    """The kinds again."""
    return part["inputs"].encode(), tuple(map(_output, part["outputs"]))


def noted_calls(part: Note) -> dict[int, Call]:
    """The calls that are made from Python, as far as their steps ask for them."""
    return {index: _call(words) for index, words in part["steps"]}


def noted_constants(part: Note) -> tuple[torch.Tensor, ...]:
    """The constants again."""
    return tuple(map(_tensor, part["constants"]))


class _NoWords(Exception):
    """Something that is not kept on disk."""


def _output_words(kind: Any) -> Any:
    if kind in _NUMBERS:
        return kind.__name__
    if kind is not None and type(kind[0]) not in _PLAIN:
        raise _NoWords
    return kind


def _output(words: Any) -> Any:
    return tuple(words) if isinstance(words, list) else _NUMBERS_BY_NAME.get(words)


def _steps(source: Source) -> list[Any]:
    used = map(int, re.findall(r"dynacap_python\(graph, (\d+)", source.text))
    return [[index, _call_words(source.calls[index])] for index in sorted(set(used))]


def _call_words(call: Call) -> Any:
    name = str(call.target)
    if not name.startswith("aten."):
        raise _NoWords
    return {"target": name, "args": _words(call.args), "kwargs": _words(call.kwargs)}


def _call(words: Any) -> Call:
    _, packet, overload = words["target"].split(".")
    target = getattr(getattr(torch.ops.aten, packet), overload)
    return Call(target, tuple(_value(words["args"])), _value(words["kwargs"]), ())


def _words(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return list(map(_words, value))
    if kind is dict:
        return {"dict": {name: _words(item) for name, item in value.items()}}
    if kind is Buffer:
        return {"given": "tensor"}
    if kind is Number:
        return {"given": "float"}
    if is_symbolic(value):
        return {"given": "size"}
    if kind is torch.device:
        return {"device": str(value)}
    if kind in _OF_TORCH:
        return {"torch": str(value).removeprefix("torch.")}
    raise _NoWords


def _value(words: Any) -> Any:
    if isinstance(words, list):
        return list(map(_value, words))
    if not isinstance(words, dict):
        return words
    ((word, content),) = words.items()
    return _READ[word](content)


# A step only has to know where something is given, and what kind of thing.
_GIVEN = {
    "tensor": Buffer("given", torch.float32, (), ()),
    "float": Number("given"),
    "size": make_symbol(SymT.SIZE, 0),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "dict": lambda content: {name: _value(item) for name, item in content.items()},
    "device": torch.device,
    "given": _GIVEN.__getitem__,
    "torch": functools.partial(getattr, torch),
}


def _tensor_words(value: Any) -> Any:
    plain = type(value) is torch.Tensor and not (value.is_conj() or value.is_neg())
    if not plain or value.numel() > _MOST or not value.is_contiguous():
        raise _NoWords
    with _disable_current_modes():  # AOTAutograd's, on fakes
        content = bytes(value.detach().view(-1).view(torch.uint8).tolist())
    dtype = str(value.dtype).removeprefix("torch.")
    return [dtype, list(value.shape), base64.b64encode(content).decode()]


def _tensor(words: Any) -> torch.Tensor:
    dtype, shape, content = words
    made = torch.empty(shape, dtype=getattr(torch, dtype))
    content = bytearray(base64.b64decode(content))
    if content:
        made.view(-1).view(torch.uint8).copy_(torch.frombuffer(content, dtype=torch.uint8))
    return made
