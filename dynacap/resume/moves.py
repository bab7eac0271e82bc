"""Instructions that only move values: a step that returns what arrived in another order.

Nothing runs then, and nothing can raise; what the frame holds afterwards is worked out beforehand.
So NULLs and unbound locals need not be moved at all.
"""

from collections.abc import Callable
from typing import Any

from dynacap.opcodes import Instruction
from dynacap.opcodes.analysis import Kind, Stack
from dynacap.resume.builder import StepBuilder
from dynacap.resume.point import RETURN

# Where a value comes from: the instruction that loads it. None is NULL, or no value.
Source = tuple[str, Any] | None


class Moves:
    """What lies on the stack and in the locals, and for the stack of what kind it is."""

    def __init__(self, step: StepBuilder) -> None:
        slots = step.layout.stack_slots
        self.stack: list[Source] = [
            ("LOAD_FAST", slots[place]) if place in slots else None
            for place in range(step.point.depth)
        ]
        self.locals: dict[int, Source] = {
            local: ("LOAD_FAST", step.layout.local_slot(local)) for local in step.point.bound
        }


def _store(moves: Moves, i: Instruction) -> None:
    value = moves.stack.pop()
    moves.locals[i.arg] = value
    if value is None:
        del moves.locals[i.arg]


def _swap(moves: Moves, i: Instruction) -> None:
    stack = moves.stack
    stack[-1], stack[-i.arg] = stack[-i.arg], stack[-1]


_MOVES: dict[str, Callable[[Moves, Instruction], object]] = {
    "LOAD_FAST": lambda moves, i: moves.stack.append(moves.locals[i.arg]),
    "LOAD_FAST_AND_CLEAR": lambda moves, i: moves.stack.append(moves.locals.pop(i.arg, None)),
    "STORE_FAST": _store,
    "DELETE_FAST": lambda moves, i: moves.locals.pop(i.arg),
    "SWAP": _swap,
    "COPY": lambda moves, i: moves.stack.append(moves.stack[-i.arg]),
    "PUSH_NULL": lambda moves, i: moves.stack.append(None),
    "LOAD_CONST": lambda moves, i: moves.stack.append(("LOAD_CONST", i.arg)),
    **dict.fromkeys(("JUMP", "RESUME", "RETURN_VALUE"), lambda moves, i: None),
}


def write_moves(step: StepBuilder) -> bool:
    """Write the step if it only moves values; say whether it does."""
    moves = Moves(step)
    try:
        for each in step.pieces:
            _MOVES[each.op](moves, each)
    except KeyError:  # another instruction, or a local without a value, which raises
        return False
    kinds = step.kinds_after()
    if _copies_saved(step.kinds, kinds):
        return False
    last = step.pieces[-1]
    if last.op == "RETURN_VALUE":
        _load_all(step, moves.stack[-1:])
        step.give(step.out, RETURN, 1)
        return True
    bound = tuple(sorted(moves.locals))
    index = last.index + 1 if last.target is None else last.target
    nulls = tuple(place for place, source in enumerate(moves.stack) if source is None)
    outcome = step.point_with(index, kinds, nulls, bound)
    values = [moves.locals[local] for local in bound] + moves.stack
    _load_all(step, values)
    step.give(step.out, outcome, len(values) - len(nulls))
    return True


def _copies_saved(before: Stack, after: Stack) -> bool:
    """Whether a saved exception is copied, which looks different as a value."""
    return before.count(Kind.SAVED_COPY) != after.count(Kind.SAVED_COPY)


def _load_all(step: StepBuilder, values: list[Source]) -> None:
    for source in values:
        if source is None:
            continue
        if source[0] == "LOAD_CONST":
            step.out.constant(source[1])
        else:
            step.out.op(*source)
