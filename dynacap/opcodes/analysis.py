"""Questions about canonical instructions: who follows whom, what is on the stack, what is live."""

from collections.abc import Callable, Iterator
from enum import Enum
from types import CodeType

from dynacap.opcodes.canonical import falls, pops, pushes, raises
from dynacap.opcodes.code import Code, decode
from dynacap.opcodes.identity import CodeCache
from dynacap.opcodes.instruction import Handler, Instruction


class Kind(Enum):
    """What a stack slot holds, as far as it can be told without running."""

    VALUE = "a value"
    NULL = "NULL"
    MAYBE_NULL = "what a local has, NULL if it has no value"
    SAVED = "the exception handled before, put there by PUSH_EXC_INFO and not taken back yet"
    SAVED_COPY = "a copy of the innermost SAVED"
    LASTI = "the offset of an instruction, for RERAISE"


Stack = tuple[Kind, ...]

_VALUE = (Kind.VALUE,)


def stacks(code: Code) -> list[Stack | None]:
    """Return what lies on the stack before each instruction; None where execution never comes."""
    found: list[Stack | None] = [None] * len(code.instructions)
    todo: list[tuple[int, Stack]] = [(0, ())]
    while todo:
        index, stack = todo.pop()
        known = found[index]
        if known is not None:
            _check_agree(code, index, known, stack)
            continue
        found[index] = stack
        todo.extend(successors(code, index, stack))
    return found


def successors(code: Code, index: int, stack: Stack) -> Iterator[tuple[int, Stack]]:
    """Yield each place where execution may go on after an instruction, with the stack there."""
    instruction = code.instructions[index]
    if falls(instruction):
        yield index + 1, after(instruction, stack)
    if instruction.target is not None:
        yield instruction.target, after(instruction, stack, jump=True)
    handler = code.handlers[index]
    # PUSH_EXC_INFO lies in the range of a handler that wants what it has yet to push.
    if handler is not None and raises(instruction):
        yield handler.target, at_handler(handler, stack)


def ends_in_raise(code: Code, index: int) -> bool:
    """Whether execution that comes here raises, without a choice on the way."""
    for instruction in code.instructions[index:]:
        if instruction.op == "RAISE_VARARGS":
            return True
        if instruction.target is not None or not falls(instruction):
            return False
    return False


def at_handler(handler: Handler, stack: Stack) -> Stack:
    """Return the stack at a handler, for an exception raised with this stack."""
    if len(stack) < handler.depth:
        raise ValueError(f"a handler wants a stack of {handler.depth}, not {len(stack)}")
    lasti = (Kind.LASTI,) if handler.lasti else ()
    return stack[: handler.depth] + lasti + _VALUE


def after(instruction: Instruction, stack: Stack, jump: bool = False) -> Stack:
    """Return the stack after an instruction."""
    special = _SPECIAL.get(instruction.op)
    if special is not None:
        return special(instruction, stack)
    taken = pops(instruction)
    if taken > len(stack):
        raise ValueError(f"{instruction} takes {taken} items of a stack of {len(stack)}")
    return stack[: len(stack) - taken] + _VALUE * pushes(instruction, jump)


def _after_copy(instruction: Instruction, stack: Stack) -> Stack:
    kind = stack[-instruction.arg]
    return (*stack, Kind.SAVED_COPY if kind is Kind.SAVED else kind)


def _after_swap(instruction: Instruction, stack: Stack) -> Stack:
    swapped = list(stack)
    swapped[-1], swapped[-instruction.arg] = swapped[-instruction.arg], swapped[-1]
    return tuple(swapped)


def _after_pop_except(instruction: Instruction, stack: Stack) -> Stack:
    if stack[-1] is Kind.SAVED:
        return stack[:-1]
    # A copy was popped: the original stays where it is, as a value that nobody looks at.
    rest = list(stack[:-1])
    innermost = max(place for place, kind in enumerate(rest) if kind is Kind.SAVED)
    rest[innermost] = Kind.VALUE
    return tuple(rest)


_SPECIAL: dict[str, Callable[[Instruction, Stack], Stack]] = {
    "COPY": _after_copy,
    "SWAP": _after_swap,
    "POP_EXCEPT": _after_pop_except,
    "PUSH_NULL": lambda instruction, stack: (*stack, Kind.NULL),
    "LOAD_FAST_AND_CLEAR": lambda instruction, stack: (*stack, Kind.MAYBE_NULL),
    "LOAD_CLOSURE_AND_CLEAR": lambda instruction, stack: (*stack, Kind.MAYBE_NULL),
    "PUSH_EXC_INFO": lambda instruction, stack: (*stack[:-1], Kind.SAVED, Kind.VALUE),
}


def _check_agree(code: Code, index: int, known: Stack, stack: Stack) -> None:
    """Two ways that meet must bring the same stack."""
    if known == stack:
        return
    unsure = {Kind.NULL, Kind.MAYBE_NULL}
    if len(known) != len(stack) or any(
        one is not other and not {one, other} <= unsure
        for one, other in zip(known, stack, strict=True)
    ):
        raise ValueError(
            f"{code.code.co_qualname}: two ways to instruction {code.instructions[index]} bring"
            f" {[each.value for each in known]} and {[each.value for each in stack]}"
        )


_LIVE: CodeCache[list[int]] = CodeCache()

# A function that calls one of these may look at any local by name.
LOOKS_AT_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec", "_getframe", "currentframe"})


def live_locals(code: CodeType, index: int) -> frozenset[int]:
    """Return the fast locals whose values may still be read from an instruction on.

    Inside `try` all that the handler may read is live too. Functions that ask for `locals()` keep
    everything.
    """
    masks = _LIVE.get(code) or _LIVE.set(code, _live_masks(code))
    mask = masks[index]
    return frozenset(place for place in range(mask.bit_length()) if mask >> place & 1)


def _live_masks(code: CodeType) -> list[int]:
    decoded = decode(code)
    if not LOOKS_AT_LOCALS.isdisjoint(code.co_names):
        return [(1 << code.co_nlocals) - 1] * len(decoded)
    live = [0] * len(decoded)
    changed = True
    while changed:
        changed = False
        for index in range(len(decoded) - 1, -1, -1):
            mask = _live_before(decoded, index, live)
            if mask != live[index]:
                live[index] = mask
                changed = True
    return live


def _live_before(code: Code, index: int, live: list[int]) -> int:
    instruction = code.instructions[index]
    mask = live[index + 1] if falls(instruction) else 0
    if instruction.target is not None:
        mask |= live[instruction.target]
    if instruction.op == "STORE_FAST":
        mask &= ~(1 << instruction.arg)
    elif instruction.op in ("LOAD_FAST", "DELETE_FAST", "LOAD_FAST_AND_CLEAR"):
        mask |= 1 << instruction.arg
    elif instruction.op == "MAKE_CELL" and instruction.arg.local is not None:
        mask |= 1 << instruction.arg.local
    handler = code.handlers[index]
    if handler is not None and raises(instruction):
        mask |= live[handler.target]
    return mask
