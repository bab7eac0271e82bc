"""Code that runs exactly one instruction of a frame and returns the state after it."""

from collections.abc import Callable
from types import CodeType

from dynacap.errors import ResumeError
from dynacap.opcodes import decode
from dynacap.opcodes.analysis import after
from dynacap.opcodes.assemble import Assembler
from dynacap.opcodes.canonical import falls
from dynacap.opcodes.versions import version
from dynacap.resume.builder import Step, StepBuilder
from dynacap.resume.point import RETURN, Point, PointCache, checked_kinds

# What would have to leave this frame in its midst, or comes before a frame has its cells.
REFUSED = {
    "YIELD_VALUE": "a yield leaves the frame",
    "ASYNC_GEN_WRAP": "a yield leaves the frame",
    "SEND": "yield from and await leave the frame",
    "RETURN_GENERATOR": "the generator does not exist yet",
    "MAKE_CELL": "the frame's cells are not made yet",
    "COPY_FREE_VARS": "the frame's cells are not made yet",
}


def step_code(code: CodeType, point: Point) -> Step:
    """Return code that runs the one instruction at a point, and where that may lead."""
    return _BUILT.get(code, point)


def _build(code: CodeType, point: Point) -> Step:
    decoded = decode(code)
    instruction = decoded.instructions[point.index]
    if instruction.op in REFUSED:
        raise ResumeError(f"{code.co_qualname}: {REFUSED[instruction.op]}")
    if not (decoded.is_boundary(point.index) and decoded.is_boundary(point.index + 1)):
        raise ResumeError(f"{code.co_qualname}: {instruction} is a part of one of Python's")
    step = StepBuilder(code, point, checked_kinds(code, point), instruction)
    _WRITERS.get(instruction.op, _native)(step)
    return step.built()


def _native(step: StepBuilder) -> None:
    """Run the instruction as it is."""
    step.prepare()
    step.out.raw(step.layout.original(step.instruction.offset, step.instruction.end))
    end = step.out.here
    if falls(step.instruction):
        step.leave(step.out, step.point.index + 1, after(step.instruction, step.kinds))
    step.handle(end)


def _value_only(step: StepBuilder) -> None:
    """Run a load without the NULL or method beside the value; the outcome's point has a NULL."""
    write = version().value_only[step.instruction.op]
    step.prepare()
    step.out.op(*write(step.layout.operand(step.instruction)))
    end = step.out.here
    step.leave(step.out, step.point.index + 1, after(step.instruction, step.kinds))
    step.handle(end)


def _branch(step: StepBuilder) -> None:
    """Run a conditional jump: one outcome each way."""
    assert step.instruction.target is not None
    step.prepare()
    fall = Assembler(step.out.constants)
    step.leave(fall, step.point.index + 1, after(step.instruction, step.kinds))
    step.out.jump(step.instruction.op, fall.here)
    end = step.out.here
    step.out.raw(fall.written)
    step.leave(step.out, step.instruction.target, after(step.instruction, step.kinds, jump=True))
    step.handle(end)


def _reraise(step: StepBuilder) -> None:
    """Run RERAISE without the offset, which would be one of the step's and is the original's."""
    step.prepare()
    step.out.op("RERAISE", 0)
    step.handle(step.out.here)


def _nothing(step: StepBuilder) -> None:
    """Go on without running anything."""
    instruction = step.instruction
    target = step.point.index + 1 if instruction.target is None else instruction.target
    kinds = after(instruction, step.kinds)
    outcome = step.point_after(target, kinds, step.point.bound)
    _rearrange(step, outcome, {}, step.point.depth)


def _store(step: StepBuilder) -> None:
    """Let the top of the stack be a local's value."""
    local = step.instruction.arg
    bound = tuple(sorted({*step.point.bound, local}))
    kinds = after(step.instruction, step.kinds)
    top = step.point.depth - 1
    outcome = step.point_after(step.point.index + 1, kinds, bound)
    _rearrange(step, outcome, {local: step.layout.stack_slots[top]}, top)


def _delete(step: StepBuilder) -> None:
    """Leave a local out, or raise as Python does if it has no value."""
    local = step.instruction.arg
    if local not in step.point.bound:
        _native(step)
        return
    bound = tuple(each for each in step.point.bound if each != local)
    outcome = step.point_after(step.point.index + 1, step.kinds, bound)
    _rearrange(step, outcome, {}, step.point.depth)


def _rearrange(step: StepBuilder, outcome: Point, stored: dict[int, int], depth: int) -> None:
    """Write the return of arriving values in another order: nothing runs, nothing can raise."""
    for local in outcome.bound:
        slot = stored[local] if local in stored else step.layout.local_slot(local)
        step.out.op("LOAD_FAST", slot)
    kept = [slot for place, slot in step.layout.stack_slots.items() if place < depth]
    for slot in kept:
        step.out.op("LOAD_FAST", slot)
    step.give(step.out, outcome, len(outcome.bound) + len(kept))


def _return(step: StepBuilder) -> None:
    """End the frame."""
    step.out.op("LOAD_FAST", step.layout.stack_slots[step.point.depth - 1])
    step.give(step.out, RETURN, 1)


_WRITERS: dict[str, Callable[[StepBuilder], None]] = {
    "LOAD_GLOBAL": _value_only,
    "LOAD_METHOD": _value_only,
    "RERAISE": _reraise,
    "JUMP": _nothing,
    "RESUME": _nothing,
    "PUSH_NULL": _nothing,
    "STORE_FAST": _store,
    "DELETE_FAST": _delete,
    "RETURN_VALUE": _return,
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


_BUILT = PointCache(_build)
