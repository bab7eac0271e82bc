"""CPython 3.13."""

from dynacap.opcodes.instruction import Format
from dynacap.opcodes.versions import py312, rules
from dynacap.opcodes.versions.protocol import Facts, Rule, Version

# Shared with the versions after this one.
NEW: dict[str, Rule] = {
    "LOAD_GLOBAL": rules.beside_null("LOAD_GLOBAL", *rules.OVER),
    "LOAD_ATTR": rules.beside_null("LOAD_ATTR", *rules.OVER),
    "LOAD_SUPER_ATTR": rules.super_attribute(*rules.OVER),
    "LOAD_FAST_LOAD_FAST": rules.two_locals("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": rules.two_locals("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": rules.two_locals("STORE_FAST", "STORE_FAST"),
    "COMPARE_OP": rules.compared(5),
    "TO_BOOL": rules.pieces(("UNARY_NOT", None), ("UNARY_NOT", None)),  # where it is no prefix
    "CONVERT_VALUE": rules.listed("CONVERT_VALUE", rules.CONVERSIONS),
    "FORMAT_SIMPLE": rules.pieces(("FORMAT_VALUE", Format(None, False))),
    "FORMAT_WITH_SPEC": rules.pieces(("FORMAT_VALUE", Format(None, True))),
}


def describe(facts: Facts) -> Version:
    """Return the description of this Python's bytecode."""
    return rules.describe(
        facts,
        {**py312.new(facts), **NEW, "END_FOR": rules.plain("POP_TOP")},
        loop_end=("END_FOR", "POP_TOP"),
        null_first=False,
    )
