"""Types of the C module: fastcheck.c (glue), checker.c, entry_table.c."""

from collections.abc import Callable
from typing import Any, final

HAVE_DICT_TAG: int

class Checker:
    """checker.c, program.c, walk.c, recall.c"""

    def __new__(cls, description: dict[str, object]) -> Checker: ...
    @property
    def has_probe(self) -> bool: ...
    @property
    def recalled(self) -> int: ...
    def check(self, flat: tuple[object, ...], /) -> tuple[object, ...] | None: ...

@final
class Entry:
    """entry_table.c"""

    @property
    def checker(self) -> Any: ...
    @property
    def fn(self) -> Callable[..., object]: ...
    @property
    def hits(self) -> int: ...
    @property
    def dead(self) -> bool: ...

@final
class EntryTable:
    """entry_table.c"""

    def __new__(cls, miss: Callable[..., object]) -> EntryTable: ...
    @property
    def entries(self) -> tuple[Entry, ...]: ...
    @property
    def miss(self) -> Callable[..., object]: ...
    def add(self, checker: object, fn: Callable[..., object], /) -> Entry: ...
    def remove(self, entry: object, /) -> bool: ...
    def clear(self) -> None: ...
    def __call__(self, *flat: object) -> object: ...

class GraphCall:
    """graph_call.c"""

    def __new__(
        cls,
        graph: Callable[..., object],
        nslots: int,
        constants: tuple[object, ...],
        inputs: tuple[int, ...],
        noutputs: int,
        output: int,
        rest: Callable[..., object] | None,
        chosen: tuple[int, ...],
        recover: Callable[..., object] | None,
        again: Callable[..., object] | None,
        flat: tuple[int, ...],
    ) -> GraphCall: ...
    def __call__(self, *slots: object) -> Any: ...

def bind_torch(torch: object, /) -> None: ...
def find_tensor_layout(
    samples: tuple[tuple[object, ...], ...],
    negative: int,
    conjugate: int,
    leaves: tuple[object, object, object],
    /,
) -> tuple[bool, bool, bool]:
    """tensor_layout.c"""
