"""A frame under symbolic execution: locals, cells, value stack, and where it stands."""

from __future__ import annotations

from typing import Final

from dynacap.opcodes.code import Code, decode
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Sentinel, Value
from dynacap.values.container import DictValue
from dynacap.values.function import FunctionValue, GeneratorValue

StackItem = Value | Sentinel


class PreviousException(Value):
    """The exception that was being handled before; PUSH_EXC_INFO leaves it on the stack.

    ``current`` is the one whose handling began there.  ``was_outer``: the one before was not the
    generator's own but that of who had resumed it.
    """

    __slots__ = ("current", "exc", "was_outer")

    def __init__(self, exc: Value | None, current: Value) -> None:
        self.source = None
        self.exc = exc
        self.current = current
        self.was_outer = False

    @property
    def cls(self) -> type:
        return type(None) if self.exc is None else self.exc.cls


class Frame:
    """One activation of a code object.  ``pc`` is the next instruction, ``index`` the current."""

    __slots__ = (
        "builtins",
        "cells",
        "code",
        "function",
        "generator",
        "globals",
        "index",
        "instructions",
        "locals",
        "pc",
        "stack",
    )

    def __init__(
        self,
        function: FunctionValue,
        globals_: DictValue,
        builtins: DictValue,
        locals_: list[Value | None],
    ) -> None:
        code: Code = decode(function.code)
        self.function = function
        self.globals = globals_
        self.builtins = builtins
        self.code = code
        self.instructions: list[Instruction] = code.instructions
        self.locals = locals_
        count = len(function.code.co_cellvars) + len(function.code.co_freevars)
        # Cells; while an inlined comprehension uses the place of one, the value that it has there.
        self.cells: list[Value | None] = [None] * count
        self.stack: list[StackItem] = []
        self.pc = 0
        self.index = 0
        self.generator: GeneratorValue | None = None

    def push(self, value: StackItem) -> None:
        """Push on the value stack."""
        self.stack.append(value)

    def pop(self) -> Value:
        """Pop a value; NULL cannot be there."""
        value = self.stack.pop()
        assert isinstance(value, Value)
        return value

    def pop_many(self, count: int) -> list[Value]:
        """Pop ``count`` values, in the order they were pushed."""
        if not count:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken  # type: ignore[return-value]

    def line(self) -> int:
        """The user's line of the current instruction."""
        line = self.instructions[self.index].line
        return line if line is not None else self.function.code.co_firstlineno


RETURN: Final = Sentinel("RETURN")
YIELD: Final = Sentinel("YIELD")
