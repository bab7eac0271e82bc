"""What no graph can hold runs as plain NumPy, for a reason of its own, and gives what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import dynacap
from dynacap.testing import check_same

A = np.arange(6.0).reshape(2, 3)


class Named(np.ndarray[Any, Any]):
    """A subclass of arrays."""

    def __array_finalize__(self, obj: object) -> None:
        self.name = getattr(obj, "name", "none")


CASES = {
    "data-dependent-branch": lambda a: a + 1 if a.sum() > 3 else a - 1,
    "data-dependent-value": lambda a: a * float(a[0, 0]),
    "data-dependent-shape": lambda a: (a * 2)[a > 2],
    "tensor-print": lambda a: (f"{a + 1}", str(a), repr(a[0, 1])),
    "numpy-error": lambda a: a + np.ones(7),
    "numpy-function": lambda a: np.maximum.accumulate(a),
    "numpy-differs": lambda a: np.median(a),
    "numpy-view": lambda a: (a[::-1] + 1, a[:, ::-1]),
    "numpy-interop": lambda a: torch.sin(torch.ones(1)) * torch.from_numpy(a[1]),
    "unsupported-call": lambda a: np.interp(a, [0, 1], [2, 3]) + 1,
    "numpy-random": lambda a: a + np.random.rand(2, 3),
}


@pytest.mark.parametrize("reason", CASES)
def test_reason(reason: str) -> None:
    """The break has the reason, and the result is eager's."""
    outcome = check_same(CASES[reason], (A,), (A,))
    assert any(name.startswith(reason) for name in outcome.reasons), outcome.reasons


ODD_ARRAYS = {
    "object": np.array([1, "a", None], dtype=object),
    "text": np.array(["a", "bc"]),
    "structured": np.array([(1, 2.0)], dtype=[("x", int), ("y", float)]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "other byte order": np.arange(3, dtype=">f8"),
    "long double": np.arange(3, dtype=np.longdouble),
    "reversed": A[::-1],
    "unaligned": np.frombuffer(bytearray(9), np.uint8)[1:].view(np.float64),
    "subclass": A.view(Named),
    "masked": np.ma.masked_array(A, A > 2),
    "matrix": np.matrix(A),
}


@pytest.mark.parametrize("kind", ODD_ARRAYS)
def test_odd_array(kind: str) -> None:
    """Arrays that no tensor can stand for."""
    check_same(lambda a: (a == a[0], a.shape, a.copy()), (ODD_ARRAYS[kind],), (ODD_ARRAYS[kind],))


ERRORS = {
    "shapes": lambda a: a @ a,
    "index": lambda a: a[5],
    "too many": lambda a: a[0, 0, 0],
    "axis": lambda a: a.sum(axis=4),
    "reshape": lambda a: a.reshape(4, 5),
    "attribute": lambda a: a.nothing,
    "type": lambda a: a + "text",
    "not callable": lambda a: a(),
    "len of scalar": lambda a: len(a[0, 0]),
    "iterate": lambda a: list(np.array(a[0, 0])),
    "set": lambda a: a.__setitem__(0, np.ones(5)),
    "in place": lambda a: a.__iand__(a),
    "singular": lambda a: np.linalg.inv(np.zeros((2, 2)) * a[0, 0]),
    "late index": lambda a: a[:, (a[0] + 5).astype(int)],
    "hash": hash,
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    """An error has NumPy's type and message, and can be caught."""
    check_same(ERRORS[name], (A,), (A,))

    def caught(a: Any) -> Any:
        b = a + 1
        try:
            return ERRORS[name](a), b
        except Exception as error:
            return type(error).__name__, str(error), b * 2

    check_same(caught, (A,), (A,))


def test_numbers_that_would_overflow() -> None:
    """Integers divided by zero, shifted too far and raised to negative powers."""
    v = np.array([0, 1, -2, 40])
    for function in (
        lambda v: 5 // v,
        lambda v: v % v,
        lambda v: v << v * 2,
        lambda v: np.power(2, v + 2),
        lambda v: v.astype(np.int8) * np.int8(100),
        lambda v: v.astype(np.uint8) - 1,
        lambda v: v.astype(np.uint8) > -1,
        lambda v: 2 ** v.astype(float),
    ):
        check_same(function, (v,), (v,))


def test_random_state_is_numpys() -> None:
    """Random numbers come from NumPy's own streams, in order."""

    def draw(a: Any) -> Any:
        first = a + np.random.rand(2, 3)
        return first * np.random.normal(size=3), np.random.randint(0, 10, 4)

    check_same(draw, (A,), (A,))


def test_errors_that_the_user_asked_for() -> None:
    """Under ``np.seterr(all="raise")`` NumPy runs, and raises."""
    compiled = dynacap.compile(lambda a: 1 / a)
    with np.errstate(all="ignore"):
        assert compiled(np.zeros(2))[0] == np.inf
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        compiled(np.zeros(2))
    dynacap.reset()


def test_values_of_arrays_are_no_metadata() -> None:
    """An axis or a shape that is read from an array is not known."""
    for function in (
        lambda a, n: np.transpose(a, n),
        lambda a, n: a.sum(axis=n[0]),
        lambda a, n: a[n[0]],
        lambda a, n: a[:, n],
        lambda a, n: np.repeat(a, n, axis=0),
        lambda a, n: np.zeros(n) + a.sum(),
        lambda a, n: a.reshape(n[0] + 2, -1),
        lambda a, n: np.roll(a, n[0]),
        lambda a, n: list(range(n[1])),
    ):
        check_same(function, (A, np.array([1, 0])), (A, np.array([0, 1])), (A, np.array([1, 0])))
