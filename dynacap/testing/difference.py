"""Say how two snapshots differ, place by place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dynacap.testing.snapshot import Again, Branch, Leaf, Node

__all__ = ["Tolerance", "differences"]

WIDTH = 160


@dataclass(frozen=True)
class Tolerance:
    """How far numbers may lie apart; `factor` loosens torch's own defaults by data type."""

    factor: float = 1.0

    def for_dtype(self, dtype: torch.dtype) -> tuple[float, float]:
        """Relative and absolute tolerance of a data type."""
        if not (dtype.is_floating_point or dtype.is_complex):
            return 0.0, 0.0
        relative, absolute = TOLERANCES.get(dtype, (1.3e-6, 1e-5))
        return relative * self.factor, absolute * self.factor


TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex128: (1e-7, 1e-7),
}


def differences(
    expected: Node, found: Node, path: str = "", tolerance: Tolerance | None = None
) -> Iterator[str]:
    """Yield one line for each place where `found` is not what was `expected`."""
    tolerance = tolerance or Tolerance()
    if isinstance(expected, Branch) and isinstance(found, Branch):
        yield from branch_differences(expected, found, path, tolerance)
    elif isinstance(expected, Leaf) and isinstance(found, Leaf):
        yield from leaf_difference(expected.value, found.value, path, tolerance)
    elif expected != found:
        yield f"{path}: eager {show(expected)}, compiled {show(found)}"


def branch_differences(
    expected: Branch, found: Branch, path: str, tolerance: Tolerance
) -> Iterator[str]:
    """The differences of two branches: their kinds, then part by part."""
    if expected.kind != found.kind:
        yield f"{path}: eager {show(expected)}, compiled {show(found)}"
        return
    for label, part in expected.parts.items():
        place = f"{path}{label}" if label[:1] in (".", "[", "") else f"{path} {label}"
        if label not in found.parts:
            yield f"{place}: only in eager, {show(part)}"
        else:
            yield from differences(part, found.parts[label], place, tolerance)
    for label in found.parts.keys() - expected.parts.keys():
        yield f"{path}{label}: only when compiled, {show(found.parts[label])}"


def leaf_difference(expected: Any, found: Any, path: str, tolerance: Tolerance) -> Iterator[str]:
    """How two plain values differ, in type or in value; nothing if they are equal."""
    if type(expected) is not type(found):
        yield f"{path}: eager {short(expected)} ({type(expected).__name__}), " + (
            f"compiled {short(found)} ({type(found).__name__})"
        )
    elif isinstance(expected, torch.Tensor):
        yield from tensor_difference(expected, found, path, tolerance)
    elif isinstance(expected, np.ndarray):
        if not arrays_equal(expected, found):
            yield f"{path}: eager {short(expected.tolist())}, compiled {short(found.tolist())}"
    elif not scalars_equal(expected, found):
        yield f"{path}: eager {short(expected)}, compiled {short(found)}"


def tensor_difference(
    expected: torch.Tensor, found: torch.Tensor, path: str, tolerance: Tolerance
) -> Iterator[str]:
    """Where the numbers of two tensors differ by more than the tolerance."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return  # said already, by the facts beside the numbers
    relative, absolute = tolerance.for_dtype(expected.dtype)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    if not expected.is_floating_point() and not expected.is_complex():
        close = expected == found
    else:
        close = torch.isclose(expected.to(wide), found.to(wide), relative, absolute, equal_nan=True)
    if bool(close.all()):
        return
    at = tuple((~close).nonzero()[0].tolist())
    yield (
        f"{path}: {int((~close).sum())} of {close.numel()} differ, first at {list(at)}: "
        f"eager {expected[at].item()!r}, compiled {found[at].item()!r}"
    )


def arrays_equal(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays hold the same numbers, as far as floats allow."""
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return True  # said already
    if expected.dtype.kind == "c":
        return arrays_equal(expected.real, found.real) and arrays_equal(expected.imag, found.imag)
    if expected.dtype.kind == "f":
        return bool(np.allclose(expected, found, rtol=1e-6, atol=1e-6, equal_nan=True))
    return bool((expected == found).all())


def scalars_equal(expected: Any, found: Any) -> bool:
    """Exact equality that tells signed zeros apart and takes NaN as equal to itself.

    NumPy's numbers, which another library may have computed, are compared as arrays are.
    """
    if isinstance(expected, float):
        same_sign = math.copysign(1.0, expected) == math.copysign(1.0, found)
        if math.isnan(expected) or math.isnan(found):
            return math.isnan(expected) and math.isnan(found)
        close = expected == found
        if isinstance(expected, np.generic):
            close = math.isclose(expected, found, rel_tol=1e-6, abs_tol=1e-9)
        return close and (same_sign or expected != 0.0)
    if isinstance(expected, complex):
        parts = ((expected.real, found.real), (expected.imag, found.imag))
        return all(scalars_equal(left, right) for left, right in parts)
    return bool(expected == found)


def show(node: Node) -> str:
    """A node in a few words."""
    if isinstance(node, Again):
        return f"the object at {node.path}"
    if isinstance(node, Leaf):
        return short(node.value)
    if "dtype" in node.parts and "shape" in node.parts:
        return f"a {node.kind} {show(node.parts['dtype'])} {show(node.parts['shape'])}"
    if "text" in node.parts:
        return f"{node.kind}({show(node.parts['text'])})"
    return f"a {node.kind} of {len(node.parts)}"


def short(value: object) -> str:
    """The repr of a value, cut to a line."""
    text = repr(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 3] + "..."
