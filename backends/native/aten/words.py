"""Torch's record of how a graph's results lie to its arguments, as JSON and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._functorch._aot_autograd.functional_utils import ViewMetaSequence
from torch._functorch._aot_autograd.schemas import (
    InputAliasInfo,
    MemoryFormatMeta,
    OutputAliasInfo,
    OutputType,
    PlainTensorMeta,
    ViewAndMutationMeta,
)

_views: Any = torch._C._functionalization  # a class for each kind of view
_RECORDS = {
    kind.__name__: kind
    for kind in (
        *(ViewAndMutationMeta, InputAliasInfo, OutputAliasInfo),
        *(PlainTensorMeta, MemoryFormatMeta),
    )
}
_FORMATS = {
    str(each): each
    for each in (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
}
_RESULTS = {kind.__name__: kind for kind in (torch.Tensor, int, float, bool, type(None))}
_PLAIN = (bool, int, str, type(None))


class NoWords(Exception):
    """Something that is not kept on disk."""


def in_words(value: Any) -> Any:
    """A value as JSON has it: lists, and dicts of one item that say what follows."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return list(map(in_words, value))
    if isinstance(value, type):
        return {"type": _name_of_result(value)}
    if _RECORDS.get(kind.__name__) is kind:
        return {kind.__name__: {name: in_words(getattr(value, name)) for name in _fields(kind)}}
    if kind not in _WRITTEN or (kind is dict and value):
        raise NoWords
    word, write = _WRITTEN[kind]
    return {word: write(value)}


def from_words(value: Any) -> Any:
    """The value again."""
    if isinstance(value, list):
        return list(map(from_words, value))
    if not isinstance(value, dict):
        return value
    ((word, content),) = value.items()
    if word in _RECORDS:
        return _RECORDS[word](**{name: from_words(item) for name, item in content.items()})
    return _READ[word](content)


def _fields(kind: Any) -> Sequence[str]:
    return [each.name for each in dataclasses.fields(kind) if each.init]


def _name_of_result(kind: type) -> str:
    if issubclass(kind, torch.Tensor):
        return torch.Tensor.__name__
    if _RESULTS.get(kind.__name__) is not kind:
        raise NoWords
    return kind.__name__


def _written_views(sequence: Any) -> list[Any]:
    for view in sequence.sequence:
        if getattr(_views, type(view).__name__, None) is not type(view):
            raise NoWords
    return [[type(view).__name__, in_words(view.as_tuple())] for view in sequence.sequence]


def _read_views(content: Sequence[Any]) -> Any:
    made = ViewMetaSequence.__new__(ViewMetaSequence)
    made.sequence = [getattr(_views, name)(from_words(items)) for name, items in content]
    return made


def _items(value: Any) -> list[Any]:
    return list(map(in_words, value))


_WRITTEN: dict[type, tuple[str, Callable[[Any], Any]]] = {
    tuple: ("tuple", _items),
    torch.Size: ("tuple", _items),
    set: ("set", _items),
    dict: ("nothing", _items),
    OutputType: ("output", lambda value: value.name),
    torch.memory_format: ("format", str),
    _views.InverseReturnMode: ("inverse", lambda value: value.name),
    ViewMetaSequence: ("views", _written_views),
}
_READ: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda items: tuple(map(from_words, items)),
    "set": lambda items: set(map(from_words, items)),
    "nothing": lambda _: {},
    "output": OutputType.__getitem__,
    "format": _FORMATS.__getitem__,
    "inverse": _views.InverseReturnMode.__members__.__getitem__,
    "type": _RESULTS.__getitem__,
    "views": _read_views,
}
