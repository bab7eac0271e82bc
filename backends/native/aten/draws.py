"""Operators that give something else each time, which AOTAutograd must not take for computed twice.

Torch merges equal calls of a graph that has a backward pass, but for those on a list of random
operators, which lacks many (``randn_like``, ``exponential``): two draws would give one and the same
numbers.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch._functorch import compile_utils

from dynacap.fxlite.risks import OWN_NAMESPACES


class _NotMerged(list[Any]):
    """Torch's list, with all operators that torch marks as random, and those that are not torch's:
    nothing is known of them.
    """

    def __contains__(self, target: object) -> bool:
        return super().__contains__(target) or _may_differ(target)


@functools.cache
def _may_differ(target: object) -> bool:
    if not isinstance(target, torch._ops.OpOverloadPacket):
        return False
    operators = [getattr(target, name) for name in target.overloads()]
    return any(
        torch.Tag.nondeterministic_seeded in each.tags or each.namespace not in OWN_NAMESPACES
        for each in operators
    )


def keep_apart() -> None:
    """Have torch merge none of these."""
    known: Any = getattr(compile_utils, "rand_ops", None)
    if isinstance(known, list) and not isinstance(known, _NotMerged):
        compile_utils.rand_ops = _NotMerged(known)
