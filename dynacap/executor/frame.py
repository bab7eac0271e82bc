"""A frame under symbolic execution: locals, cells, value stack, and where it stands."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from dynacap.opcodes.code import Code, decode
from dynacap.opcodes.instruction import Instruction
from dynacap.values.base import Sentinel, Value, fields
from dynacap.values.container import DictValue
from dynacap.values.function import FunctionValue, GeneratorValue

StackItem = Value | Sentinel


@fields
class PreviousException(Value):
    """The exception that was being handled before; PUSH_EXC_INFO leaves it on the stack.

    ``current`` is the one whose handling began there.  ``was_outer``: the one before was not the
    generator's own but that of who had resumed it.
    """

    exc: Value | None
    current: Value
    was_outer: bool = False

    @property
    def cls(self) -> type:
        return type(None) if self.exc is None else self.exc.cls


@fields
class Frame:
    """One activation of a code object.  ``pc`` is the next instruction, ``index`` the current."""

    function: FunctionValue
    globals: DictValue
    builtins: DictValue
    locals: list[Value | None]
    namespace: Any = None  # of a body: the value in which it keeps its names
    code: Code = field(init=False)
    instructions: list[Instruction] = field(init=False)
    # Cells; while an inlined comprehension uses the place of one, the value that it has there.
    cells: list[Value | None] = field(init=False)
    stack: list[StackItem] = field(default_factory=list)
    pc: int = 0
    index: int = 0
    generator: GeneratorValue | None = None

    def __post_init__(self) -> None:
        code = self.function.code
        self.code = decode(code)
        self.instructions = self.code.instructions
        self.cells = [None] * (len(code.co_cellvars) + len(code.co_freevars))

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
