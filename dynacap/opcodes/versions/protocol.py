"""What one Python version tells about its bytecode."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

# One original instruction becomes these canonical (name, operand) pairs, in order.
Pieces = tuple[tuple[str, Any], ...]


class Context:
    """What a decode rule may look at besides the operand."""

    __slots__ = ("code", "kwnames", "localsplus", "nlocals")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.nlocals = code.co_nlocals
        self.kwnames: tuple[str, ...] = ()
        self.localsplus = localsplus(code)


Rule = Callable[[int, Context], Pieces]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a Python itself tells about its opcodes, those that may stand in a code object.

    Kept apart from the descriptions, so that one can be tried with the facts of another Python.
    """

    opmap: Mapping[str, int]
    hasname: frozenset[int]
    hasfree: frozenset[int]
    hasjrel: frozenset[int]
    hasarg: frozenset[int]
    caches: Mapping[int, int]
    operators: tuple[str, ...]
    intrinsics_1: tuple[str, ...]
    intrinsics_2: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Version:
    """One Python version's bytecode.

    `rules` decode an original instruction by opcode; `skipped` ones leave nothing behind;
    `prefixes` belong to the instruction that follows; `backward` ones jump back. Whatever a table
    does not mention keeps its own name, so that a new opcode needs a handler and nothing else.

    At the target of a FOR_ITER stand the instructions `loop_end`, which only the interpreter's
    specialised forms run: otherwise a loop that is done goes on behind them.

    The rest serves to write bytecode: `opcodes` by real name; `forward` has the real names of
    canonical jumps when they go forward; `slot_operands` are the opcodes whose operand may be the
    slot of a cell, `slot_pairs` those where it may be two, of four bits each; `value_only` writes a
    load that pushes a NULL or method beside its value, given its operand, as one that pushes the
    value alone; `null_first`: a call wants its NULL under the callable;
    `spread_with_keywords`: a call with a tuple always wants keywords, or NULL, over it;
    `real_bools` are the canonical instructions that want TO_BOOL before them.
    """

    rules: Mapping[int, Rule]
    skipped: frozenset[int]
    prefixes: frozenset[int]
    backward: frozenset[int]
    jumps: frozenset[int]
    extended_arg: int
    caches: Mapping[int, int]
    opcodes: Mapping[str, int]
    forward: Mapping[str, str]
    slot_operands: frozenset[int]
    slot_pairs: frozenset[int]
    value_only: Mapping[str, Callable[[int], tuple[str, int]]]
    loop_end: tuple[str, ...]
    null_first: bool
    spread_with_keywords: bool
    real_bools: frozenset[str]


def localsplus(code: CodeType) -> list[int | None]:
    """Return, for each slot of a frame, its index among the cells (cellvars, then freevars)."""
    names = code.co_varnames
    arguments = set(names)
    slots: list[int | None] = [None] * len(names)
    for index, name in enumerate(code.co_cellvars):
        if name in arguments:
            slots[names.index(name)] = index
        else:
            slots.append(index)
    free = len(code.co_cellvars)
    slots.extend(range(free, free + len(code.co_freevars)))
    return slots
