"""CPython 3.13."""

from dynacap.opcodes.instruction import Format
from dynacap.opcodes.versions import py312, rules
from dynacap.opcodes.versions.protocol import Facts, Rule, Version

# A NULL goes over the value.
OVER = (("PUSH_NULL", None),)

# Handlers take the truth of what they test; real bools matter only where bytecode is written.
REAL_BOOLS = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT")


# Shared with the versions after this one.
NEW: dict[str, Rule] = {
    "LOAD_GLOBAL": rules.beside_null("LOAD_GLOBAL", *OVER),
    "LOAD_ATTR": rules.beside_null("LOAD_ATTR", *OVER),
    "LOAD_SUPER_ATTR": rules.super_attribute(*OVER),
    "LOAD_FAST_LOAD_FAST": rules.two_locals("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": rules.two_locals("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": rules.two_locals("STORE_FAST", "STORE_FAST"),
    "COMPARE_OP": rules.compared(5),
    "TO_BOOL": rules.pieces(("UNARY_NOT", None), ("UNARY_NOT", None)),  # where it is no prefix
    "CONVERT_VALUE": rules.listed("CONVERT_VALUE", rules.CONVERSIONS),
    "FORMAT_SIMPLE": rules.pieces(("FORMAT_VALUE", Format(None, False))),
    "FORMAT_WITH_SPEC": rules.pieces(("FORMAT_VALUE", Format(None, True))),
}

PAIRS = tuple(name for name in NEW if "_FAST_" in name)


def describe(facts: Facts) -> Version:
    """Return the description of this Python's bytecode."""
    return rules.describe(
        facts,
        {**py312.new(facts), **NEW, "END_FOR": rules.plain("POP_TOP")},
        prefixes=("TO_BOOL",),
        value_only=rules.without_null("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR"),
        cell_operands=rules.LOCALS,
        two_locals=PAIRS,
        loop_end=("END_FOR", "POP_TOP"),
        null_first=False,
        real_bools=REAL_BOOLS,
    )
