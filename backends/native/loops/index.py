"""Integer arithmetic on loop axes: sums of coefficient times atom, kept in one normal form.

An atom is a loop axis, the floor of a sum divided by a number, or an integer that is read from
memory while the loop runs.  ``a % d`` is written ``a - d * (a // d)``, so that the identities which
undo a reshape hold by cancellation: ``(a // d) * d + a % d`` is ``a`` without a rule that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from math import gcd
from typing import Any

Size = int  # or, where sizes are dynamic, a sympy expression, which computes alike
_serial = count()


class Axis:
    """One loop's counter: 0 up to, not including, its size."""

    __slots__ = ("name", "size")

    def __init__(self, size: Size, name: str = "") -> None:
        self.size = size
        self.name = name or f"i{next(_serial)}"

    def bounds(self) -> tuple[Size, Size]:
        """The least and the greatest value."""
        return 0, self.size - 1

    def axes(self) -> Iterator[Axis]:
        """The axes that it depends on."""
        yield self

    def substitute(self, values: Mapping[Axis, Index]) -> Index:
        """What it becomes when axes are replaced."""
        return values.get(self) or Index({self: 1})

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


@dataclass(frozen=True)
class Quotient:
    """The floor of ``dividend / divisor``, where that does not simplify."""

    dividend: Index
    divisor: Size

    def bounds(self) -> tuple[Size, Size]:
        """The least and the greatest value."""
        low, high = self.dividend.bounds()
        return low // self.divisor, high // self.divisor

    def axes(self) -> Iterator[Axis]:
        """The axes that it depends on."""
        return self.dividend.axes()

    def substitute(self, values: Mapping[Axis, Index]) -> Index:
        """What it becomes when axes are replaced."""
        return self.dividend.substitute(values) // self.divisor

    def __str__(self) -> str:
        return f"({self.dividend})/{self.divisor}"


class Index:
    """A sum of atoms with coefficients, and a constant; immutable."""

    __slots__ = ("_hash", "const", "terms")

    def __init__(self, terms: Mapping[Any, Size], const: Size = 0) -> None:
        self.terms = terms
        self.const = const
        self._hash = 0

    @staticmethod
    def of(value: Any) -> Index:
        """An atom or a number as a sum."""
        if isinstance(value, Index):
            return value
        return Index({value: 1}) if hasattr(value, "bounds") else Index({}, value)

    def __add__(self, other: Any) -> Index:
        if not isinstance(other, Index):
            return Index(self.terms, self.const + other)
        terms = dict(self.terms)
        for atom, factor in other.terms.items():
            total = terms.get(atom, 0) + factor
            if total == 0:
                del terms[atom]
            else:
                terms[atom] = total
        return Index(terms, self.const + other.const)

    def __mul__(self, factor: Size) -> Index:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        terms = {atom: old * factor for atom, old in self.terms.items()}
        return Index(terms, self.const * factor)

    def __sub__(self, other: Any) -> Index:
        return self + (other * -1 if isinstance(other, Index) else -other)

    def __mod__(self, divisor: Size) -> Index:
        return self - (self // divisor) * divisor

    def __floordiv__(self, divisor: Size) -> Index:
        """Divide what divides evenly, drop what stays below the divisor, keep the rest as it is."""
        if divisor == 1:
            return self
        whole: dict[Any, Size] = {}
        rest: dict[Any, Size] = {}
        for atom, factor in self.terms.items():
            ratio = _exact(factor, divisor)
            if ratio is None:
                rest[atom] = factor
            else:
                whole[atom] = ratio
        const = self.const // divisor if isinstance(self.const, int) else 0
        left = Index(rest, self.const - const * divisor)
        return Index(whole, const) + _floor(left, divisor)

    def bounds(self) -> tuple[Size, Size]:
        """The least and the greatest value that it may take."""
        low = high = self.const
        for atom, factor in self.terms.items():
            least, most = atom.bounds()
            if isinstance(factor, int) and factor < 0:
                least, most = most, least
            low, high = low + factor * least, high + factor * most
        return low, high

    def axes(self) -> Iterator[Axis]:
        """The axes that it depends on, one perhaps more than once."""
        for atom in self.terms:
            yield from atom.axes()

    def substitute(self, values: Mapping[Axis, Index]) -> Index:
        """The same sum with axes replaced."""
        result = Index({}, self.const)
        for atom, factor in self.terms.items():
            result = result + atom.substitute(values) * factor
        return result

    def coefficient(self, axis: Axis) -> Size | None:
        """What it grows by when the axis steps; None if that is not always the same."""
        for atom in self.terms:
            if atom is not axis and axis in atom.axes():
                return None
        return self.terms.get(axis, 0)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Index)
            and self.const == other.const
            and dict(self.terms) == dict(other.terms)
        )

    def __hash__(self) -> int:
        self._hash = self._hash or hash((frozenset(self.terms.items()), self.const))
        return self._hash

    def text(self, atom_text: Callable[[Any], str]) -> str:
        """The sum as C or Python would write it, its atoms by ``atom_text``."""
        parts = [_term(atom_text(atom), factor) for atom, factor in self.terms.items()]
        if self.const != 0 or not parts:
            parts.append(str(self.const))
        return " + ".join(parts).replace("+ -", "- ")

    def __str__(self) -> str:
        return self.text(str)

    __repr__ = __str__


ZERO = Index({})


def _term(atom: str, factor: Size) -> str:
    if factor == 1:
        return atom
    if factor == -1:
        return f"-{atom}"
    return f"{factor}*{atom}" if isinstance(factor, int) else f"({factor})*{atom}"


def _exact(number: Size, divisor: Size) -> Size | None:
    """``number / divisor`` where that is whole, else None."""
    if isinstance(number, int) and isinstance(divisor, int):
        return None if number % divisor else number // divisor
    ratio = number / divisor
    return ratio if ratio.is_integer else None


def _floor(index: Index, divisor: Size) -> Index:
    """``index // divisor`` where no term of ``index`` is a multiple of the divisor."""
    low, high = index.bounds()
    if _within(low, high, divisor):
        return ZERO
    if isinstance(low, int) and isinstance(high, int) and low // divisor == high // divisor:
        return Index({}, low // divisor)
    if isinstance(divisor, int) and all(isinstance(f, int) for f in index.terms.values()):
        coarser = _coarser(index, divisor)
        if coarser is not None:
            return coarser
    if len(index.terms) == 1 and index.const == 0:
        ((atom, factor),) = index.terms.items()
        if factor == 1 and isinstance(atom, Quotient):
            return atom.dividend // (atom.divisor * divisor)
    return Index({Quotient(index, divisor): 1})


def _within(low: Size, high: Size, divisor: Size) -> bool:
    """Whether every number from low to high lies in 0 .. divisor - 1, for certain."""
    room = divisor - high
    above = low >= 0 if isinstance(low, int) else bool(low.is_nonnegative)
    return above and (room > 0 if isinstance(room, int) else bool(room.expand().is_positive))


def _coarser(index: Index, divisor: int) -> Index | None:
    """``(g*a + b) // (g*d)`` is ``a // d`` where 0 <= b < g; tried for the divisors' shared g."""
    for shared in sorted({gcd(factor, divisor) for factor in index.terms.values()}, reverse=True):
        if shared == 1:
            return None
        coarse = {a: f // shared for a, f in index.terms.items() if f % shared == 0}
        fine = Index({a: f for a, f in index.terms.items() if f % shared}, index.const % shared)
        if _within(*fine.bounds(), shared):
            return Index(coarse, index.const // shared) // (divisor // shared)
    return None
