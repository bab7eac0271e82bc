"""A function that runs one instruction on its arguments, for those that ask nothing of a frame."""

from functools import cache
from types import FunctionType

from dynacap.opcodes.assemble import Assembler
from dynacap.resume.throw import rewritten


@cache
def alone(instruction: bytes, count: int) -> FunctionType:
    """Return a function of so many arguments whose result is what the instruction pushes."""

    def made(first: object, second: object = None) -> object:
        return first

    assert isinstance(made, FunctionType)
    out = Assembler([None])
    out.op("RESUME")
    for index in range(count):
        out.op("LOAD_FAST", index)
    out.raw(instruction)
    out.op("RETURN_VALUE")
    return rewritten(made, out, [])
