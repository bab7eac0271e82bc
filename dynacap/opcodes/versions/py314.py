"""CPython 3.14."""

from dynacap.opcodes.instruction import Format
from dynacap.opcodes.versions import py312, py313, rules
from dynacap.opcodes.versions.protocol import Context, Facts, Pieces, Rule, Version

SPECIAL_METHODS = ("__enter__", "__exit__", "__aenter__", "__aexit__")
CONSTANTS = (AssertionError, NotImplementedError, tuple, all, any)


def _interpolation(arg: int, context: Context) -> Pieces:
    conversion = rules.CONVERSIONS[arg >> 2]
    return (("BUILD_INTERPOLATION", Format(conversion, bool(arg & 1))),)


SPECIAL: dict[str, Rule] = {
    "LOAD_FAST_BORROW": rules.LOCALS["LOAD_FAST"],
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": rules.two_locals("LOAD_FAST", "LOAD_FAST"),
    "LOAD_DEREF": rules.in_cell("LOAD_DEREF"),  # `opcode` takes it for a local
    "LOAD_SMALL_INT": rules.number("LOAD_CONST"),
    "LOAD_COMMON_CONSTANT": rules.listed("LOAD_CONST", CONSTANTS),
    "LOAD_SPECIAL": rules.listed("LOAD_SPECIAL", SPECIAL_METHODS, *rules.OVER),
    "WITH_EXCEPT_START": rules.pieces(("WITH_EXCEPT_START", 5)),
    # The iterator stays at the end of its loop.
    "FOR_ITER": rules.pieces(("FOR_ITER", True)),
    "END_FOR": rules.plain("POP_TOP"),
    "POP_ITER": rules.plain("POP_TOP"),
    # Keywords are always there, if only as a NULL.
    "CALL_FUNCTION_EX": rules.pieces(("CALL_FUNCTION_EX", True)),
    "BUILD_INTERPOLATION": _interpolation,
    # What looks like the distance of a jump is for the interpreter's monitoring.
    "END_ASYNC_FOR": rules.plain("END_ASYNC_FOR"),
}


def describe(facts: Facts) -> Version:
    """Return the description of this Python's bytecode."""
    return rules.describe(
        facts,
        {**py312.new(facts), **py313.NEW, **SPECIAL},
        cell_operands=(*rules.LOCALS, "LOAD_FAST_BORROW", "LOAD_DEREF"),
        no_jumps=("END_ASYNC_FOR",),
        null_first=False,
        spread_with_keywords=True,
    )
