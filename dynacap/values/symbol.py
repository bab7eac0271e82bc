"""A number that the graph computes with instead of knowing it: a size or an argument that varies.

It is a constant to everyone who asks for its value, and fixed from then on: the entry then holds
for that number alone.  Operations on tensors, arithmetic and comparisons do not ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynacap.guards.source import Source
from dynacap.values.base import Const, NotConstant, Value

_CLASSES = {"SymInt": int, "SymFloat": float, "SymBool": bool}


class SymbolValue(Const):
    """An ``int``, ``float`` or ``bool`` as a torch ``SymInt``, ``SymFloat`` or ``SymBool``.

    ``node`` gives it at run time: made by ``place`` when it is first wanted, for what comes from
    outside.  ``settle`` fixes the number, or raises NotConstant where it depends on data.
    ``operands`` are what a float was computed from, by the expression ``pattern`` ("{}": nothing
    known); ``hint`` is the number now, None where only a run of the graph tells.
    """

    __slots__ = ("_node", "_place", "_settle", "_settled", "hint", "operands", "pattern", "sym")

    def __init__(
        self,
        sym: Any,
        settle: Callable[[SymbolValue], Any],
        node: Any = None,
        place: Callable[[SymbolValue], Any] | None = None,
        source: Source | None = None,
    ) -> None:
        self.source = source
        self.sym = sym
        self.hint = sym.node.hint
        self.operands: tuple[Value, ...] = ()
        self.pattern = "{}"
        self._node = node
        self._place = place
        self._settle = settle
        self._settled: tuple[Any] | None = None

    @property
    def node(self) -> Any:
        """The node of the graph that gives the number."""
        if self._node is None:
            assert self._place is not None
            self._node = self._place(self)
        return self._node

    @property
    def cls(self) -> type:
        return _CLASSES[type(self.sym).__name__]

    @property
    def value(self) -> Any:
        """The number, fixed from now on."""
        if self._settled is None:
            self._settled = (self._settle(self),)
        return self._settled[0]

    def inside(self) -> Any:
        """The same for one that a container holds, which asks for all it holds: only if fixed."""
        if self._settled is None:
            raise NotConstant(self)
        return self._settled[0]

    @property
    def unknown(self) -> tuple[str, str]:
        """Why the graph breaks where the number is asked for that a tensor gives."""
        what = "branch" if self.cls is bool else "value"
        return f"data-dependent-{what}", f"{self.sym} is asked for, which a tensor's elements give"

    def describe(self) -> str:
        return str(self.sym)


def constant_inside(item: Value) -> Any:
    """The constant of what a container holds."""
    return item.inside() if type(item) is SymbolValue else item.constant()
