"""A backward pass through a graph, which may begin with some of its results, and find some of the
saved tensors gone.

In eager PyTorch a pass needs what was saved for the operators on its own way: what others need may
have been changed, or freed by an earlier pass.  The one node that AOTAutograd makes of a graph
saves, compares and frees all at once.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import torch

from dynacap.backends.native.aten.flows import Reached, tangents_of
from dynacap.backends.native.aten.parts import Backward
from dynacap.fxlite import Graph

_CHANGED = "modified by an inplace operation"


class Passes:
    """The backward passes through the calls of one graph."""

    def __init__(self, graph: Graph, backward: Backward) -> None:
        self._reached, self._backward = Reached(graph), backward

    def run(self, once: Any, ctx: Any, metadata: Any, grads: list[Any]) -> Any:
        """What ``once(ctx, grads)`` gives, and None for arguments that no gradient reaches."""
        places = [place for place, grad in enumerate(grads) if grad is not None]
        if not places:
            return (None,) * len(ctx.needs_input_grad)
        part = self._reached.part(places, metadata)
        tangents = tangents_of(metadata)
        given = self._given(ctx, metadata, part, [grads[place] is None for place in tangents])
        result = once(given, grads)  # which empties the list
        return self._reached.only(result, places, metadata)

    def _given(self, ctx: Any, metadata: Any, part: int, missing: Sequence[bool]) -> Any:
        """The node as a pass without these tangents sees it; what is kept for others is noted."""
        without = tuple(i for i, each in enumerate(missing) if each)
        freed, kept = getattr(ctx, "dynacap_freed", 0), getattr(ctx, "dynacap_kept", None)
        saved: Sequence[Any] | None = None
        if kept is not None and part and not part & freed:  # else torch says what is missing
            saved = _unpacked(kept, self._needed(without, metadata))
        elif without:
            saved = _saved(ctx, self._needed(without, metadata))
        if not torch._C._autograd._get_current_graph_task_keep_graph():
            freed |= part
            if part and without and self._reached.has_more_than(freed):
                rest = tuple(i for i, each in enumerate(missing) if not each)
                kept = _kept(ctx, self._needed(rest, metadata)) if kept is None else kept
            else:
                kept = ctx.dynacap_call = None  # as the tensors saved for this pass
            ctx.dynacap_freed, ctx.dynacap_kept = freed, kept
        return ctx if saved is None else _Node(ctx, saved)

    def _needed(self, without: tuple[int, ...], metadata: Any) -> Container[int]:
        """Which saved tensors a pass without these tangents reads."""
        numbers = metadata.num_symints_saved_for_bw
        return {place - numbers for place in self._backward.takes(without)}


class _Node:
    """A node of autograd whose saved tensors are these, which it is asked for once."""

    def __init__(self, ctx: Any, saved: Sequence[Any]) -> None:
        self._ctx, self._saved = ctx, saved

    @property
    def saved_tensors(self) -> Sequence[Any]:
        saved, self._saved = self._saved, ()
        return saved

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)


def _saved(ctx: Any, needed: Container[int]) -> Sequence[Any]:
    """What was saved, which must be unchanged where it is needed."""
    try:
        saved: Sequence[Any] = ctx.saved_tensors
    except RuntimeError as error:
        if _CHANGED not in str(error):
            raise
        every = enumerate(ctx._raw_saved_tensors)
        saved = [each.unpack() if place in needed else None for place, each in every]
    return saved


def _kept(ctx: Any, needed: Container[int]) -> list[Any]:
    """What was saved and is needed later, with its version, or the error that it is changed."""
    kept: list[Any] = []
    for place, each in enumerate(ctx._raw_saved_tensors):
        try:
            tensor = each.unpack().detach() if place in needed else None
            kept.append(None if tensor is None else (tensor, tensor._version))
        except RuntimeError as error:
            kept.append((None, error))
    return kept


def _unpacked(kept: Sequence[Any], needed: Container[int]) -> list[Any]:
    found: list[Any] = []
    for place, each in enumerate(kept):
        tensor, version = each if each is not None and place in needed else (None, 0)
        if isinstance(version, RuntimeError):
            raise version
        if tensor is not None and tensor._version != version:
            raise RuntimeError(
                f"one of the variables needed for gradient computation has been {_CHANGED}: what a"
                f" compiled graph saved is at version {tensor._version}; expected version"
                f" {version} instead"
            )
        found.append(tensor)
    return found
