"""Code for a generator that was put aside at a yield and goes on as a real one."""

import inspect
from types import CodeType

from dynacap.errors import ResumeError
from dynacap.opcodes import Instruction, decode
from dynacap.opcodes.assemble import Assembler
from dynacap.resume.layout import GENERATOR_FLAGS, Layout
from dynacap.resume.plain import Prelude, load_stack, with_original
from dynacap.resume.point import Point, agreed, by_point, stack_kinds

# RESUME's operand after a `yield from`, by which CPython knows that the top of the stack is the
# iterator that send, throw and close go to.
_YIELD_FROM = 2


@by_point
def generator_code(code: CodeType, point: Point) -> CodeType:
    """Return code for a generator that takes the values of a point, yields None, and goes on.

    `point.index` is the YIELD_VALUE at which the generator is suspended, and the stack is what lies
    under the value that was yielded. When the made generator has been advanced once it stands as
    the original did: what is sent, thrown, or closed arrives at that yield.
    """
    decoded = decode(code)
    suspended = decoded.instructions[point.index]
    if code.co_flags & GENERATOR_FLAGS & ~inspect.CO_GENERATOR or suspended.op != "YIELD_VALUE":
        raise ResumeError(f"{code.co_qualname}: only a plain generator goes on from a yield")
    kinds = agreed(code, point, stack_kinds(code, point.index)[:-1])
    layout = Layout(code, point)
    out = Assembler(list(code.co_consts))
    out.op("RETURN_GENERATOR")
    out.op("POP_TOP")
    out.op("RESUME")
    layout.arrive(out)
    offsets = load_stack(layout, kinds, out)
    layout.settle(out)
    layout.mark_cells(out)
    out.constant(None)
    start = out.here
    goal = _suspend(out, code, point.index)
    prelude = Prelude(start, offsets, point.index)
    return with_original(layout, out, prelude, goal, suspended, generator=True)


def _suspend(out: Assembler, code: CodeType, index: int) -> Instruction:
    """Write the yield that only primes; return where the generator goes on after it."""
    instructions = decode(code).instructions
    suspended, resumed = instructions[index : index + 2]
    assert resumed.op == "RESUME"
    send = instructions[index - 1]
    if resumed.arg & 3 < _YIELD_FROM or send.arg:
        out.op("YIELD_VALUE", suspended.arg or 0)
        out.op("RESUME", resumed.arg)
        return instructions[index + 2]
    # Where there is no CLEANUP_THROW the whole little loop, because CPython, when the iterator ends
    # in a throw, looks for the SEND right before the YIELD_VALUE and jumps by its operand.
    assert send.op == "SEND"
    assert send.target is not None
    step = Assembler(out.constants)
    step.op("YIELD_VALUE")
    step.op("RESUME", resumed.arg)
    out.jump("JUMP", 1)
    out.op("SEND", step.here + 1)
    out.raw(step.written)
    out.op("JUMP_BACKWARD_NO_INTERRUPT", step.here + 2)
    return instructions[send.target]
