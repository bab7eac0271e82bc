"""What an operation costs, roughly, in additions: enough to choose storing or recomputing."""

from __future__ import annotations

from dynacap.backends.native.loops.expression import (
    Expression,
    Load,
    Op,
    below,
    is_rounded,
    walk,
)
from dynacap.backends.native.loops.program import Buffer

# Vectorised float32 on a recent x86; what is not named costs as much as an addition.
_COSTS = {
    "cast": 0.5, "div": 3, "sqrt": 4, "rsqrt": 6, "reciprocal": 3, "remainder": 8, "fmod": 8,
    "floordiv": 8, "exp": 10, "sigmoid": 14, "tanh": 14, "erf": 16, "log": 12, "log1p": 16,
    "expm1": 14, "flushed_exp": 9, "falling_exp": 8, "sin": 16, "cos": 16, "pow": 30,
}  # fmt: skip
_UNKNOWN = 20.0
_SIMPLE = frozenset({
    "add", "sub", "mul", "neg", "abs", "maximum", "minimum", "where", "eq", "ne", "lt", "le", "gt",
    "ge", "and", "or", "xor", "not", "isnan", "isinf", "floor", "ceil", "trunc", "round", "sign",
    "shl", "shr", "square",
})  # fmt: skip

CHEAP = 6.0  # recomputed rather than stored
LARGE = 1 << 18  # elements
TRIVIAL = 1.0  # recomputed in every reader, wherever it is


def large(buffer: Buffer) -> bool:
    """Whether reading it again costs memory's time, and not a cache's."""
    return isinstance(buffer.numel, int) and buffer.numel >= LARGE


def cost(*roots: Expression) -> float:
    """The cost of computing expressions once, each load one unit."""
    return sum(map(cost_of, walk(*roots)))


def cost_of(node: Expression) -> float:
    """The cost of one operation, or of a load."""
    if isinstance(node, Op):
        if node.name == "cast" and node.dtype is node.args[0].dtype and is_rounded(node.args[0]):
            return 0.0
        return _COSTS.get(node.name, 1.0 if node.name in _SIMPLE else _UNKNOWN)
    return 1.0 if isinstance(node, Load) else 0.0


def hardest(root: Expression) -> float:
    """The cost of the one operation that costs most."""
    return max(map(cost_of, walk(root)), default=0)


def longest(*roots: Expression) -> float:
    """The cost of what comes one after the other, each operation with what the one before gave."""
    waited: dict[int, float] = {}
    for node in walk(*roots):
        before = max((waited.get(id(each), 0.0) for each in below(node)), default=0.0)
        waited[id(node)] = before + cost_of(node)
    return max(waited.values(), default=0.0)


def heavy(root: Expression) -> float:
    """The cost of the operations alone."""
    return sum(cost_of(node) for node in walk(root) if isinstance(node, Op))
