"""Checks a code object's canonical instructions: stack balance, depth, and jump targets."""

from dynacap.errors import InternalError
from dynacap.opcodes.analysis import Stack, stacks, successors
from dynacap.opcodes.canonical import OPS
from dynacap.opcodes.code import Code


def verify(code: Code) -> None:
    """Raise InternalError where the instructions do not hold together; used in tests."""
    name = code.code.co_qualname
    for instruction in code.instructions:
        if instruction.op not in OPS:
            raise InternalError(f"{name}: no entry in the canonical table for {instruction}")
        if instruction.target is not None and not 0 <= instruction.target < len(code):
            raise InternalError(f"{name}: {instruction} leaves the function")
    try:
        found = stacks(code)
    except (ValueError, IndexError) as error:
        raise InternalError(f"{name}: the stack does not balance: {error}") from error
    deepest = max((deepest_at(code, at, each) for at, each in enumerate(found) if each), default=0)
    if deepest > code.code.co_stacksize:
        raise InternalError(f"{name}: needs {deepest} stack slots of {code.code.co_stacksize}")


def deepest_at(code: Code, index: int, stack: Stack) -> int:
    """Return the larger of the depths before and after one instruction, or 0 within an original."""
    if not code.is_boundary(index) or not code.is_boundary(index + 1):
        return 0
    return max([len(stack), *(len(after) for _, after in successors(code, index, stack))])
