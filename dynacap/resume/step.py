"""Code that runs exactly one instruction of a frame and returns the state after it."""

from collections.abc import Callable
from types import CodeType, MethodType
from typing import Any

from dynacap.errors import ResumeError
from dynacap.opcodes import decode
from dynacap.opcodes.analysis import after
from dynacap.opcodes.assemble import Assembler
from dynacap.opcodes.canonical import falls
from dynacap.opcodes.versions import version
from dynacap.resume.builder import Step, StepBuilder
from dynacap.resume.moves import write_moves
from dynacap.resume.point import Point, by_point, checked_kinds

# What would have to leave this frame in its midst, or comes before a frame has its cells.
REFUSED = {
    "YIELD_VALUE": "a yield leaves the frame",
    "ASYNC_GEN_WRAP": "a yield leaves the frame",
    "SEND": "yield from and await leave the frame",
    "RETURN_GENERATOR": "the generator does not exist yet",
    "MAKE_CELL": "the frame's cells are not made yet",
    "COPY_FREE_VARS": "the frame's cells are not made yet",
    "STORE_CLOSURE": "it exchanges a cell",
    "LOAD_CLOSURE_AND_CLEAR": "it takes a cell away",
}


@by_point
def step_code(code: CodeType, point: Point) -> Step:
    """Return code that runs the one instruction at a point, and where that may lead."""
    pieces = decode(code).original(point.index)
    if (why := refusal(code, point.index)) is not None:
        raise ResumeError(f"{code.co_qualname}: {why}")
    step = StepBuilder(code, point, checked_kinds(code, point), pieces)
    if not write_moves(step):
        _WRITERS.get(pieces[0].op, _native)(step)
    return step.built()


def refusal(code: CodeType, index: int) -> str | None:
    """Return why no step is made of the original at an index, if none is."""
    reasons = (REFUSED.get(each.op) for each in decode(code).original(index))
    return next(filter(None, reasons), None)


def _native(step: StepBuilder) -> None:
    """Run the instruction as it is."""
    step.prepare()
    if step.instruction.op in version().real_bools:
        step.out.op("TO_BOOL")
    step.out.raw(step.layout.original(step.instruction.offset, step.instruction.end))
    end = step.out.here
    if step.instruction.op == "LOAD_SPECIAL":
        step.out.constant(_bound_method)
        step.out.op("SWAP", 3)
        step.out.op("CALL", 1)
    step.drop_fillers(len(step.kinds_after()))
    if falls(step.instruction):
        step.leave(step.out, step.pieces[-1].index + 1, step.kinds_after())
    step.handle(end)


def _value_only(step: StepBuilder) -> None:
    """Run a load without the NULL or method beside the value; the outcome's point has a NULL."""
    if len(step.pieces) == 1:
        _native(step)
        return
    write = version().value_only[step.instruction.op]
    step.prepare()
    step.out.op(*write(step.layout.operand(step.instruction)))
    end = step.out.here
    step.leave(step.out, step.pieces[-1].index + 1, step.kinds_after())
    step.handle(end)


def _bound_method(*found: Any) -> Any:
    """Return the method that LOAD_SPECIAL found: it comes bound, or its self and the function."""
    return MethodType(found[1], found[0]) if len(found) > 1 else found[0]


def _branch(step: StepBuilder) -> None:
    """Run a conditional jump: one outcome each way."""
    assert step.instruction.target is not None
    step.prepare()
    if step.instruction.op in version().real_bools:
        step.out.op("TO_BOOL")
    fall = Assembler(step.out.constants)
    step.leave(fall, step.point.index + 1, after(step.instruction, step.kinds))
    step.out.jump(step.instruction.op, fall.here)
    end = step.out.here
    step.out.raw(fall.written)
    if step.instruction.op == "FOR_ITER":
        for name in version().loop_end:
            step.out.op(name)
    step.leave(step.out, step.instruction.target, after(step.instruction, step.kinds, jump=True))
    step.handle(end)


def _reraise(step: StepBuilder) -> None:
    """Run RERAISE without the offset, which would be one of the step's and is the original's."""
    step.prepare()
    step.out.op("RERAISE", 0)
    step.handle(step.out.here)


_WRITERS: dict[str, Callable[[StepBuilder], None]] = {
    "LOAD_GLOBAL": _value_only,
    "LOAD_ATTR": _value_only,
    "LOAD_SUPER_ATTR": _value_only,
    "RERAISE": _reraise,
    **dict.fromkeys(
        (
            *(f"POP_JUMP_IF_{test}" for test in ("TRUE", "FALSE", "NONE", "NOT_NONE")),
            "JUMP_IF_TRUE_OR_POP",
            "JUMP_IF_FALSE_OR_POP",
            "FOR_ITER",
        ),
        _branch,
    ),
}
