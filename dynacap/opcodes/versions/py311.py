"""CPython 3.11."""

from dynacap.opcodes.versions import rules
from dynacap.opcodes.versions.protocol import Context, Facts, Pieces, Rule, Version

# A NULL goes under the value.
UNDER = (("PUSH_NULL", None), ("SWAP", 2))


def _method(arg: int, context: Context) -> Pieces:
    return (*rules.named("LOAD_ATTR")(arg, context), *UNDER)


SPECIAL: dict[str, Rule] = {
    "LOAD_GLOBAL": rules.beside_null("LOAD_GLOBAL", *UNDER),
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
        prefixes=("PRECALL", "KW_NAMES"),
        value_only={
            **rules.without_null("LOAD_GLOBAL"),
            "LOAD_ATTR": lambda arg: ("LOAD_ATTR", arg),
        },
        renamed=rules.RENAMED
        | {
            f"POP_JUMP_{way}_IF_{test}": f"POP_JUMP_IF_{test}"
            for way in ("FORWARD", "BACKWARD")
            for test in rules.TESTS
        },
        forward={f"POP_JUMP_IF_{test}": f"POP_JUMP_FORWARD_IF_{test}" for test in rules.TESTS},
    )
