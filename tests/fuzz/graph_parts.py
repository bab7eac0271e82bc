"""Operations of generated graphs that pick, write and order elements, and layers of networks."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

if TYPE_CHECKING:
    from dynacap.fxlite import Node
    from tests.fuzz.graphs import GraphWriter

ORDERING: tuple[Callable[..., Any], ...] = (
    torch.tril, torch.triu, torch.fliplr, torch.msort, torch.ravel, torch.atleast_2d,
)  # fmt: skip
WHOLE: tuple[Callable[..., Any], ...] = (
    torch.floor_divide, torch.remainder, torch.fmod, torch.bitwise_left_shift,
    torch.bitwise_right_shift, torch.bitwise_and, torch.pow,
)  # fmt: skip
NUMBERS = (1, 2, 3, -1, -3, 0.5, 7)
EXPONENTS = (0, 1, 2, 3, -1, 0.5, -0.5, 1.5, -2)


def slicing(writer: GraphWriter) -> None:
    """Part of a value, counted from either end, perhaps beyond it."""
    exact = not writer.choose(3)
    node = writer._node(exact=exact)
    writer.add(operator.getitem, node, _key(writer, node), exact=exact)


def writing(writer: GraphWriter) -> None:
    """A number, or another value, written to a part of a value."""
    node = writer._node()
    if node in writer.exact:
        return
    value = writer._node() if writer.choose(2) else writer._any_of((0, 0.5, -2))
    writer.add(operator.setitem, node, _key(writer, node), value)


def _key(writer: GraphWriter, node: Node) -> Any:
    parts = [_part(writer, size) for size in writer.values[node].shape[: 1 + writer.choose(2)]]
    if not writer.choose(4):
        parts.insert(writer.choose(len(parts) + 1), writer._any_of((None, ...)))
    return tuple(parts) if len(parts) != 1 or writer.choose(2) else parts[0]


def _part(writer: GraphWriter, size: int) -> Any:
    if not writer.choose(3):
        return writer.choose(2 * size + 1) - size
    ends = [writer.choose(2 * size + 7) - size - 3 if writer.choose(3) else None for _ in range(2)]
    return slice(*ends, writer._any_of((None, None, 1, 2, 3)))


def gathering(writer: GraphWriter) -> None:
    """Elements by whole numbers that the graph computes."""
    node = writer._node()
    value = writer.values[node]
    if not value.dim():
        return
    dim = writer._dim(node) % value.dim()
    numbers = writer._any_of([n for n in writer.exact if _is_whole(writer.values[n])] or [None])
    if numbers is None or not value.shape[dim]:
        return
    index = writer.add(torch.remainder, numbers, value.shape[dim], exact=True)
    if index is None:
        return
    if writer.choose(2):
        writer.add(operator.getitem, node, (*(slice(None),) * dim, index))
    elif writer.values[index].dim() == 1:
        writer.add(torch.index_select, node, dim, index)
    else:
        writer.add(torch.gather, node, dim, index)


def _is_whole(value: torch.Tensor) -> bool:
    return value.dtype in (torch.int64, torch.int32)


def ordering(writer: GraphWriter) -> None:
    """Elements in another order, repeated, or beside others."""
    node, dim = writer._node(), 0
    dim = writer._dim(node)
    choices: tuple[tuple[Any, ...], ...] = (
        (writer._any_of(ORDERING), node),
        (torch.roll, node, writer.choose(5) - 2, dim),
        (torch.cumsum, node, dim), (torch.cumprod, node, dim), (torch.diff, node, 1, dim),
        (torch.repeat_interleave, node, 2, dim), (torch.movedim, node, dim, 0),
        (F.pad, node, [writer.choose(4) - 1 for _ in range(2)]),
        ("unfold", node, dim, 2, 1), ("repeat", node, *(1,) * writer.values[node].dim(), 2),
        ("masked_fill", node, writer._node(exact=True), 0.5),
        (torch.select, node, dim, -1), (torch.addcmul, node, writer._node(), writer._node()),
        (torch.lerp, node, writer._node(), 0.3), (torch.nan_to_num, node), ("detach", node),
    )  # fmt: skip
    writer.add(*writer._any_of(choices))


def whole(writer: GraphWriter) -> None:
    """Arithmetic whose results jump, of exact values by a number."""
    node = writer._node(exact=True)
    writer.add(writer._any_of(WHOLE), node, writer._any_of(NUMBERS), exact=True)


def powers(writer: GraphWriter) -> None:
    """A value raised to a number."""
    writer.add(torch.pow, writer._node(), writer._any_of(EXPONENTS))


def layers(writer: GraphWriter) -> None:
    """What networks are made of."""
    node = writer._node()
    value = writer.values[node]
    if value.dim() < 2 or not value.is_floating_point():
        return
    channels = value.shape[1]
    choices: tuple[tuple[Any, ...], ...] = (
        (F.group_norm, node, channels), (F.normalize, node), (F.softmin, node, 1),
        (F.mse_loss, node, writer._node()), (F.l1_loss, node, writer._node()),
        (F.batch_norm, node, None, None, None, None, True), (F.glu, node, writer._dim(node)),
        (F.smooth_l1_loss, node, writer._node()), (F.avg_pool1d, node, 2), (F.hardshrink, node),
        (F.cosine_similarity, node, writer._node()), (F.max_pool1d, node, 2), (F.selu, node),
        (F.dropout, node, 0.5, False), (F.linear, node, writer._node()), (F.rms_norm, node, [1]),
    )  # fmt: skip
    writer.add(*writer._any_of(choices))


KINDS: tuple[Callable[[Any], None], ...] = (
    slicing, slicing, writing, gathering, ordering, ordering, whole, powers, layers,
)  # fmt: skip
