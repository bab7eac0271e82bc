"""A backward pass through a graph, which may begin with some of its results, and find some of the
saved tensors gone.

In eager PyTorch a pass needs what was saved for the operators on its own way: what others need may
have been changed, or freed by an earlier pass.  The one node that AOTAutograd makes of a graph
saves, compares and frees all at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple

import torch

from dynacap.backends.native.aten.flows import Reached, tangents_of
from dynacap.backends.native.aten.parts import Backward
from dynacap.fxlite import Graph

_CHANGED = "modified by an inplace operation"


class _Plan(NamedTuple):
    """What a pass that begins with some tangents does about what was saved."""

    needed: Set[int]  # which saved tensors it reads
    may_be: bool  # whether what it needs is there, after those that were before it
    later: Set[int]  # what passes need that may come after it


class Passes:
    """The backward passes through the calls of one graph."""

    def __init__(self, graph: Graph, backward: Backward) -> None:
        self._reached, self._backward = Reached(graph), backward
        self._plans: dict[tuple[int, int], _Plan] = {}

    def run(self, once: Any, ctx: Any, metadata: Any, grads: list[Any]) -> Any:
        """What ``once(ctx, grads)`` gives, and None for arguments that no gradient reaches."""
        places = [place for place, grad in enumerate(grads) if grad is not None]
        if not places:
            return (None,) * len(ctx.needs_input_grad)
        tangents = tangents_of(metadata)
        present = sum(1 << i for i, place in enumerate(tangents) if grads[place] is not None)
        given = self._given(ctx, metadata, present, (1 << len(tangents)) - 1)
        result = once(given, grads)  # which empties the list
        return self._reached.only(result, places, metadata)

    def _given(self, ctx: Any, metadata: Any, present: int, every: int) -> Any:
        """The node as a pass with these tangents sees it; what is kept for others is noted."""
        passed, kept = getattr(ctx, "dynacap_passed", 0), getattr(ctx, "dynacap_kept", None)
        ends = not torch._C._autograd._get_current_graph_task_keep_graph()
        if present == every and not passed:
            if ends:
                ctx.dynacap_passed, ctx.dynacap_call = every, None
            return ctx
        key = (present, passed)
        if key not in self._plans:
            self._plans[key] = self._plan(present, passed, every, metadata)
        plan = self._plans[key]
        saved: Sequence[Any] | None = None
        if not passed:
            saved = _saved(ctx, plan.needed)
        elif plan.may_be:  # else torch says what is missing
            count = self._backward.first - metadata.num_symints_saved_for_bw
            saved = _unpacked(kept or [None] * count, plan.needed)
        if ends:
            if not plan.later:
                kept = ctx.dynacap_call = None  # as the tensors saved for this pass
            elif not passed:
                kept = _kept(ctx, plan.later)
            ctx.dynacap_passed, ctx.dynacap_kept = passed | present, kept
        return ctx if saved is None else _Node(ctx, saved)

    def _plan(self, present: int, passed: int, every: int, metadata: Any) -> _Plan:
        numbers, end = metadata.num_symints_saved_for_bw, self._backward.first
        needs = [{i for i in each if i >= numbers} for each in self._backward.needs()]
        parts = [self._reached.part(place, metadata) for place in tangents_of(metadata)]

        def of(tangents: int) -> Set[int]:
            return {place for i in _bits(tangents) for place in needs[i]}

        def is_free(tangent: int, gone: int) -> bool:
            """Whether passes with other tangents leave what this one needs, as in eager PyTorch."""
            return all(
                needs[tangent].isdisjoint(needs[other])
                or (parts[tangent] and parts[other] and not parts[tangent] & parts[other])
                for other in _bits(gone)
            )

        def saved(places: Iterable[int]) -> Set[int]:
            return {place - numbers for place in places if numbers <= place < end}

        takes = saved(self._backward.takes(tuple(_bits(every & ~present))))
        may_be = all(is_free(each, passed) for each in _bits(present)) and takes <= saved(
            of(present)
        )
        gone = passed | present
        rest = (each for each in _bits(every & ~gone) if is_free(each, gone))
        return _Plan(takes, may_be, saved(of(sum(1 << each for each in rest))))


def _bits(number: int) -> Iterator[int]:
    return (i for i in range(number.bit_length()) if number >> i & 1)


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


def _saved(ctx: Any, needed: Set[int]) -> Sequence[Any]:
    """What was saved, which must be unchanged where it is needed."""
    try:
        saved: Sequence[Any] = ctx.saved_tensors
    except RuntimeError as error:
        if _CHANGED not in str(error):
            raise
        every = enumerate(ctx._raw_saved_tensors)
        saved = [each.unpack() if place in needed else None for place, each in every]
    return saved


def _kept(ctx: Any, needed: Set[int]) -> list[Any]:
    """What was saved and is needed later, with its version, or the error that it is changed."""
    kept: list[Any] = []
    for place, each in enumerate(ctx._raw_saved_tensors):
        try:
            tensor = each.unpack().detach() if place in needed else None
            kept.append(None if tensor is None else (tensor, tensor._version))
        except RuntimeError as error:
            kept.append((None, error))
    return kept


def _unpacked(kept: Sequence[Any], needed: Set[int]) -> list[Any]:
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
