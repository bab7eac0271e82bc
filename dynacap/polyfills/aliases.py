"""A class with its parameters, such as ``list[int]``, when it is called."""

from __future__ import annotations

import types
from typing import Any

from dynacap.values.natives import polyfill


@polyfill(types.GenericAlias.__call__)
def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
    """An instance that remembers what it was made by, if it can."""
    made = self.__origin__(*args, **kwargs)
    try:
        made.__orig_class__ = self
    except (AttributeError, TypeError):
        pass
    return made
