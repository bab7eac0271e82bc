"""The frame of code that goes on from a point: how values arrive, and where they belong.

All values arrive in one list, the only argument: cells, bound locals, stack. The code starts by
emptying it into the frame's first slots, so that what the frame lets go of dies then, whoever holds
the list. The frame has the original's slots in the original's order, and, only where more values
arrive than there are locals, extra slots between the locals and the cells. The code goes on by
loading the stack, moving what is not in its slot, and clearing the slots that have no value in the
original. So `locals()`, tracebacks, and `super()` see what they would see in the original frame.
"""

import inspect
from types import CodeType

from dynacap.errors import ResumeError
from dynacap.hook.bodies import is_body
from dynacap.opcodes import Instruction
from dynacap.opcodes.analysis import Kind, Stack
from dynacap.opcodes.assemble import Assembler
from dynacap.opcodes.versions import version
from dynacap.resume.point import Point, argument_cells

_CALL_FLAGS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
GENERATOR_FLAGS = (
    inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class Layout:
    """Slots of the frame, and what it takes to fill them."""

    def __init__(self, code: CodeType, point: Point) -> None:
        possible = set(range(code.co_nlocals)) - set(argument_cells(code).values())
        if point.bound != tuple(sorted(possible.intersection(point.bound))):
            # A value in the slot of a cell would crash the interpreter.
            raise ResumeError(f"{code.co_qualname}: {point} binds what is no local of its own")
        self.code = code
        self.point = point
        self.cells = len(code.co_cellvars) + len(code.co_freevars)
        self.stack_slots = self._stack_slots()
        self.count = self.cells + len(point.bound) + len(self.stack_slots)
        self.shift = max(0, max(self.count, 1) - code.co_nlocals)
        self.homes = self._homes()

    def _stack_slots(self) -> dict[int, int]:
        """Map the stack positions that are not NULL to the slots in which they arrive."""
        first = self.cells + len(self.point.bound)
        nulls = set(self.point.nulls)
        present = [place for place in range(self.point.depth) if place not in nulls]
        return {place: first + rank for rank, place in enumerate(present)}

    def _homes(self) -> list[int]:
        """Return where each arriving cell and local belongs, in order of arrival."""
        arguments = argument_cells(self.code)
        homes: list[int] = []
        slot = self.code.co_nlocals + self.shift
        for cell in range(self.cells):
            if cell in arguments:
                homes.append(arguments[cell])
            else:
                homes.append(slot)
                slot += 1
        return homes + list(self.point.bound)

    def local_slot(self, local: int) -> int:
        """Return the slot in which a bound local arrives."""
        return self.cells + self.point.bound.index(local)

    def arrive(self, out: Assembler) -> None:
        """Write what empties the list that holds the values into the first slots."""
        out.op("LOAD_FAST", 0)
        out.op("COPY", 1)
        out.op("UNPACK_SEQUENCE", self.count)
        for slot in range(self.count):
            out.op("STORE_FAST", slot)
        if not self.count:
            out.op("DELETE_FAST", 0)
        for _ in ("start", "stop"):
            out.constant(None)
        out.op("BUILD_SLICE", 2)
        out.op("DELETE_SUBSCR")

    def settle(self, out: Assembler) -> None:
        """Write what moves the cells and locals to their places and clears all else."""
        moves = [(slot, home) for slot, home in enumerate(self.homes) if slot != home]
        for slot, _ in moves:
            out.op("LOAD_FAST", slot)
        for _, home in reversed(moves):
            out.op("STORE_FAST", home)
        for slot in sorted(set(range(self.count)) - set(self.homes)):
            out.op("DELETE_FAST", slot)

    def mark_cells(self, out: Assembler, *after: str) -> None:
        """Write, and jump over, the MAKE_CELLs by which frames know that cells are made."""
        skipped = Assembler(out.constants)
        for cell in range(len(self.code.co_cellvars)):
            skipped.op("MAKE_CELL", self.homes[cell])
        for op in after:
            skipped.op(op)
        if skipped.here:
            out.jump("JUMP", skipped.here)
            out.raw(skipped.written)

    def mark_frame(self, out: Assembler) -> None:
        """Write, and jump over, also the RESUME after which a frame shows in tracebacks."""
        self.mark_cells(out, "RESUME")

    def push(self, out: Assembler, place: int, kinds: Stack) -> None:
        """Write what pushes the item of one stack position."""
        kind = kinds[place]
        if place not in self.stack_slots:
            out.op("PUSH_NULL")
            return
        if kind is Kind.SAVED_COPY:
            saved = max(below for below in range(place) if kinds[below] is Kind.SAVED)
            out.op("COPY", sum(1 for one in range(saved, place) if one in self.stack_slots))
            return
        out.op("LOAD_FAST", self.stack_slots[place])
        if kind is Kind.SAVED:
            out.op("PUSH_EXC_INFO")
            out.op("POP_TOP")

    def original(self, start: int, end: int) -> bytearray:
        """Return original bytes, with the operands that name cells' slots set right."""
        code = bytearray(self.code.co_code[start:end])
        if self.shift:
            _shift_slots(code, self.shift, self.code)
        return code

    def operand(self, instruction: Instruction) -> int:
        """Return the number that is the operand of an original instruction."""
        code = self.code.co_code[instruction.offset : instruction.lasti + 2]
        return int.from_bytes(code[1::2], "big")

    def build(
        self, out: Assembler, stack: int, lines: bytes, exceptions: bytes, generator: bool = False
    ) -> CodeType:
        """Return the code object; `stack` is how many slots the written part needs."""
        code = self.code
        names = code.co_varnames
        if is_body(code) and not self.point.bound:
            # Variables of inlined comprehensions; 3.12 would take those names off the namespace.
            names = tuple(name if name in code.co_cellvars else f".{name}" for name in names)
        extra = tuple(f".{number}." for number in range(self.shift))
        flags = code.co_flags & ~_CALL_FLAGS
        return code.replace(
            co_code=bytes(out.written),
            co_argcount=1,
            co_posonlyargcount=0,
            co_kwonlyargcount=0,
            co_nlocals=code.co_nlocals + self.shift,
            co_varnames=names + extra,
            co_flags=flags if generator else flags & ~GENERATOR_FLAGS,
            co_stacksize=max(code.co_stacksize, stack) + self.count,
            co_consts=tuple(out.constants),
            co_linetable=lines,
            co_exceptiontable=exceptions,
        )


def _shift_slots(code: bytearray, shift: int, owner: CodeType) -> None:
    """Add `shift` to every operand that is the slot of a cell, in place.

    The cell of an argument is in the argument's slot, which does not move.
    """
    here = version()
    offset = 0
    extended: list[int] = []
    while offset < len(code):
        op = code[offset]
        if op == here.extended_arg:
            extended.append(offset + 1)
            offset += 2
            continue
        if op in here.slot_operands:
            _add(code, [*extended, offset + 1], shift, owner)
        elif op in here.slot_pairs:
            pair = bytearray(divmod(code[offset + 1], 16))
            for digit in (0, 1):
                _add(pair, [digit], shift, owner, limit=16)
            code[offset + 1] = pair[0] << 4 | pair[1]
        extended = []
        offset += 2 + 2 * here.caches[op]


def _add(code: bytearray, digits: list[int], shift: int, owner: CodeType, limit: int = 256) -> None:
    """Add to the slot whose base-256 digits stand at these offsets, the highest first."""
    value = sum(code[at] << 8 * rank for rank, at in enumerate(reversed(digits)))
    if value < owner.co_nlocals:
        return
    value += shift
    if value >= limit ** len(digits):
        raise ResumeError(f"{owner.co_qualname}: too many locals to make room for more")
    for rank, at in enumerate(reversed(digits)):
        code[at] = value >> 8 * rank & 0xFF
