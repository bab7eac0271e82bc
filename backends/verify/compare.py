"""How two runs of a graph differ, a sentence for each difference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

import torch

from dynacap.backends.interpreter import differences as metadata_differences
from dynacap.backends.verify.copies import is_plain, storage_of
from dynacap.backends.verify.run import Run


def differences(expected: Run, found: Run, exact: Run | None = None) -> list[str]:
    """How ``found`` differs from ``expected`` by more than torch's tolerance of each data type.

    Where numbers do, ``exact`` is asked, the same run in float64: they stand if they are no further
    from it than eager's own.
    """
    if expected.error is not None or found.error is not None:
        return _errors(expected.error, found.error)
    told = [*_aliasing(expected, found)]
    for what in ("output", "input", "gradient"):
        sides = [getattr(side, f"{what}s") if side else [] for side in (expected, found, exact)]
        told += _values(what, *sides)
    if not told and not torch.equal(_stream(expected), _stream(found)):
        told.append("random state: the stream was left elsewhere than by eager")
    return told


def numbers_differ(expected: torch.Tensor, found: torch.Tensor) -> str:
    """How two tensors of one kind differ by more than torch's tolerance for it; or ''."""
    try:
        torch.testing.assert_close(found, expected, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())
    return ""


def _errors(expected: Exception | None, found: Exception | None) -> list[str]:
    if type(expected) is type(found):
        return []
    return [f"eager raised {_told(expected)}, compiled {_told(found)}"]


def _told(error: Exception | None) -> str:
    return "nothing" if error is None else f"{type(error).__name__}: {error}"


def _stream(run: Run) -> torch.Tensor:
    assert run.random is not None
    return run.random


def _values(
    what: str, expected: Sequence[Any], found: Sequence[Any], exact: Sequence[Any]
) -> Iterator[str]:
    if len(expected) != len(found):
        yield f"{what}s: eager {len(expected)}, compiled {len(found)}"
        return
    for index, (wanted, got, ideal) in enumerate(zip_longest(expected, found, exact)):
        told = _value_differs(wanted, got, ideal, strides=what != "gradient")
        if told:
            yield f"{what} {index}: {told}"


def _value_differs(wanted: Any, got: Any, ideal: Any, *, strides: bool) -> str:
    for fact in metadata_differences(wanted, got, ""):
        if strides or not fact.startswith("stride"):  # autograd promises no layout of a gradient
            return fact
    if not isinstance(wanted, torch.Tensor):
        return "" if type(wanted) is type(got) else f"eager {wanted!r}, compiled {got!r}"
    if wanted.requires_grad != got.requires_grad:
        return f"requires_grad: eager {wanted.requires_grad}, compiled {got.requires_grad}"
    told = numbers_differ(wanted.detach(), got.detach())
    return "" if told and _as_good(wanted, got, ideal) else told


def _as_good(wanted: torch.Tensor, got: torch.Tensor, ideal: Any) -> bool:
    """Whether ``got`` is as near to the exact numbers as eager's are, give or take.

    What is finite in one precision only proves nothing.
    """
    if not isinstance(ideal, torch.Tensor) or ideal.shape != wanted.shape:
        return False
    if not (wanted.is_floating_point() and ideal.is_floating_point()) or not wanted.numel():
        return False
    dtype = wanted.dtype
    exact, wanted, got = ideal.detach(), wanted.detach().double(), got.detach().double()
    finite = exact.isfinite() & wanted.isfinite() & got.isfinite()
    same = (wanted == got) | (wanted.isnan() & got.isnan())
    eager_is_off = torch.where(finite, (wanted - exact).abs(), 0)
    relative, absolute = torch.testing._comparison.default_tolerances(dtype)
    allowed = absolute + relative * exact.abs() + 2 * eager_is_off.max()
    return bool((same | (finite & ((got - exact).abs() <= allowed))).all())


def _aliasing(expected: Run, found: Run) -> Iterator[str]:
    """Results that share memory in one run only."""
    for index, (wanted, got) in enumerate(zip(_owners(expected), _owners(found), strict=False)):
        if wanted != got:
            yield f"output {index}: eager has it in {wanted}, compiled in {got}"


def _owners(run: Run) -> list[str]:
    """For each result, whose memory it lies in: the first input or result there."""
    named = [(f"the memory of input {i}", value) for i, value in enumerate(run.inputs)]
    named += [(f"the memory of output {i}", value) for i, value in enumerate(run.outputs)]
    first: dict[int, str] = {}
    owners = []
    for name, value in named:
        if not is_plain(value) or not value.untyped_storage().nbytes():
            owners.append("no memory")
        else:
            owners.append(first.setdefault(storage_of(value), name))
    return owners[len(run.inputs) :]
