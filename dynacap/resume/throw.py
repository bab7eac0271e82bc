"""Code by which a frame that waits for a call receives an exception instead of a result."""

from dataclasses import replace
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from dynacap.opcodes import decode
from dynacap.opcodes.analysis import Kind, Stack
from dynacap.opcodes.assemble import Assembler, Covered, exception_table, location
from dynacap.resume.builder import Step, StepBuilder
from dynacap.resume.point import Point, by_point, checked_kinds


@by_point
def throw_code(code: CodeType, point: Point) -> Step:
    """Return code that takes an exception out of the call before a point.

    `point` is where the frame would go on with the result on top of its stack; the code takes the
    values of that point with the exception in the result's place. As if it came out of the call, it
    gets the frame's line into its traceback, and nothing else of it changes. The one outcome is the
    handler; without one the exception comes out.
    """
    return _built(code, point, checked_kinds(code, point), point.index - 1)


@by_point
def raise_code(code: CodeType, point: Point) -> Step:
    """The same for a frame that waits for nothing: the instruction at the point raises instead of
    running. The exception comes behind the values of the point.
    """
    kinds = (*checked_kinds(code, point), Kind.VALUE)
    return _built(code, replace(point, depth=point.depth + 1), kinds, point.index)


def _built(code: CodeType, point: Point, kinds: Stack, raising: int) -> Step:
    throw = StepBuilder(code, point, kinds, [decode(code).instructions[raising]])
    out = throw.out
    throw.push_locals()
    result = point.depth - 1
    for place in range(result):
        if place in throw.layout.stack_slots:
            throw.layout.push(out, place, throw.kinds)
    out.constants.append(_reraise())
    out.callee("LOAD_CONST", len(out.constants) - 1)
    out.op("LOAD_FAST", throw.layout.stack_slots[result])
    throw.layout.settle(out)
    # Nothing may come between, so the RESUME is there but does not run.
    throw.layout.mark_frame(out)
    throw.start = out.here
    out.op("BUILD_TUPLE", 1)
    out.call_spread()
    throw.handle(out.here)
    return throw.built()


@cache
def _reraise() -> FunctionType:
    """Return a function that raises its argument as it is, and leaves no trace in it."""

    def reraise(error: BaseException) -> None:
        raise error

    out = Assembler([None])
    out.op("LOAD_FAST", 0)
    out.op("RERAISE", 0)
    assert isinstance(reraise, FunctionType)
    return rewritten(reraise, out, [])


def call_handling(handled: BaseException, function: Any, values: list[Any]) -> Any:
    """Call a function as from within the handler of an exception.

    For a frame whose caller, put aside, is handling one: `sys.exc_info()`, a bare `raise`, and the
    context of new exceptions see it.
    """
    return _handling()(handled, function, (values,))


@cache
def _handling() -> FunctionType:
    def handling(handled: BaseException, function: Any, values: tuple[Any, ...]) -> Any:
        return function(*values)

    out = Assembler([None])
    out.op("RESUME", 0)
    out.op("LOAD_FAST", 0)
    out.op("PUSH_EXC_INFO")
    out.op("POP_TOP")
    start = out.here
    out.callee("LOAD_FAST", 1)
    out.op("LOAD_FAST", 2)
    out.call_spread()
    end = out.here
    for last in (("RETURN_VALUE", 0), ("RERAISE", 0)):
        out.op("SWAP", 2)
        out.op("POP_EXCEPT")
        out.op(*last)
    handler = end + (out.here - end) // 2
    assert isinstance(handling, FunctionType)
    return rewritten(handling, out, [Covered(start, end, handler, 1, False)])


def rewritten(function: FunctionType, out: Assembler, rows: list[Covered]) -> FunctionType:
    """Give a function other code, all of it at the function's first line."""
    line = function.__code__.co_firstlineno
    function.__code__ = function.__code__.replace(
        co_code=bytes(out.written),
        co_stacksize=5,
        co_linetable=location(out.here, (line, line, None, None), line),
        co_exceptiontable=exception_table(rows),
    )
    return function
