"""Values in messages: short, on one line, and without running a user's ``__repr__``."""

import reprlib

from dynacap.guards.constant import is_constant
from dynacap.guards.raw import MISSING
from dynacap.guards.ref import describe

_short = reprlib.Repr()
_short.maxstring = _short.maxother = 60
_short.maxtuple = _short.maxlist = _short.maxdict = _short.maxset = 8

_CONTAINERS = (list, tuple, set, frozenset)


def show(value: object) -> str:
    """A constant as Python writes it, a container by its items, anything else by its type."""
    if value is MISSING:
        return "nothing there"
    if is_constant(value):
        return _short.repr(value)
    if type(value) in _CONTAINERS:
        return _items(value)  # type: ignore[arg-type]
    if type(value) is dict:
        return f"a dict of {len(value)} items"
    return describe(value)


def _items(value: "list[object] | tuple[object, ...] | set[object]", limit: int = 8) -> str:
    shown = [show(item) if type(item) not in _CONTAINERS else "..." for item in list(value)[:limit]]
    rest = len(value) - limit
    return f"{type(value).__name__} of {', '.join(shown)}" + (
        f" and {rest} more" if rest > 0 else ""
    )
