"""Decode rules that versions share, and the putting together of a version's description."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dynacap.opcodes.instruction import Call, CellSlot, Format, SuperName, Unpack
from dynacap.opcodes.versions.protocol import Context, Facts, Pieces, Rule, Version

CONVERSIONS = (None, str, repr, ascii)
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
TESTS = ("TRUE", "FALSE", "NONE", "NOT_NONE")

# What some Pythons have, and which canonical instruction it is.
RENAMED = {
    **dict.fromkeys(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"), "JUMP"),
    **{f"POP_JUMP_FORWARD_IF_{test}": f"POP_JUMP_IF_{test}" for test in TESTS},
    **{f"POP_JUMP_BACKWARD_IF_{test}": f"POP_JUMP_IF_{test}" for test in TESTS},
}
PREFIXES = ("EXTENDED_ARG", "PRECALL", "KW_NAMES", "TO_BOOL")
SKIPPED = ("CACHE", "NOP", "NOT_TAKEN")
# Handlers take the truth of what they test; real bools matter only where bytecode is written.
REAL_BOOLS = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT")
# A NULL goes under the value, or over it.
UNDER = (("PUSH_NULL", None), ("SWAP", 2))
OVER = (("PUSH_NULL", None),)


# -- rules by the kind of operand -----------------------------------------------------------------
def pieces(*made: tuple[str, Any]) -> Rule:
    """Always the same canonical instructions."""
    return lambda arg, context: made


def plain(name: str) -> Rule:
    """An instruction without an operand."""
    return pieces((name, None))


def number(name: str, shift: int = 0) -> Rule:
    """The operand as it is, or without its lowest bits."""
    return lambda arg, context: ((name, arg >> shift),)


def flag(name: str) -> Rule:
    """The operand as a bool."""
    return lambda arg, context: ((name, bool(arg)),)


def named(name: str) -> Rule:
    """The operand is the index of a name."""
    return lambda arg, context: ((name, context.code.co_names[arg]),)


def in_cell(name: str) -> Rule:
    """The operand is the slot of a cell."""
    return lambda arg, context: ((name, context.localsplus[arg]),)


def local(name: str, of_cell: str) -> Rule:
    """The operand is the slot of a local, or of a cell, which is another instruction."""

    def rule(arg: int, context: Context) -> Pieces:
        cell = context.localsplus[arg]
        return ((name, arg),) if cell is None else ((of_cell, cell),)

    return rule


LOCALS = {
    "LOAD_FAST": local("LOAD_FAST", "LOAD_CLOSURE"),
    "LOAD_FAST_CHECK": local("LOAD_FAST", "LOAD_CLOSURE"),
    "STORE_FAST": local("STORE_FAST", "STORE_CLOSURE"),
    "LOAD_FAST_AND_CLEAR": local("LOAD_FAST_AND_CLEAR", "LOAD_CLOSURE_AND_CLEAR"),
}


def two_locals(first: str, second: str) -> Rule:
    """Two instructions in one, each with four bits of the operand."""

    def rule(arg: int, context: Context) -> Pieces:
        return LOCALS[first](arg >> 4, context) + LOCALS[second](arg & 15, context)

    return rule


def beside_null(name: str, *null: tuple[str, Any]) -> Rule:
    """A load by name that also makes a NULL if its lowest bit says so; `null` places it."""

    def rule(arg: int, context: Context) -> Pieces:
        load = ((name, context.code.co_names[arg >> 1]),)
        return load + null if arg & 1 else load

    return rule


def super_attribute(*null: tuple[str, Any]) -> Rule:
    """An attribute of super(): is it a method, and are the arguments of super written out."""

    def rule(arg: int, context: Context) -> Pieces:
        name = SuperName(context.code.co_names[arg >> 2], bool(arg & 2))
        load = (("LOAD_SUPER_ATTR", name),)
        return load + null if arg & 1 else load

    return rule


def compared(shift: int) -> Rule:
    """A comparison whose operator stands above the lowest bits."""
    return lambda arg, context: (("COMPARE_OP", COMPARISONS[arg >> shift]),)


def intrinsics(names: Iterable[str]) -> Rule:
    """A function of the interpreter's by number: the canonical instruction of its name."""
    by_number = [_intrinsic(name.removeprefix("INTRINSIC_")) for name in names]
    return lambda arg, context: by_number[arg]


def _intrinsic(name: str) -> Pieces:
    if name == "PRINT":
        return (("PRINT_EXPR", None), ("LOAD_CONST", None))
    if name == "IMPORT_STAR":
        return (("IMPORT_STAR", None), ("LOAD_CONST", None))
    return ((name, None),)


# -- rules of single instructions -----------------------------------------------------------------
def constant(arg: int, context: Context) -> Pieces:
    """A constant."""
    return (("LOAD_CONST", context.code.co_consts[arg]),)


def returned_constant(arg: int, context: Context) -> Pieces:
    """A constant that is returned."""
    return (*constant(arg, context), ("RETURN_VALUE", None))


def make_cell(arg: int, context: Context) -> Pieces:
    """The making of a cell, from the local of its name if it has one."""
    cell = context.localsplus[arg]
    assert cell is not None
    return (("MAKE_CELL", CellSlot(cell, arg if arg < context.nlocals else None)),)


def operators(symbols: tuple[str, ...]) -> Rule:
    """A binary operator by number; subscription may be one of them."""
    named = [("BINARY_SUBSCR", None) if each == "[]" else ("BINARY_OP", each) for each in symbols]
    return lambda arg, context: (named[arg],)


def listed(name: str, operands: Sequence[Any], *more: tuple[str, Any]) -> Rule:
    """The operand is an index of these."""
    return lambda arg, context: ((name, operands[arg]), *more)


def unpacked(arg: int, context: Context) -> Pieces:
    """Starred unpacking."""
    return (("UNPACK_EX", Unpack(arg & 0xFF, arg >> 8)),)


def formatted(arg: int, context: Context) -> Pieces:
    """A formatted value, perhaps converted, perhaps with a spec."""
    return (("FORMAT_VALUE", Format(CONVERSIONS[arg & 3], bool(arg & 4))),)


def called(arg: int, context: Context) -> Pieces:
    """A call; the names of keywords may have come before."""
    names, context.kwnames = context.kwnames, ()
    return (("CALL", Call(arg, names)),)


def keyword_names(arg: int, context: Context) -> Pieces:
    """The names of keywords, for the call that follows."""
    context.kwnames = context.code.co_consts[arg]
    return ()


SPECIAL: dict[str, Rule] = {
    **LOCALS,
    "LOAD_CONST": constant,
    "MAKE_CELL": make_cell,
    "UNPACK_EX": unpacked,
    "CALL": called,
    "IS_OP": flag("IS_OP"),
    "CONTAINS_OP": flag("CONTAINS_OP"),
    "CALL_FUNCTION_EX": flag("CALL_FUNCTION_EX"),
    "FOR_ITER": pieces(("FOR_ITER", False)),
    "WITH_EXCEPT_START": pieces(("WITH_EXCEPT_START", 4)),
    "LOAD_ASSERTION_ERROR": pieces(("LOAD_CONST", AssertionError)),
}


# -- a version ------------------------------------------------------------------------------------
def describe(
    facts: Facts,
    special: Mapping[str, Rule],
    *,
    value_only: Mapping[str, Callable[[int], tuple[str, int]]] | None = None,
    cell_operands: Iterable[str] = LOCALS,
    no_jumps: Iterable[str] = (),
    loop_end: tuple[str, ...] = ("END_FOR",),
    null_first: bool = True,
    spread_with_keywords: bool = False,
) -> Version:
    """Put a description together from what the version says and what can be read off."""
    opmap = facts.opmap
    known = {**SPECIAL, "BINARY_OP": operators(facts.operators), **special}
    return Version(
        rules={
            op: known.get(name) or _by_kind(RENAMED.get(name, name), op, facts)
            for name, op in opmap.items()
        },
        skipped=_codes(facts, SKIPPED),
        prefixes=_codes(facts, PREFIXES),
        backward=_codes(facts, (name for name in opmap if "BACKWARD" in name)),
        jumps=facts.hasjrel - _codes(facts, no_jumps),
        extended_arg=opmap["EXTENDED_ARG"],
        caches=facts.caches,
        opcodes=opmap,
        forward={RENAMED[name]: name for name in RENAMED if "FORWARD" in name and name in opmap},
        slot_operands=facts.hasfree | _codes(facts, cell_operands),
        slot_pairs=_codes(facts, (name for name in special if name.count("_FAST") > 1)),
        value_only=value_only or without_null("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR"),
        loop_end=loop_end,
        null_first=null_first,
        spread_with_keywords=spread_with_keywords,
        real_bools=frozenset(REAL_BOOLS if "TO_BOOL" in opmap else ()),
    )


def _codes(facts: Facts, names: Iterable[str]) -> frozenset[int]:
    """The opcodes of these names, those that this Python has."""
    return frozenset(facts.opmap[name] for name in names if name in facts.opmap)


def _by_kind(name: str, op: int, facts: Facts) -> Rule:
    """Choose a rule by the kind of operand that `opcode` gives an instruction."""
    if op in facts.hasname:
        return named(name)
    if op in facts.hasfree:
        return in_cell(name)
    if op not in facts.hasarg or op in facts.hasjrel:
        return plain(name)
    return number(name)


def without_null(*names: str) -> dict[str, Callable[[int], tuple[str, int]]]:
    """Say that loads are written without a NULL by clearing the lowest bit."""
    return {name: _cleared(name) for name in names}


def _cleared(name: str) -> Callable[[int], tuple[str, int]]:
    return lambda arg: (name, arg & ~1)
