"""Operations on symbolic sizes, by way of numbers that stand for them.

Torch's own way asks its algebra about every size and stride of a result: a ``linear`` takes 4 ms.
The operations named here multiply and divide sizes, and compare them, and do nothing else with
them.  So each symbol is exchanged for a prime number of its own, the operation is foretold for the
numbers as for any others (``meta.predicted``), and what comes out is taken apart into its primes
again.  Two products of primes are equal only if the products of symbols are, whatever these stand
for.  Sizes that come out as different may still be equal: an operation that fails on numbers is
torch's to run, which guards on what it asks.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from dynacap.backends.fakes.memo import Kept, Look

# What asks more of sizes: sums (cat), parts (chunk), how many there are (unbind), bounds (select).
NOT_UNIFORM = frozenset("cat chunk getitem narrow select split unbind".split())
TAKES_SIZES = frozenset("expand reshape unflatten view".split())
_PRIMES = (10_007, 10_009, 10_037, 10_039, 10_061, 10_067)

_CONTAINERS = frozenset({list, tuple, torch.Size})
_PLAIN = frozenset(
    {bool, int, float, complex, str, type(None), torch.dtype, torch.device, torch.memory_format}
)

_empty_strided = torch.empty_strided
Foretell = Callable[[Any, Any, dict[str, Any]], Kept | None]


class Unfit(Exception):
    """An operand of a kind that is left to the fake mode; never leaves this folder."""


def has_symbols(value: Any) -> bool:
    """Whether an operand is, or holds, a size that varies, or a tensor with one."""
    kind = type(value)
    if kind is FakeTensor:
        return bool(value._has_symbolic_sizes_strides)
    if kind in _CONTAINERS:
        return any(map(has_symbols, value))
    if kind is slice:
        return any(map(has_symbols, (value.start, value.stop, value.step)))
    return kind is torch.SymInt


def foretold(
    foretell: Foretell, name: str, target: Any, args: Any, kwargs: dict[str, Any]
) -> Kept | None:
    """What ``foretell(target, args, kwargs)`` says of numbers in the place of symbols."""
    if name in NOT_UNIFORM:
        return None
    numbers = _Numbers(takes_sizes=name in TAKES_SIZES)
    try:
        kept = foretell(
            target, numbers.of(args), {key: numbers.of(value) for key, value in kwargs.items()}
        )
        return None if kept is None else kept._replace(looks=tuple(map(numbers.back, kept.looks)))
    except (Unfit, RuntimeError):  # the latter for more elements than can be counted
        return None


class _Numbers:
    """The numbers that stand for the symbols of one call's operands."""

    def __init__(self, *, takes_sizes: bool) -> None:
        self._takes_sizes = takes_sizes
        self._by_expression: dict[Any, int] = {}
        self._sizes: dict[int, Any] = {}  # what a number stands for: primes, and products met
        self._fakes: dict[int, torch.Tensor] = {}

    def of(self, value: Any) -> Any:
        """An operand with numbers for symbols."""
        kind = type(value)
        if kind is FakeTensor:
            return self._fake(value)
        if kind in _CONTAINERS:
            return kind(map(self.of, value))
        if kind is torch.SymInt and self._takes_sizes:
            return self._number(value)
        if kind not in _PLAIN:
            raise Unfit
        return value

    def _fake(self, fake: FakeTensor) -> torch.Tensor:
        if id(fake) in self._fakes:
            return self._fakes[id(fake)]
        shape, stride = ([*map(self._number, sizes)] for sizes in (fake.shape, fake.stride()))
        meta = _empty_strided(shape, stride, dtype=fake.dtype, device="meta")
        made = FakeTensor(_mode(), meta, fake.device)
        self._fakes[id(fake)] = made.requires_grad_() if fake.requires_grad else made
        return self._fakes[id(fake)]

    def _number(self, size: Any) -> int:
        if type(size) is int:
            if any(size % prime == 0 for prime in _PRIMES) and size:
                raise Unfit
            return size
        number = self._of_expression(size.node.expr, size)
        self._sizes.setdefault(number, size)
        return number

    def _of_expression(self, expression: Any, size: Any) -> int:
        if expression.is_Integer:
            return int(expression)
        if expression.is_Mul:
            return math.prod(self._of_expression(each, size) for each in expression.args)
        if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
            return math.prod([self._of_expression(expression.base, size)] * int(expression.exp))
        return self._prime(expression, size)

    def _prime(self, expression: Any, size: Any) -> int:
        """The prime of what is no product; it is never 0 or 1, which tensors treat apart."""
        number = self._by_expression.get(expression)
        if number is not None:
            return number
        env = size.node.shape_env
        known = env.backed_var_to_val
        if len(self._by_expression) == len(_PRIMES) or not expression.free_symbols <= known.keys():
            raise Unfit
        if not env.bound_sympy(expression).lower >= 2:
            raise Unfit
        number = self._by_expression[expression] = _PRIMES[len(self._by_expression)]
        if expression != size.node.expr:
            size = env.create_symintnode(expression, hint=int(expression.xreplace(known)))
        self._sizes[number] = size
        return number

    def back(self, look: Look) -> Look:
        """A result's metadata, with symbols for the numbers."""
        shape, stride = (tuple(map(self._size, numbers)) for numbers in (look.shape, look.stride))
        return look._replace(shape=shape, stride=stride)  # type: ignore[arg-type]

    def _size(self, number: int) -> Any:
        if number not in self._sizes:
            rest, found = number, []
            for prime in self._by_expression.values():
                while rest and rest % prime == 0:
                    rest //= prime
                    found.append(self._sizes[prime])
            self._sizes[number] = functools.reduce(lambda a, b: a * b, found, rest)
        return self._sizes[number]


@functools.cache
def _mode() -> FakeTensorMode:
    return FakeTensorMode(allow_non_fake_inputs=True)
