"""How torch's dtypes are spelled in C: in memory, in registers, and from one to the other.

Half-precision numbers are computed as float.  A value of theirs is rounded when it is stored or
cast, not after each operation: one rounding where eager has several.
"""

from __future__ import annotations

import ctypes
import math

import torch

STORED = {
    torch.float32: "float",
    torch.float64: "double",
    torch.bfloat16: "bf16",
    torch.float16: "f16",
    torch.bool: "bool",
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
}
HALVES = (torch.bfloat16, torch.float16)
COMPUTED = {**STORED, torch.bfloat16: "float", torch.float16: "float"}
SUFFIX = {
    "float": "f32", "double": "f64", "bool": "bool", "uint8_t": "u8", "int8_t": "i8",
    "int16_t": "i16", "int32_t": "i32", "int64_t": "i64",
}  # fmt: skip


def suffix(dtype: torch.dtype) -> str:
    """What the functions for a dtype are named by."""
    return SUFFIX[COMPUTED[dtype]]


def loaded(text: str, dtype: torch.dtype) -> str:
    """A value of memory as a register holds it."""
    return f"from_{STORED[dtype]}({text})" if dtype in HALVES else text


def stored(text: str, dtype: torch.dtype) -> str:
    """A value of a register as memory holds it."""
    return f"to_{STORED[dtype]}({text})" if dtype in HALVES else text


def cast(text: str, source: torch.dtype, target: torch.dtype) -> str:
    """A conversion as torch does it."""
    if target in HALVES:
        return loaded(stored(text, target), target)
    if target is torch.bool:
        return f"({text} != 0)"
    if source.is_floating_point and not target.is_floating_point:
        wide = 64 if target in (torch.int64, torch.uint8) else 32
        return f"({COMPUTED[target]})whole{wide}_{suffix(source)}({text})"
    if COMPUTED[source] == COMPUTED[target]:
        return text
    return f"({COMPUTED[target]})({text})"


def literal(value: bool | int | float, dtype: torch.dtype) -> str:
    """A constant."""
    if dtype is torch.bool:
        return "true" if value else "false"
    if not dtype.is_floating_point:
        return _integer(int(value), dtype)
    end = "" if dtype is torch.float64 else "f"
    if math.isnan(value):
        return f'__builtin_nan{end}("")'
    if math.isinf(value):
        return f"{'-' * (value < 0)}__builtin_inf{end}()"
    text = repr(float(value)) if dtype is torch.float64 else _float32(value)
    return f"({text}{end})" if value < 0 or text[0] == "-" else f"{text}{end}"


def _float32(value: float) -> str:
    """The shortest text of a number as torch rounds it: C would round the text of a double, which
    may lie on the other side of what is halfway between two."""
    exact = ctypes.c_float(value).value
    texts = (repr(float(f"{exact:.{digits}g}")) for digits in range(6, 10))
    return next(text for text in texts if ctypes.c_float(float(text)).value == exact)


def _integer(value: int, dtype: torch.dtype) -> str:
    if dtype is torch.int64:
        return "INT64_MIN" if value == -(2**63) else f"INT64_C({value})"
    return f"({COMPUTED[dtype]}){value}" if dtype is not torch.int32 else _int32(value)


def _int32(value: int) -> str:
    return "INT32_MIN" if value == -(2**31) else str(value)
