"""Arrays of the caller are changed in place, views share their memory, and flags are kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from dynacap.testing import Call, check_same, program

A = np.arange(6.0).reshape(2, 3)
V = np.arange(4.0)


def read_only(array: Any) -> Any:
    """A copy that may not be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


@program((A, V))
def test_items_are_set(a: Any, v: Any) -> Any:
    a[0] = 7
    a[1, 1:] = v[:2]
    v[[0, 2]] = [10, 20]
    a[:, 0] = a[:, 2]
    return a


@program((A,), breaks=1)
def test_items_are_set_by_a_mask(a: Any) -> Any:
    a[a > 2] = 0
    a[a == 1] += 5
    return a.sum()


@program((A, V))
def test_in_place_operators(a: Any, v: Any) -> Any:
    b = a
    a += 1
    a *= v[:3]
    a -= a.mean(axis=0)
    a **= 2
    v //= 2
    v %= 2.0
    return b is a, b


@program((A,))
def test_views_of_the_argument_are_written(a: Any) -> Any:
    row, column, flat = a[0], a[:, 1], a.reshape(-1)
    row += 10
    column[:] = 3
    flat[-1] = -1
    return row, column, flat, a.T, a[..., None]


@program((A,))
def test_a_view_made_before_sees_what_is_written_after(a: Any) -> Any:
    b = a * 2
    view, scalar, copy = b[0], b[0, 1], b[0].copy()
    b[0] = 100
    return view, scalar, copy, b


@program((V,))
def test_scalars_do_not_change(v: Any) -> Any:
    first = v[0]
    before = first
    first += 1
    v[0] = 9
    return first, before, v[0]


@program((V,))
def test_iteration_reads_items_late(v: Any) -> Any:
    seen = []
    for i, x in enumerate(v):
        seen.append(x)
        v[(i + 1) % 4] = x + 1
    return seen


@program((A, V[:3]))
def test_out(a: Any, v: Any) -> Any:
    c = np.zeros_like(a)
    d = np.add(a, v, out=c)
    np.multiply(a, 2, a)
    np.sum(a, axis=0, out=v)
    return d is c, c


@program((A, V))
def test_methods_that_write(a: Any, v: Any) -> Any:
    a.fill(2)
    v.sort()
    np.copyto(a, v[:3])
    np.fill_diagonal(a, 8)
    return a, v


@program((np.array([3, 1, 2]), np.float32(0.5)))
def test_integers_and_scalars_as_arguments(v: Any, s: Any) -> Any:
    v += 1
    return v * s, s * 2, v.dtype, (v * s).dtype


@program((A.T, A[:, ::2], np.asfortranarray(A)))
def test_layouts(t: Any, s: Any, f: Any) -> Any:
    s += 1
    return t + 1, t * f.T, t.copy(), s, s.T, f.sum(axis=0), f + s[:, :1]


def test_read_only_arrays() -> None:
    """They can be read, results are not read only, and writing raises what NumPy raises."""
    check_same(lambda a: (a + 1, a[0], a.flags.writeable), (read_only(A),), breaks=0)

    def write(a: Any) -> None:
        a[0] = 1

    def increase(a: Any) -> None:
        a += 1

    for function in (write, increase):
        check_same(function, Call((read_only(A),)), Call((A.copy(),)), Call((read_only(A),)))


def test_an_array_and_its_view_as_arguments() -> None:
    """What is written to one is seen in the other."""

    def both(a: Any, b: Any) -> Any:
        a += 1
        b *= 2
        return a.sum()

    def build(a: Any) -> Any:
        return both(a, a[0]), a

    check_same(build, (A,), (A,))


@program((torch.arange(4.0), V), breaks=0)
def test_tensors_over_arrays(t: Any, v: Any) -> Any:
    x = torch.from_numpy(v)
    x += t
    v *= 2
    a = t.numpy()
    a[0] = 5
    return x, v, t, a, a.dtype


@program((torch.ones(2, 3).t(),), breaks=0)
def test_arrays_over_tensors_keep_strides(t: Any) -> Any:
    return t.numpy(), (t + 1).numpy().T, t.numpy().strides


def test_guards_tell_arrays_apart() -> None:
    """Another dtype, shape, layout or type of argument is another capture."""
    arrays = [A, A.astype(np.float32), A[:1], A.T.copy().T, read_only(A), A.astype(int), A[0]]
    check_same(lambda a: (a * 2 + 1, a.strides, a.flags.writeable), *((a,) for a in arrays))
    check_same(lambda a: a * 2, (A,), (torch.ones(2),), (3.0,), (np.float64(3),), ([1],))


def test_scalars_are_told_apart_by_value_and_type() -> None:
    """Known scalars are constants: signed zeros, NaN and types are other constants."""
    values = [0.0, np.float64(0.0), np.float64(-0.0), np.float32(0), np.float64("nan"), np.int64(0)]
    check_same(lambda a, s: (a * s, np.copysign(1, s) * a, s), *((A, s) for s in values))


def test_sizes_that_vary() -> None:
    """Numbers and tensors that become symbolic meet arrays, which do not."""

    def mixed(a: Any, n: int, t: Any) -> Any:
        return a * n + n, t.numpy() * n, np.zeros(n), a[:n]

    check_same(mixed, *((np.arange(6.0), n, torch.ones(n)) for n in (3, 4, 5, 6)))
    check_same(lambda x, s: x * s + np.float32(s), *((V, s) for s in (1.5, 2.5, 3.5)))
