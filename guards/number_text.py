"""What Python computes of numbers and asks of them, as text: for guards that compute it again.

A text is a pair: over the variables of the guard, and the same in the user's words.
"""

import math
import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

Text = tuple[str, str]

_MAX_LENGTH = 1000  # numbers that are used twice are written twice
# How a comparison is written, and how one that does not hold is told.
_SIGNS: dict[Callable[..., Any], tuple[str, str]] = {
    operator.lt: ("<", ">="),
    operator.le: ("<=", ">"),
    operator.eq: ("==", "!="),
    operator.ne: ("!=", "=="),
    operator.gt: (">", "<="),
    operator.ge: (">=", "<"),
}


def literal(value: float) -> Text | None:
    """A number that is known; None for an int that is too large for any float."""
    if type(value) is int and abs(value) > sys.float_info.max:
        return None
    told = repr(value)
    written = told if math.isfinite(value) else f"float('{told}')"
    return f"({written})" if written[0] == "-" else written, told  # a power binds closer


def filled(pattern: str, parts: Iterable[Text | None]) -> Text | None:
    """The text with these at the places of ``{}``; None if one is missing, or it would be long."""
    known = [part for part in parts if part is not None]
    if len(known) < pattern.count("{}") or sum(len(part[0]) for part in known) > _MAX_LENGTH:
        return None
    checked, told = zip(*known, strict=True)
    return pattern.format(*checked), pattern.format(*told)


def compared(
    real: Callable[..., Any], answer: bool, left: Text | None, right: Text | None
) -> Text | None:
    """That a comparison gives this answer.  It is checked as it was asked, since of what is no
    number neither it nor its contrary holds."""
    sign, contrary = _SIGNS[real]
    asked = filled(f"{{}} {sign} {{}}", (left, right))
    if asked is None or answer:
        return asked
    told = filled(f"{{}} {contrary} {{}}", (left, right))
    return told and (f"not {asked[0]}", told[1])
