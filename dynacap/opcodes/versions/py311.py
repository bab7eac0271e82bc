"""CPython 3.11."""

from dynacap.opcodes.versions import rules
from dynacap.opcodes.versions.protocol import Context, Facts, Pieces, Rule, Version


def _method(arg: int, context: Context) -> Pieces:
    return (*rules.named("LOAD_ATTR")(arg, context), *rules.UNDER)


SPECIAL: dict[str, Rule] = {
    "LOAD_GLOBAL": rules.beside_null("LOAD_GLOBAL", *rules.UNDER),
    "LOAD_METHOD": _method,
    "COMPARE_OP": rules.compared(0),
    "FORMAT_VALUE": rules.formatted,
    "KW_NAMES": rules.keyword_names,
}


def describe(facts: Facts) -> Version:
    """Return the description of this Python's bytecode."""
    return rules.describe(
        facts,
        SPECIAL,
        value_only={
            **rules.without_null("LOAD_GLOBAL"),
            "LOAD_ATTR": lambda arg: ("LOAD_ATTR", arg),
        },
        cell_operands=(),
        loop_end=(),
    )
