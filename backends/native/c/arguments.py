"""How the arguments of an ATen operator are spelled in C: for its shim, and for the dispatcher.

Both follow the operator's schema, type by type; both tables lack what cannot be passed that way,
and :class:`NotInC` says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynacap.backends.native.c.sizes import size_text
from dynacap.backends.native.loops.program import Buffer, Number

Handle = Callable[[Buffer], str]  # the C expression of a buffer's tensor


class NotInC(Exception):
    """An argument that can only be passed from Python."""


_SCALAR_TYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool"
    " qint8 quint8 qint32 bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16"
    " float8_e5m2 float8_e4m3fn float8_e5m2fnuz float8_e4m3fnuz uint16 uint32 uint64"
).split()
DTYPE_CODES = {
    getattr(torch, name): code for code, name in enumerate(_SCALAR_TYPES) if hasattr(torch, name)
}
_MEMORY_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}


def _int(value: Any) -> str:
    if isinstance(value, bool | float | complex | str | Buffer):
        raise NotInC(f"{value!r} for an int")
    return size_text(value)


def _bool(value: Any) -> str:
    return str(int(bool(value)))


def float_text(value: float) -> str:
    """A number as a C constant of type double."""
    value = float(value)
    if math.isfinite(value):
        return value.hex()
    return '__builtin_nan("")' if math.isnan(value) else f"{'-' * (value < 0)}__builtin_inf()"


def _float(value: Any) -> str:
    if isinstance(value, Number):
        return value.name
    if not isinstance(value, int | float):
        raise NotInC(f"{value!r} for a float")
    return float_text(value)


def _number(value: Any) -> str:
    # The shims take each number as a double, and an operator asks whether it is an integer.
    if not isinstance(value, float | Number):
        raise NotInC(f"{value!r} as a double")
    return _float(value)


def _string(value: Any) -> str:
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _layout(value: Any) -> str:
    if value is not torch.strided:
        raise NotInC(f"layout {value}")
    return "0"


def _none_only(value: Any) -> str:
    raise NotInC(f"{value!r}")


def _dtype(value: Any) -> str:
    """A dtype's number; the default of a schema is one already."""
    return str(DTYPE_CODES.get(value, value))


# schema type: (C type, value → text)
_PLAIN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "int": ("int64_t", _int),
    "SymInt": ("int64_t", _int),
    "bool": ("int32_t", _bool),
    "float": ("double", _float),
    "number": ("double", _number),
    "Scalar": ("double", _number),
    "str": ("const char*", _string),
    "ScalarType": ("int32_t", _dtype),
    "MemoryFormat": ("int32_t", lambda value: str(_MEMORY_FORMATS[value])),
    "Layout": ("int32_t", _layout),
    "Generator": ("AtenGeneratorHandle", _none_only),
    "Device": ("int32_t", _none_only),
}


def inner_type(kind: torch.Type, word: str) -> Any:
    """The ``T`` of a schema's ``Optional[T]`` or ``List[T]``; None for other types."""
    return kind.getElementType() if kind.kind() == word else None


def shim_arguments(kind: Any, value: Any, handle: Handle) -> list[tuple[str, str]]:
    """The C parameters, type and text, that one argument of a schema becomes in a shim."""
    inner = inner_type(kind, "OptionalType")
    if inner is not None:
        return _optional(inner, value, handle)
    inner = inner_type(kind, "ListType")
    if inner is not None:
        return _list(inner, value, handle)
    return [_single(kind, value, handle)]


def _single(kind: Any, value: Any, handle: Handle) -> tuple[str, str]:
    name = str(kind)
    if name == "Tensor":
        if not isinstance(value, Buffer):
            raise NotInC(f"{value!r} for a tensor")
        return "AtenTensorHandle", handle(value)
    if name not in _PLAIN:
        raise NotInC(f"an argument of type {name}")
    ctype, text = _PLAIN[name]
    return ctype, text(value)


def _optional(kind: Any, value: Any, handle: Handle) -> list[tuple[str, str]]:
    element = inner_type(kind, "ListType")
    if element is not None:
        ctype = _element_type(element)
        if value is None:
            return [(f"const {ctype}**", "0"), ("int64_t", "0")]
        (_, text), length = _list(element, value, handle)
        return [(f"const {ctype}**", f"&(const {ctype}*){{{text}}}"), length]
    if str(kind) == "Device":
        if value is not None:
            raise NotInC("a device")
        return [("int32_t*", "0"), ("int32_t", "0")]
    if value is None:
        return [(f"{_element_type(kind)}*", "0")]
    ctype, text = _single(kind, value, handle)
    return [(f"{ctype}*", f"&({ctype}){{{text}}}")]


def _element_type(kind: Any) -> str:
    if str(kind) == "Tensor":
        return "AtenTensorHandle"
    if str(kind) not in _PLAIN:
        raise NotInC(f"an argument of type {kind}")
    return _PLAIN[str(kind)][0]


def _list(kind: Any, value: Sequence[Any], handle: Handle) -> list[tuple[str, str]]:
    if not isinstance(value, list | tuple):
        raise NotInC(f"{value!r} for a list")
    inner = inner_type(kind, "OptionalType")
    if inner is not None:
        ctype = f"const {_element_type(inner)}*"
        texts = [
            "0"
            if item is None
            else f"&({_element_type(inner)}){{{_single(inner, item, handle)[1]}}}"
            for item in value
        ]
        return [(f"{ctype}*", f"({ctype}[]){{{', '.join(texts) or '0'}}}"), _length(value)]
    ctype = _element_type(kind)
    texts = [_single(kind, item, handle)[1] for item in value]
    return [(f"const {ctype}*", f"({ctype}[]){{{', '.join(texts) or '0'}}}"), _length(value)]


def _length(value: Sequence[Any]) -> tuple[str, str]:
    return "int64_t", str(len(value))


def stable_value(kind: Any, value: Any, handle: Handle) -> str:
    """One argument as a StableIValue; what owns memory in it is the dispatcher's to free."""
    inner = inner_type(kind, "OptionalType")
    if inner is not None:
        return "0" if value is None else f"dynacap_some({stable_value(inner, value, handle)})"
    inner = inner_type(kind, "ListType")
    if inner is not None:
        if not isinstance(value, list | tuple):
            raise NotInC(f"{value!r} for a list")
        items = ", ".join(stable_value(inner, item, handle) for item in value)
        return f"dynacap_list({len(value)}, (Value[]){{{items or '0'}}})"
    if str(kind) in ("number", "Scalar"):
        raise NotInC("torch's dispatcher takes no number of unknown type from C")
    ctype, text = _single(kind, value, handle)
    return _STABLE[ctype](text) if ctype in _STABLE else text


_STABLE: dict[str, Callable[[str], str]] = {
    "AtenTensorHandle": lambda text: f"dynacap_own({text})",
    "const char*": lambda text: f"dynacap_string({text})",
    "double": lambda text: f"dynacap_double({text})",
}
