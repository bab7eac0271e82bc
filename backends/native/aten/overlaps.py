"""Writes that a functional graph would get right where eager PyTorch refuses them, or gives what
hangs on the order of elements: into memory that the same call reads, or several times into one
element.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import torch

from dynacap.fxlite import Graph, Node
from dynacap.fxlite.effects import mutates
from dynacap.fxlite.node import iter_nodes, map_arg
from dynacap.fxlite.printer import example_value
from dynacap.fxlite.risks import plain_name, storage_of, written_by

_LARGE = 1 << 24  # elements between the first and the last, beyond which nobody looks
_PLACE_BY_PLACE = frozenset({operator.setitem, operator.iadd, operator.isub, operator.imul})


def check_overlaps(graph: Graph) -> None:
    """NotImplementedError for a graph with such a write."""
    given: dict[int | None, list[Node]] = {}
    for node in graph.placeholders:
        given.setdefault(storage_of(node), []).append(node)
    for node in graph.nodes:
        if not node.op.startswith("call_") or not mutates(node):
            continue
        if _crosses(node):
            raise NotImplementedError("tensors of a list are changed by one another")
        for written, place in _places(node):
            outside = given.get(storage_of(written), ()) if storage_of(written) else ()
            seen = [place, *map(example_value, outside)]
            if any(map(meets_itself, seen)) or any(_clashes(node, place, x) for x in _read(node)):
                what = (
                    f"{plain_name(node.target)} writes to elements that it reads, or twice to one"
                )
                raise NotImplementedError(what)


def _crosses(node: Node) -> bool:
    """Whether a call on lists changes one tensor by another of those that it changes, or twice."""
    changed = node.args[0] if node.args else None
    if not isinstance(changed, list | tuple):
        return False
    places = [storage_of(each) for each in changed if isinstance(each, Node)]
    if len(set(places)) < len(places):
        return True
    for others in (*node.args[1:], *node.kwargs.values()):
        pairs = zip(changed, others, strict=False) if isinstance(others, list | tuple) else ()
        if any(x is not y and isinstance(y, Node) and storage_of(y) in places for x, y in pairs):
            return True
    return False


def _places(node: Node) -> Iterator[tuple[Node, torch.Tensor]]:
    """The arguments that a call writes to, and what it writes there."""
    for written in written_by(node):
        value = example_value(written)
        if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
            continue
        if node.target in (operator.setitem, "__setitem__") and written is node.args[0]:
            value = _part(value, node.args[1])
        yield written, value


def _part(value: torch.Tensor, key: Any) -> torch.Tensor:
    """What an index names; all where tensors name it."""
    key = map_arg(key, example_value)
    parts = key if isinstance(key, tuple) else (key,)
    if any(not isinstance(part, int | slice | None | type(...)) for part in parts):
        return value
    part: torch.Tensor = value.detach()[key]
    return part


def _read(node: Node) -> Iterator[torch.Tensor]:
    """What a call reads besides the tensors that it writes to."""
    written = set(written_by(node))
    others = node.args if "out" in node.kwargs else node.args[1:]
    for each in iter_nodes((others, [v for name, v in node.kwargs.items() if name != "out"])):
        value = example_value(each)
        known = len(written) == 1 or each not in written  # else any of them may be meant
        if known and isinstance(value, torch.Tensor):
            yield value


def _clashes(node: Node, place: torch.Tensor, read: torch.Tensor) -> bool:
    """Whether a call reads elements that it writes, other than each right before it is written."""
    if read.layout is not torch.strided or not _one_storage(place, read):
        return False
    if _layout(place) == _layout(read):
        return not _is_pointwise(node)
    if not (_is_known(place) and _is_known(read)):
        return True
    start = int(min(place.storage_offset(), read.storage_offset()))
    end = max(_end(place), _end(read))
    if end - start > _LARGE:
        return True
    cells = torch.zeros(end - start, dtype=torch.bool)
    _seen(cells, place, start).fill_(True)
    return bool(_seen(cells, read, start).any())


def meets_itself(value: torch.Tensor) -> bool:
    """Whether two elements of a tensor are one."""
    pairs = [pair for pair in zip(value.stride(), value.shape, strict=True) if pair[1] != 1]
    if not _is_known(value):
        return any(type(stride) is int and stride == 0 for stride, _ in pairs)
    reach: int = 0
    for stride, size in sorted(pairs):
        if stride <= reach:
            break
        reach += stride * (size - 1)
    else:
        return False  # each stride steps over all that the smaller ones reach
    start, count = int(value.storage_offset()), int(value.numel())
    span = _end(value) - start
    if span < count or span > _LARGE:
        return count > 0
    cells = torch.zeros(span, dtype=torch.bool)
    _seen(cells, value, start).fill_(True)
    return int(cells.sum()) < count


def _one_storage(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(one.untyped_storage()._cdata == other.untyped_storage()._cdata)


def _seen(cells: torch.Tensor, value: torch.Tensor, start: int) -> torch.Tensor:
    return cells.as_strided(value.shape, value.stride(), value.storage_offset() - start)


def _end(value: torch.Tensor) -> int:
    start = int(value.storage_offset())
    if value.numel() == 0:
        return start
    steps = zip(value.stride(), value.shape, strict=True)
    return start + 1 + sum(stride * (size - 1) for stride, size in steps)


def _layout(value: torch.Tensor) -> tuple[Any, ...]:
    return (*value.shape, *value.stride(), value.storage_offset(), value.dtype)


def _is_known(value: torch.Tensor) -> bool:
    return all(type(number) is int for number in _layout(value)[:-1])


def _is_pointwise(node: Node) -> bool:
    if node.target in _PLACE_BY_PLACE or plain_name(node.target) in ("copy", "__setitem__"):
        return True
    packet: Any = getattr(torch.ops.aten, plain_name(node.target), None)
    overloads: Any = getattr(packet, "overloads", list)()
    return any(torch.Tag.pointwise in getattr(packet, name).tags for name in overloads)
