"""A table of what NumPy's functions give, for several dtypes: as eager, in every respect.

Value, dtype, type (array or scalar), strides, writeability and shared memory are compared; a call
that capture cannot take breaks, and is right all the same.  ``CAPTURED`` may not break for the
dtypes given, so that the table cannot be had by breaking everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynacap.testing import check_same

DTYPES = "float64 float32 int64 uint8 bool complex128".split()
REAL, FLOATS, NUMBERS = "float64 float32 int64 uint8 bool", "float64 float32", "float64 int64"
ALL = " ".join(DTYPES)

# expression -> the dtypes for which it is captured whole; a, b: (2, 3); v: (3,); m: (3, 3)
UFUNCS = {
    **{f"np.{name}(a)": ALL for name in "absolute conj isnan isfinite logical_not".split()},
    **{
        f"np.{name}(a)": FLOATS + " int64 complex128"
        for name in "sin cos tanh exp log sqrt square arctan sinh expm1 log1p log2 log10".split()
    },
    **{f"np.{name}(a)": FLOATS for name in "floor ceil trunc rint sign fabs exp2 deg2rad".split()},
    **{f"np.{name}(a, b)": ALL for name in "add multiply divide equal not_equal".split()},
    **{
        f"np.{name}(a, b)": REAL
        for name in "maximum minimum fmax fmin less greater_equal arctan2 hypot copysign".split()
    },
    **{f"np.{name}(a, b)": FLOATS for name in "floor_divide remainder fmod logaddexp".split()},
    **{f"np.{name}(a, b)": "int64 uint8 bool" for name in ("bitwise_and", "bitwise_xor")},
    **{f"np.{name}(a, b)": ALL for name in ("logical_and", "logical_or", "logical_xor")},
    "np.negative(a)": "float64 float32 int64 uint8 complex128",
    "np.subtract(a, b)": "float64 float32 int64 uint8 complex128",
    "np.power(a, 2)": "float64 float32 int64 uint8",
    "np.power(a, b)": FLOATS,
    "a // 3": "float64 float32 int64 uint8",
    "a % 3": "float64 float32 int64 uint8",
    "a % -2.0": FLOATS + " int64 uint8 bool",
    "a << 2": "int64 uint8",
    "-a + b * 2 - v / 3": "float64 float32 int64 uint8",
    "2.5 * a + 1": ALL,
    "1 - a": "float64 float32 int64 uint8 complex128",
    "a + np.float64(0.1)": ALL,
    "a * np.float32(0.1)": ALL,
    "np.int8(3) + a": ALL,
    "a @ m": "float64 float32 complex128",
    "a @ v": "float64 float32 complex128",
    "v @ v": "float64 float32 complex128",
    "[1, 2, 3] + a": ALL,
    "a == (1, 2, 3)": ALL,
    "(a > 1) & (b <= 4)": REAL,
    "~(a == b)": ALL,
    "abs(a)": ALL,
    "a[0, 0] + b[1, 1]": ALL,
    "a[0, 0] * 2": ALL,
    "np.add.reduce(a)": ALL,
    "np.multiply.reduce(a, axis=1)": "float64 float32 int64",
    "np.maximum.reduce(a)": REAL,
    "np.add.accumulate(v)": "float64 float32 int64 complex128",
    "np.add.outer(v, v)": ALL,
    "np.add.at(v.copy(), 1, 2)": "",
}
REDUCTIONS = {
    **{f"np.{name}(a)": ALL for name in "sum mean any all count_nonzero".split()},
    "np.prod(a)": REAL,
    **{f"a.{name}(axis=0)": ALL for name in "sum mean".split()},
    **{f"a.{name}(axis=1, keepdims=True)": ALL for name in "sum any all".split()},
    **{f"np.{name}(a)": REAL for name in "max min amax".split()},
    "np.ptp(a)": "float64 float32 int64 uint8",
    **{f"np.{name}(a, axis=-1)": "float64 float32 int64 uint8" for name in ("argmax", "argmin")},
    **{f"a.{name}()": FLOATS + " int64" for name in "std var max min argmax".split()},
    "np.std(a, axis=0, ddof=1)": FLOATS,
    "np.average(v, weights=v)": FLOATS,
    "np.median(a)": "",
    "np.percentile(a, 30)": "",
    "np.quantile(a, [0.25, 0.5], axis=1)": "",
    "np.cumsum(a, axis=1)": NUMBERS + " float32 complex128",
    "a.cumsum()": NUMBERS,
    "np.cumprod(v)": "float64 int64",
    "np.trace(m)": "float64 int64",
    "np.linalg.norm(a)": FLOATS,
    "np.linalg.norm(a, axis=1)": FLOATS,
    "np.diff(a)": "",
    "np.sum(a, dtype=np.float64)": ALL,
    "np.nansum(a)": "",
    "np.bincount(np.array([0, 1, 1]))": "",
}
SHAPES = {
    "a.reshape(3, 2)": ALL,
    "a.reshape(-1)": ALL,
    "a.T": ALL,
    "a.T.reshape(-1)": ALL,
    "a.ravel()": ALL,
    "a.flatten()": ALL,
    "a.T.flatten()": ALL,
    "a.copy()": ALL,
    "a.T.copy()": ALL,
    "np.copy(a.T)": ALL,
    "a.T + b.T": ALL,
    "a.transpose(1, 0)": ALL,
    "np.transpose(a)": ALL,
    "np.swapaxes(a, 0, 1)": ALL,
    "np.moveaxis(a, 0, 1)": ALL,
    "np.expand_dims(a, 1)": ALL,
    "a[:, None] * b": ALL,
    "np.squeeze(a[:1])": ALL,
    "np.concatenate([a, b])": ALL,
    "np.concatenate((a, b), axis=1)": ALL,
    "np.stack([v, v * 2])": ALL,
    "np.vstack([a, v])": ALL,
    "np.hstack([a, b])": ALL,
    "np.column_stack([v, v])": ALL,
    "np.split(a, 3, axis=1)": ALL,
    "np.tile(v, (2, 2))": ALL,
    "np.repeat(a, 2, axis=0)": ALL,
    "np.broadcast_to(v, (2, 3))": "",
    "np.roll(a, 1)": ALL,
    "np.flip(a)": "",
    "np.rot90(a)": "",
    "np.diag(v)": ALL,
    "np.diag(m)": "",
    "np.diagonal(m)": "",
    "np.tril(m)": ALL,
    "np.triu(m, 1)": ALL,
    "np.atleast_2d(v)": ALL,
    "np.meshgrid(v, v)": ALL,
    "np.pad(a, 1)": "",
    "np.where(a > 1, a, b)": REAL,
    "np.clip(a, 1, 4)": "float64 float32 int64 uint8",
    "a.clip(0, 3)": "float64 float32 int64 uint8",
    "np.round(a, 1)": FLOATS,
    "a.round()": FLOATS,
    "np.sort(a)": "float64 float32 int64 uint8 bool",
    "np.argsort(a)": "",
    "np.searchsorted(np.sort(v), 2)": "",
    "np.unique(a)": "",
    "np.nonzero(a)": "",
    "a[a > 1]": "",
    "np.outer(v, v)": ALL,
    "np.kron(v, v)": ALL,
    "np.dot(a, m)": "float64 float32 complex128",
    "np.vdot(v, v)": "float64",
    "np.inner(v, v)": "float64",
    "np.tensordot(a, m, 1)": "float64 float32",
    "np.einsum('ij,jk->ik', a, m)": "float64 float32",
    "np.einsum('i,i->', v, v)": "float64 float32",
    "np.cross(v, v)": "",
    "a.astype(np.float32)": "float64 float32 int64 uint8 bool",
    "a.astype(float)": "float64 float32 int64 uint8 bool",
    "a.astype('int32')": "float64 float32 int64 uint8 bool",
    "a.astype(a.dtype)": ALL,
    "a.real": ALL,
    "a.imag": "complex128",
    "np.real(a)": ALL,
    "np.angle(a)": "",
    "np.nan_to_num(a)": "",
    "np.isclose(a, b)": "",
    "np.allclose(a, b)": "",
    "np.array_equal(a, b)": "",
    "np.zeros_like(a)": ALL,
    "np.ones_like(a.T)": ALL,
    "np.full_like(a, 2)": ALL,
    "np.array(a)": ALL,
    "np.asarray(a)": ALL,
    "np.array([a, b])": ALL,
    "np.array([v.sum(), 1])": ALL,
    "np.array([[1, 2.5]]) + v[:2]": ALL,
    "np.ascontiguousarray(a.T)": ALL,
    "np.zeros((100, 100))[:2, :3] + a": ALL,
    "np.arange(3) * a": ALL,
    "np.arange(2000.0)[:3] + v": ALL,
    "np.linspace(0, 1, 3) * v": ALL,
    "np.eye(3) @ m": "float64 float32 complex128",
    "np.linalg.inv(m)": "float64 float32",
    "np.linalg.det(m)": "float64 float32",
    "np.linalg.solve(m, v)": "float64 float32",
    "np.linalg.svd(m)[1]": "float64 float32",
    "np.linalg.eigh(m @ m.T)[0]": "float64 float32",
    "np.linalg.pinv(m)": "float64",
    "np.fft.fft(v)": "float64 complex128",
    "np.fft.ifft(np.fft.fft(v)).real": "float64",
    "np.fft.rfft(v)": "float64",
    "np.float64(v[0])": "float64 float32 int64 uint8 bool",
    "np.float32(a)": "float64 float32 int64 uint8 bool",
    "np.shape(a), np.ndim(a), np.size(a), a.size, a.nbytes, a.itemsize, a.strides": ALL,
    "a.dtype, a.dtype.kind, a.dtype == np.float64, str(a.dtype), len(a)": ALL,
    "a.flags.c_contiguous, a.T.flags.c_contiguous, a.flags.writeable": ALL,
    "np.iinfo(np.int8).max, np.finfo(np.float32).eps, np.pi": ALL,
    "isinstance(a, np.ndarray), isinstance(a[0, 0], np.floating), type(a.sum())": ALL,
    "np.result_type(np.int8, np.float32), np.issubdtype(a.dtype, np.integer)": ALL,
}
INDEXING = {
    **{
        f"a[{key}]": ALL
        for key in (
            "0", "-1", "0, 1", "1:", ":, 1", ":, ::2", "..., 0", "...", "None", ":, None, 1", "()",
            "[0, 1, 1]", "[[0, 1], [1, 0]]", ":, [2, 0]", "[0, 1], [1, 2]",
            "np.array([1, 0])", "[0], 1:", "1:1", "np.int64(1)", "slice(0, 1)", "0, ...",
            "[[0], [1]], [0, 1]",
        )
    },
    "a[[True, False]]": "",
    "a[::-1]": "",
    "a[5]": "",
    "a[0.5]": "",
    "m[np.array([0, 2]), np.array([1, 1])]": ALL,
    "np.take(a, [0, 2], axis=1)": ALL,
    "a.take(1)": ALL,
    "np.take_along_axis(a, np.array([[0], [1]]), 1)": "",
    "np.compress([True, False], a, axis=0)": "",
    "[x * 2 for x in v]": ALL,
    "[row.sum() for row in a]": ALL,
    "sum(v[:2].astype(float))": "float64 float32 int64 uint8 bool",
    "list(zip(v, a.T))": ALL,
    "list(enumerate(v))": ALL,
    "a.item(0), a.tolist(), float(v[0].real)": "",
    "list(a.flat)": "",
}  # fmt: skip
TABLE = {**UFUNCS, **REDUCTIONS, **SHAPES, **INDEXING}


def samples(dtype: str) -> tuple[Any, ...]:
    """Arrays of a dtype: special values where it has some, and a matrix that has an inverse."""
    a = np.array([[1, 5, 0], [7, 3, 2]]).astype(dtype)
    b = np.array([[2, 1, 4], [1, 6, 1]]).astype(dtype)
    if np.dtype(dtype).kind == "f":
        a[0] = [-1.25, np.nan, -0.0]
        b[1] = [np.inf, 0.5, -3.0]
    if np.dtype(dtype).kind == "c":
        a[0] = [1 - 2j, np.inf, -0.0]
    m = (np.eye(3) * 4 + np.arange(9).reshape(3, 3) / 8).astype(dtype)
    return a, b, np.array([3, 1, 2]).astype(dtype), m


@pytest.mark.parametrize("expression", list(TABLE), ids=str)
def test_function(expression: str) -> None:
    """For each dtype the same as in eager, captured where the table says so."""
    compute = eval(f"lambda a, b, v, m: ({expression})", {"np": np})
    for dtype in DTYPES:
        arguments = samples(dtype)
        outcome = check_same(compute, arguments, arguments)
        if dtype in TABLE[expression].split():
            reasons = outcome.reasons.keys() - {"no tensor operations"}
            assert not reasons, f"{dtype}: {reasons}"


def test_the_sign_of_zeros_in_complex_numbers() -> None:
    """Of as many as torch computes at a time."""

    def negated(a: np.ndarray) -> Any:
        return [np.copysign(1, each) for b in (-a, np.negative(a)) for each in (b.real, b.imag)]

    check_same(negated, (np.arange(-16, 16) + 0j,), (np.arange(16) * -1j,))


def test_scalars_are_not_written_to() -> None:
    def filled(a: np.ndarray) -> Any:
        top = a.max()
        top.fill(0)
        return top, a.max(0).max() + 1

    check_same(filled, (np.arange(6.0).reshape(2, 3),))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["reciprocal", "ptp", "prod", "cumprod"])
def test_complex_numbers_as_numpy_takes_them(name: str) -> None:
    """A product's zeros have other signs, an inverse of zero is another, and no kernel compares."""
    function = getattr(np, name)

    def computed(a: np.ndarray) -> Any:
        found = function(a * 1)
        return [np.copysign(1, found.real), np.copysign(1, found.imag), found]

    check_same(computed, (np.arange(-3, 3) + 0j,), (np.array([1, 4, -2, 3]) + 0j,))


def test_truths_that_are_not_the_same() -> None:
    def asked(a: np.ndarray) -> Any:
        found, top = np.any(a), a.max()
        return found, np.imag(found), found.imag, found.real, top.imag, np.logical_not(found)

    check_same(asked, *((np.array(each),) for each in ([True, False], [False, False], [3, 1])))
