"""``collections.Counter``'s inner loop."""

import collections
from collections.abc import Iterable
from typing import Any

from dynacap.values.natives import polyfill

_COUNT_ELEMENTS: Any = vars(collections)["_count_elements"]


@polyfill(_COUNT_ELEMENTS)
def count_elements(mapping: dict[Any, int], iterable: Iterable[Any]) -> None:
    """Count each element into the mapping."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1
