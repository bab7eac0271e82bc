"""Version counters of arguments: eager PyTorch counts each change, a compiled graph writes once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

Run = Callable[..., Any]
Counts = Sequence[tuple[int, int]]  # the position of an argument, and how often it is changed

_set_versions = torch._C._autograd._unsafe_set_version_counter


def counts_of(graph: torch.fx.Graph) -> Counts:
    """How often each argument was changed on its stand-in, which began at 0: not at all through
    ``.data``; once counts itself."""
    found = ((at, node.meta["val"]._version) for at, node in _changed(graph))
    return [(at, count) for at, count in found if count != 1]


def counted_by_autograd(graph: torch.fx.Graph, times: Mapping[int, int]) -> Counts:
    """The same for a graph whose caller, AOTAutograd's, counts a change of each that is changed;
    ``times``: how often the captured graph changes them."""
    return [(at, max(times.get(at, 1) - 1, 0)) for at, _ in _changed(graph)]


def _changed(graph: torch.fx.Graph) -> Iterator[tuple[int, torch.fx.Node]]:
    """The arguments that a graph writes to, with their positions."""
    for at, node in enumerate(graph.find_nodes(op="placeholder")):
        writes = (each for each in node.users if each.target is torch.ops.aten.copy_.default)
        if any(each.args[0] is node for each in writes):
            yield at, node


def counted(run: Run, counts: Counts) -> Run:
    """``run``, after which the arguments' counters stand where eager leaves them."""
    if not counts:
        return run

    def call(*args: Any) -> Any:
        watched = [(args[at], count) for at, count in counts if not args[at].is_inference()]
        versions = tuple(tensor._version + count for tensor, count in watched)
        outputs = run(*args)
        _set_versions(tuple(tensor for tensor, _ in watched), versions)
        return outputs

    return call
