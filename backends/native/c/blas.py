"""Products of matrices by the BLAS that torch brings, on plain memory.

The operators ``mm`` and its like come to one call of it as well, after they have looked at their
operands once more; for a small product that look takes longer than the product.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from dynacap.backends.native.loops.program import Buffer, Call

aten = torch.ops.aten
_ROUTINES = {torch.float32: "sgemm_", torch.float64: "dgemm_"}
_PRODUCTS = {aten.mm.default: 0, aten.bmm.default: 0, aten.addmm.default: 1}  # operands before
_MOST = 2**31 - 1  # what BLAS takes for a size
_WORTH_CORES = 1 << 22  # multiplications

Pointer = Callable[[Buffer], str]  # the C expression of where a buffer's memory begins


@dataclass(frozen=True)
class Matrix:
    """A matrix as BLAS sees it: rows ``step`` elements apart, or if it is turned, columns."""

    buffer: Buffer
    turned: bool
    step: int

    @property
    def letter(self) -> str:
        """What BLAS calls it."""
        return '"T"' if self.turned else '"N"'


@dataclass(frozen=True)
class Product:
    """``result = a @ b``, plus ``added`` if there is such."""

    result: Buffer
    a: Matrix
    b: Matrix
    added: Buffer | None

    def lines(self, pointer: Pointer) -> Iterator[str]:
        """The product as C."""
        rows, columns = self.result.shape[-2:]
        inner = self.a.buffer.shape[-1]
        kind = "double" if self.result.dtype is torch.float64 else "float"
        names = {"a": self.a.buffer, "b": self.b.buffer, "c": self.result}
        yield "{"
        for name, buffer in names.items():
            const = "" if name == "c" else "const "
            yield f"    {const}{kind} *{name} = ({kind} *){pointer(buffer)} + {buffer.offset};"
        if self.added is not None:
            yield from (f"    {line}" for line in self._start(kind, pointer))
        at = dict.fromkeys(names, "")
        if len(self.result.shape) == 3:
            count = self.result.shape[0]
            if count * rows * columns * inner >= _WORTH_CORES and count > 1:
                yield f"    #pragma omp parallel for if({count} >= omp_get_max_threads())"
            yield f"    for (int64_t i = 0; i < {count}; i++)"
            at = {name: f" + i * {buffer.strides[0]}" for name, buffer in names.items()}
        numbers = [f"&(int){{{n}}}" for n in (columns, rows, inner)]
        one, beta = (f"&({kind}){{{n}}}" for n in (1, int(self.added is not None)))
        steps = [f"&(int){{{n}}}" for n in (self.b.step, self.a.step, columns)]
        # It counts columns first, so that it is told of the transposed product.
        yield (
            f"    {_ROUTINES[self.result.dtype]}({self.b.letter}, {self.a.letter},"
            f" {', '.join(numbers)}, {one}, b{at['b']}, {steps[0]}, a{at['a']}, {steps[1]},"
            f" {beta}, c{at['c']}, {steps[2]});"
        )
        yield "}"

    def _start(self, kind: str, pointer: Pointer) -> Iterator[str]:
        """What is added, as what the result holds before."""
        assert self.added is not None
        rows, columns = self.result.shape
        down, along = _strides_in(self.added, 2)
        place = f"({kind} *){pointer(self.added)} + {self.added.offset}"
        yield f"const {kind} *added = {place};"
        if rows * columns >= _WORTH_CORES:
            yield "#pragma omp parallel for"
        yield f"for (int64_t i = 0; i < {rows}; i++)"
        yield f"    for (int64_t j = 0; j < {columns}; j++)"
        yield f"        c[i * {columns} + j] = added[i * {down} + j * {along}];"


def product_of(call: Call) -> Product | None:
    """The product that a call is, if BLAS can do it."""
    skipped = _PRODUCTS.get(call.target)
    if skipped is None or not all(factor == 1 for factor in call.kwargs.values()):
        return None
    (result,) = call.results
    if result is None or result.dtype not in _ROUTINES or not _has_blas(_ROUTINES[result.dtype]):
        return None
    if not all(map(_is_plain, (*call.buffers(), result))) or not result.numel:
        return None
    if any(operand.dtype is not result.dtype for operand in call.buffers()):
        return None  # the operator refuses them
    a, b = map(_matrix, call.args[skipped : skipped + 2])
    if (
        a is None
        or b is None
        or not a.buffer.numel
        or _matrix(result) != Matrix(result, False, result.shape[-1])
    ):
        return None
    return Product(result, a, b, call.args[0] if skipped else None)


def routine(product: Product) -> tuple[str, tuple[str, ...]]:
    """The function that it calls, and what that takes."""
    kind = "double" if product.result.dtype is torch.float64 else "float"
    number, factor, matrix = "const int *", f"const {kind} *", f"const {kind} *"
    letters, sizes = ("const char *",) * 2, (number,) * 3
    return _ROUTINES[product.result.dtype], (
        *letters, *sizes, factor, matrix, number, matrix, number, factor, f"{kind} *", number,
    )  # fmt: skip


def _is_plain(buffer: Buffer) -> bool:
    """Whether all sizes are known, BLAS has room for them, and the elements are in memory."""
    numbers = (*buffer.shape, *buffer.strides, buffer.offset)
    known = all(isinstance(n, int) for n in numbers) and buffer.numel <= _MOST
    return known and not buffer.negated


def _matrix(buffer: Buffer) -> Matrix | None:
    """How the last two dimensions lie, if that is a way which BLAS knows."""
    (rows, columns), (down, along) = buffer.shape[-2:], buffer.strides[-2:]
    for turned, (count, long, far, near) in enumerate(
        ((rows, columns, down, along), (columns, rows, along, down))
    ):
        step = max(long, 1) if count == 1 else far
        if (near == 1 or long == 1) and long <= step <= _MOST:
            return Matrix(buffer, bool(turned), step)
    return None


def _strides_in(buffer: Buffer, dims: int) -> tuple[int, ...]:
    """The strides with which a buffer broadcasts to so many dimensions."""
    own = [
        0 if size == 1 else stride
        for size, stride in zip(buffer.shape, buffer.strides, strict=True)
    ]
    return (*(0,) * (dims - len(own)), *own)


@functools.cache
def _has_blas(name: str) -> bool:
    """Whether the libraries that torch consists of have such a function."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        return hasattr(ctypes.CDLL(str(path)), name)
    except OSError:
        return False
