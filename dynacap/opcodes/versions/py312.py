"""CPython 3.12."""

from dynacap.opcodes.versions import rules
from dynacap.opcodes.versions.protocol import Facts, Rule, Version


def new(facts: Facts) -> dict[str, Rule]:
    """Return the rules of what is new here and still there later."""
    return {
        "CALL_INTRINSIC_1": rules.intrinsics(facts.intrinsics_1),
        "CALL_INTRINSIC_2": rules.intrinsics(facts.intrinsics_2),
        "SEND": rules.pieces(("SEND", True)),
        "END_SEND": rules.pieces(("SWAP", 2), ("POP_TOP", None)),
        "RETURN_CONST": rules.returned_constant,
    }


SPECIAL: dict[str, Rule] = {
    "LOAD_GLOBAL": rules.beside_null("LOAD_GLOBAL", *rules.UNDER),
    "LOAD_ATTR": rules.beside_null("LOAD_ATTR", *rules.UNDER),
    "LOAD_SUPER_ATTR": rules.super_attribute(*rules.UNDER),
    "COMPARE_OP": rules.compared(4),
    "FORMAT_VALUE": rules.formatted,
    "KW_NAMES": rules.keyword_names,
    "END_FOR": rules.pieces(("POP_TOP", None), ("POP_TOP", None)),
}


def describe(facts: Facts) -> Version:
    """Return the description of this Python's bytecode."""
    return rules.describe(facts, {**new(facts), **SPECIAL})
