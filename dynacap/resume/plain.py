"""Code that takes a frame's state and runs the original bytecode from there to the end."""

from types import CodeType
from typing import NamedTuple

from dynacap.errors import ResumeError
from dynacap.opcodes import Instruction, assemble, decode
from dynacap.opcodes.analysis import Kind, Stack
from dynacap.opcodes.versions import version
from dynacap.resume.layout import GENERATOR_FLAGS, Layout
from dynacap.resume.point import Point, by_point, checked_kinds


@by_point
def plain_code(code: CodeType, point: Point) -> CodeType:
    """Return code that takes the values of a point and runs the original to its end.

    The original bytecode is copied whole; a prelude loads the state and jumps into it.
    """
    if code.co_flags & GENERATOR_FLAGS:
        raise ResumeError(f"{code.co_qualname}: a generator goes on as a generator")
    layout = Layout(code, point)
    kinds = checked_kinds(code, point)
    first = decode(code).instructions[point.index]
    out = assemble.Assembler(list(code.co_consts))
    layout.arrive(out)
    early = resumes_early(code, point)
    if early:
        out.op("RESUME")
    offsets = load_stack(layout, kinds, out)
    layout.settle(out)
    start = 0 if early else out.here
    if not early:
        out.op("RESUME")
    if first.op in version().real_bools:
        out.op("TO_BOOL")
    prelude = Prelude(start, offsets, point.index if covers(code, point.index) else None)
    return with_original(layout, out, prelude, first)


@by_point
def waiting_code(code: CodeType, point: Point) -> CodeType:
    """Return code for a frame that waits for a call: plain code that begins by making it.

    In the place of the result it takes what to call, with nothing.
    """
    layout = Layout(code, point)
    instructions = decode(code).instructions
    call, first = instructions[point.index - 1], instructions[point.index]
    out = assemble.Assembler(list(code.co_consts))
    layout.arrive(out)
    offsets = load_stack(layout, checked_kinds(code, point)[:-1], out)
    out.callee("LOAD_FAST", layout.stack_slots[point.depth - 1])
    layout.settle(out)
    layout.mark_frame(out)
    start = out.here
    out.op("BUILD_TUPLE", 0)
    out.call_spread()
    if first.op in version().real_bools:
        out.op("TO_BOOL")
    return with_original(layout, out, Prelude(start, offsets, call.index), first, call)


def resumes_early(code: CodeType, point: Point) -> bool:
    """Whether RESUME must come before the state is loaded.

    RESUME may raise (a signal). Where no handler would then take back the exceptions that the
    prelude pushes, it comes first.
    """
    return bool(point.excs) and not covers(code, point.index)


def covers(code: CodeType, index: int) -> bool:
    """Whether an instruction's handler may serve for a RESUME in its place."""
    decoded = decode(code)
    # The handler of PUSH_EXC_INFO wants on the stack what it has yet to push.
    return decoded.handlers[index] is not None and (
        decoded.instructions[index].op != "PUSH_EXC_INFO"
    )


def load_stack(layout: Layout, kinds: Stack, out: assemble.Assembler) -> list[int]:
    """Write what pushes the stack.

    The offsets of instructions on it must become those of the new code. By how much they move is
    known only when all is written: the constants at the indices returned are to be set to it.
    """
    offsets: list[int] = []
    for place, kind in enumerate(kinds):
        layout.push(out, place, kinds)
        if kind is Kind.LASTI:
            offsets.append(len(out.constants))
            out.constant(0)
            out.op("BINARY_OP")
    return offsets


class Prelude(NamedTuple):
    """What is known of a prelude when the original is to be written behind it.

    `start`: where it begins to count as a part of the frame. `offsets`: see `load_stack`.
    `covered`: the instruction whose handler serves for it too, if one does.
    """

    start: int
    offsets: list[int]
    covered: int | None


def with_original(
    layout: Layout,
    out: assemble.Assembler,
    prelude: Prelude,
    goal: Instruction,
    place: Instruction | None = None,
    generator: bool = False,
) -> CodeType:
    """Write a jump to `goal` in the original, which follows, and return the code object.

    The prelude stands at the line of `place`, or else of `goal`.
    """
    code = layout.code
    # The NOP is never run. It takes back in the line table what the prelude's line has changed.
    out.jump("JUMP", 1 + goal.offset // 2)
    end = out.here
    out.op("NOP")
    body = out.here
    for constant in prelude.offsets:
        out.constants[constant] = body
    out.raw(layout.original(0, len(code.co_code)))
    line, first = (place or goal).line, code.co_firstlineno
    lines = assemble.nowhere(prelude.start)
    lines += assemble.location(end - prelude.start, (place or goal).positions, first)
    lines += assemble.line_shift(0 if line is None else first - line) + code.co_linetable
    rows = _covered(code, prelude, end, body)
    rows.extend(row.moved(body) for row in assemble.parse_exception_table(code.co_exceptiontable))
    return layout.build(
        out, layout.point.depth + 3, lines, assemble.exception_table(rows), generator
    )


def _covered(code: CodeType, prelude: Prelude, end: int, body: int) -> list[assemble.Covered]:
    """Return the row of the exception table for the prelude."""
    if prelude.covered is None:
        return []
    decoded = decode(code)
    handler = decoded.handlers[prelude.covered]
    if handler is None:
        return []
    target = body + decoded.instructions[handler.target].offset // 2
    return [assemble.Covered(prelude.start, end, target, handler.depth, handler.lasti)]
