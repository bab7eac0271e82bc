"""``id`` and address hashes as values that may be compared and looked up, not computed with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from dynacap.values.base import Value, fields
from dynacap.values.recipe import Rebuildable, Recipe
from dynacap.values.tracer import Tracer


@fields
class IdentityValue(Rebuildable):
    """``id(obj)``, or ``hash(obj)`` where that is made of the address: a number that stands for
    one object.
    """

    cls: ClassVar[type] = int
    function: Callable[[Any], int]
    obj: Value

    def key(self) -> tuple[Any, Value]:
        """What stands for it as a dict key."""
        return self.function, self.obj

    def recipe(self, t: Tracer) -> Recipe:
        return self.function, [self.obj]
