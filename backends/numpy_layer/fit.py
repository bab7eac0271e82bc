"""Whether a call of NumPy may be made by torch's layer instead, and what has to be done around it.

The call is made on twins by NumPy itself (:func:`run_twins`) and, by the caller, on fakes by the
layer.  What NumPy gave is what the result is held to (:func:`finish`): where the layer gives
another dtype or shape, or a copy for a view, the call is unfit; where it gives a view for a copy or
another layout, the result is laid out anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch

from dynacap.backends.numpy_layer.memory import TORCH_DTYPES, Twin, address_of, root
from dynacap.backends.numpy_layer.nodes import Casts, Finish
from dynacap.backends.numpy_layer.operations import OPERATIONS

Pair = tuple[torch.Tensor, Twin]  # an array of the call, in the layer's world and in NumPy's

_ERRORS: list[Any] = [("error", None, Warning, None, 0)]
UFUNCS: dict[str, np.ufunc] = {
    name: getattr(np, name) for name in OPERATIONS if isinstance(getattr(np, name, None), np.ufunc)
}
# What the layer gives and NumPy does, where only the name of the type differs.
_SAME_NUMBERS = {(torch.int64, torch.uint64), (torch.uint8, torch.bool)}
_BY_ZERO = frozenset({"floor_divide", "remainder", "mod", "fmod", "divmod"})
_SHIFTS = frozenset({"left_shift", "right_shift"})
# Where the layer computes something else than NumPy, or its kernels lack the kind of number.
_UNFIT = {
    "b": frozenset({"floor", "ceil", "trunc"}),
    "c": frozenset(
        "maximum minimum fmax fmin greater greater_equal less less_equal sign rint power"
        " float_power diff reciprocal ptp prod cumprod ndarray_prod ndarray_cumprod".split()
    ),
}


class UnfitError(Exception):
    """The call is left to NumPy; with the reason of the break."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


def warns_at_most() -> bool:
    """Whether NumPy's floating-point errors do nothing but warn; a graph does not see them."""
    return {*np.geterr().values()} <= {"warn", "ignore"}


def run_twins(name: str, real: Callable[..., Any], args: Any, kwargs: Any) -> Twin:
    """NumPy's own result; a call that fails or warns is unfit."""
    if not warns_at_most():
        raise UnfitError("numpy-error", "np.seterr has errors raised or reported")
    if name.startswith("linalg_"):
        for twin in args:
            _make_regular(twin)
    before, warnings.filters = warnings.filters, _ERRORS
    try:
        with np.errstate(all="ignore"):
            return real(*args, **kwargs)
    except Exception as error:
        raise UnfitError("numpy-error", f"{name}: {type(error).__name__}: {error}") from error
    finally:
        warnings.filters = before


def casts(name: str, args: Any, kwargs: Any, twin: Twin) -> Casts:
    """The types in which NumPy computes, for as many operands as it says; ``args`` are twins."""
    ufunc = UFUNCS.get(name)
    if ufunc is not None and ufunc.signature is None and "dtype" not in kwargs:
        kinds = [_kind(arg) for arg in args[: ufunc.nin]]
        found = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))[: ufunc.nin]
    elif name in ("array", "asarray") and isinstance(args[0], (list, tuple)):
        found = (twin.dtype,)
    else:
        found = ()
    first = next((arg.dtype for arg in args if isinstance(arg, np.ndarray)), np.dtype(float))
    if _is_unfit(name, found[0] if found else first, args):
        raise UnfitError("numpy-differs", f"{name}: other values for this type of number")
    for arg, dtype in zip(args, found, strict=False):
        _check_fits(arg, dtype)
    return tuple(TORCH_DTYPES[dtype] for dtype in found)


def _kind(twin: Twin) -> Any:
    """An operand as NumPy's type resolution wants it: a dtype, or a weak type of Python's."""
    return type(twin) if type(twin) in (int, float, complex) else np.asarray(twin).dtype


def _check_fits(twin: Twin, dtype: np.dtype[Any]) -> None:
    if dtype not in TORCH_DTYPES:
        raise UnfitError("numpy-differs", f"torch has no {dtype}")
    if type(twin) is int and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not limits.min <= twin <= limits.max:
            raise UnfitError("numpy-differs", f"{twin} does not fit into {dtype}")


def _is_unfit(name: str, dtype: np.dtype[Any], args: Any) -> bool:
    """Whether the layer's values for this type of numbers are not NumPy's."""
    if name in _UNFIT.get(dtype.kind, ()):
        return True
    if dtype.kind not in "biu" or name not in {*_BY_ZERO, *_SHIFTS, "power"}:
        return False
    # Integers divided by zero, shifted too far or raised to a negative power.
    number = args[1]
    if not isinstance(number, (int, np.integer)):
        return True
    most = 8 * dtype.itemsize - 1 if name in _SHIFTS else number
    return bool(number < 0 or number > most or (number == 0 and name in _BY_ZERO))


def _make_regular(twin: Twin) -> None:
    """Elements with which linear algebra does not fail: a matrix with an inverse."""
    if isinstance(twin, np.ndarray) and twin.flags.writeable and twin.ndim >= 2:
        twin[...] = np.eye(*twin.shape[-2:])


# -- results ---------------------------------------------------------------------------------------
def is_array(twin: Twin) -> bool:
    """Whether it is an array or a scalar of NumPy's."""
    return isinstance(twin, (np.ndarray, np.generic))


def has_tensors(found: Any) -> bool:
    """Whether the layer gave a tensor, or a sequence with one."""
    parts = found if isinstance(found, (tuple, list)) else (found,)
    return any(isinstance(part, torch.Tensor) for part in parts)


def finish(name: str, found: Any, twin: Twin, arrays: list[Pair]) -> tuple[Finish | None, ...]:
    """What has to be done with each tensor that the layer gave, for it to be NumPy's result."""
    if is_array(twin) and isinstance(found, torch.Tensor):
        return (_finish_one(name, found, twin, arrays),)
    if isinstance(twin, (tuple, list)) and isinstance(found, (tuple, list)):
        pairs = list(zip(found, twin, strict=False))
        if len(found) == len(twin) and all(map(_comparable, pairs)):
            return tuple(_finish_one(name, tensor, part, arrays) for tensor, part in pairs)
    if (name[-1] == "_") == (twin is None) and found is None:
        return ()
    raise UnfitError("numpy-differs", f"{name}: torch's layer gives {type(found).__name__}")


def _comparable(pair: tuple[Any, Any]) -> bool:
    return isinstance(pair[0], torch.Tensor) and is_array(pair[1])


def _finish_one(name: str, fake: torch.Tensor, twin: Twin, arrays: list[Pair]) -> Finish | None:
    if any(fake is known and twin is other for known, other in arrays):
        return None
    wanted = TORCH_DTYPES.get(twin.dtype)
    same = fake.dtype == wanted or (fake.dtype, wanted) in _SAME_NUMBERS
    if wanted is None or not same or tuple(fake.shape) != twin.shape:
        text = f"{fake.dtype}{list(fake.shape)}, not {twin.dtype}{list(twin.shape)}"
        raise UnfitError("numpy-differs", f"{name}: torch's layer gives {text}")
    bases = [(known, other) for known, other in arrays if _storage(known) == _storage(fake)]
    if isinstance(twin, np.ndarray) and any(root(twin) is root(other) for _, other in arrays):
        if not any(_is_view(fake, twin, base, other) for base, other in bases):
            raise UnfitError("numpy-view", f"{name} gives a view that torch has not")
        return Finish(wanted, None) if any(fake is known for known, _ in arrays) else None
    odd = fake.is_conj() or fake.is_neg() or fake.dtype != wanted
    return Finish(wanted, strides(twin)) if bases or odd or fake.stride() != strides(twin) else None


def strides(twin: Twin) -> tuple[int, ...]:
    """Strides counted in elements, as torch counts them."""
    return tuple(step // twin.itemsize for step in twin.strides)


def _storage(fake: torch.Tensor) -> int:
    found: int = fake.untyped_storage()._cdata
    return found


def _is_view(fake: torch.Tensor, twin: Twin, base: torch.Tensor, other: Twin) -> bool:
    """Whether a view of torch's shows the elements of its base that NumPy's view shows."""
    if fake.is_conj() or fake.is_neg() or not isinstance(other, np.ndarray):
        return False
    steps: Iterable[Any] = zip(fake.shape, fake.stride(), strides(twin), strict=True)
    if not twin.size:
        return True
    if any(size > 1 and left != right for size, left, right in steps):
        return False
    start = base.storage_offset() * base.element_size()
    moved = fake.storage_offset() * fake.element_size() - start
    return bool(moved == address_of(twin) - address_of(other))
