"""Arguments of nodes as Python expressions, a table by type."""

import math
from collections.abc import Callable
from typing import Any

from dynacap.fxlite.names import GlobalNames
from dynacap.fxlite.node import Node, base_name


def expression(value: Any, names: GlobalNames) -> str:
    """Source that evaluates to ``value``; nodes are locals."""
    if type(value) is Node:
        return names.locals[value]
    write = _WRITERS.get(type(value))
    if write is not None:
        return write(value, names)
    return _other(value, names)


def operand(value: Any, names: GlobalNames) -> str:
    """Like :func:`expression`, fit to stand beside an operator."""
    text = expression(value, names)
    return f"({text})" if text.startswith("-") else text


def receiver(value: Any, names: GlobalNames) -> str:
    """Like :func:`expression`, fit to stand before a dot or a bracket."""
    return names.locals[value] if type(value) is Node else f"({expression(value, names)})"


def _plain(value: object, names: GlobalNames) -> str:
    return repr(value)


def _float(value: float, names: GlobalNames) -> str:
    if math.isfinite(value):
        return repr(value)
    # repr loses the sign and the payload of a NaN; nothing in Python looks at the payload.
    text = "nan" if math.isnan(value) else repr(value)
    sign = "-" if math.isnan(value) and math.copysign(1.0, value) < 0 else ""
    return f"float('{sign}{text}')"


def _complex(value: complex, names: GlobalNames) -> str:
    return f"complex({_float(value.real, names)}, {_float(value.imag, names)})"


def _items(value: Any, names: GlobalNames) -> str:
    return ", ".join([expression(item, names) for item in value])


def _tuple(value: tuple[Any, ...], names: GlobalNames) -> str:
    return f"({_items(value, names)},)" if len(value) == 1 else f"({_items(value, names)})"


def _list(value: list[Any], names: GlobalNames) -> str:
    return f"[{_items(value, names)}]"


def _set(value: Any, names: GlobalNames) -> str:
    kind = type(value).__name__
    return (
        f"{kind}([{_items(value, names)}])"
        if kind == "frozenset" or not value
        else (f"{{{_items(value, names)}}}")
    )


def _dict(value: dict[Any, Any], names: GlobalNames) -> str:
    pairs = [f"{expression(k, names)}: {expression(v, names)}" for k, v in value.items()]
    return f"{{{', '.join(pairs)}}}"


def _slice(value: slice, names: GlobalNames) -> str:
    parts = (value.start, value.stop, value.step)
    return f"slice({', '.join(expression(part, names) for part in parts)})"


def _other(value: Any, names: GlobalNames) -> str:
    """Subclasses of the containers by their class; torch's constants; else the object itself."""
    kind = type(value)
    if isinstance(value, (tuple, list, dict)):
        made = names.reference(kind, base_name(kind))
        if hasattr(kind, "_fields"):
            return f"{made}({_items(value, names)})"
        inner = _dict(value, names) if isinstance(value, dict) else f"[{_items(value, names)}]"
        return f"{made}({inner})"
    if kind.__module__ == "torch" and kind.__name__ == "device":
        made = names.reference(kind, "device")
        text = f"{made}({str(value)!r})"
        return names.once(text, base_name(str(value).replace(":", "")))
    return names.reference(value, base_name(value if callable(value) else kind))


_WRITERS: dict[type, Callable[[Any, GlobalNames], str]] = {
    int: _plain,
    bool: _plain,
    str: _plain,
    bytes: _plain,
    type(None): _plain,
    type(Ellipsis): _plain,
    range: _plain,
    float: _float,
    complex: _complex,
    tuple: _tuple,
    list: _list,
    set: _set,
    frozenset: _set,
    dict: _dict,
    slice: _slice,
}
