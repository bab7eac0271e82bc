"""The guard on a NumPy array's metadata."""

from dataclasses import dataclass, field
from typing import Any

from dynacap.guards.kinds import Origin, SourceGuard, register
from dynacap.guards.ref import Ref, describe


@register
@dataclass(frozen=True)
class Array(SourceGuard):
    """All that a graph relies on in an array: its class, dtype, shape, strides and writeability.

    Fields are read only from what is of the very class, which runs no user code.
    """

    kind = "array"
    expected: Ref
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool
    origin: Origin | None = field(default=None, compare=False)

    @property
    def refs(self) -> tuple[Ref, ...]:
        return (self.expected,)

    def holds(self, *values: object) -> bool:
        array: Any = values[0]
        return (
            self.expected.refers_to(type(array))
            and array.shape == self.shape
            and array.dtype == self.dtype
            and array.strides == self.strides
            and array.flags.writeable == self.writeable
            and array.flags.aligned
        )

    def expectation(self) -> str:
        flag = "" if self.writeable else ", read only"
        return (
            f"is a {self.expected!r} of {self.dtype}, shape {self.shape}, strides"
            f" {self.strides}{flag}"
        )

    def finding(self, *values: object) -> str:
        array: Any = values[0]
        if not self.expected.refers_to(type(array)):
            return f"a {describe(type(array))}"
        flag = "" if array.flags.writeable else ", read only"
        return f"{array.dtype}, shape {array.shape}, strides {array.strides}{flag}"
