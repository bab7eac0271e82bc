"""What the running Python tells about its opcodes."""

import opcode

from dynacap.opcodes.versions.protocol import Facts

# Only the interpreter writes these, into code of its own or over a copy of the user's.
NEVER_IN_CODE = frozenset({"INTERPRETER_EXIT", "RESERVED", "EXIT_INIT_CHECK", "ENTER_EXECUTOR"})


def running() -> Facts:
    """Read off the facts of the running Python."""
    opmap = {
        name: op
        for name, op in opcode.opmap.items()
        if op < 256 and not name.startswith("INSTRUMENTED_") and name not in NEVER_IN_CODE
    }
    ops = frozenset(opmap.values())
    hasarg = getattr(opcode, "hasarg", range(opcode.HAVE_ARGUMENT, 256))
    return Facts(
        opmap=opmap,
        hasname=ops.intersection(opcode.hasname),
        hasfree=ops.intersection(opcode.hasfree),
        hasjrel=ops.intersection(opcode.hasjrel),
        hasarg=ops.intersection(hasarg),
        caches=_caches(opmap),
        operators=tuple(symbol for _, symbol in opcode._nb_ops),  # type: ignore[attr-defined]
        intrinsics_1=tuple(getattr(opcode, "_intrinsic_1_descs", ())),
        intrinsics_2=tuple(getattr(opcode, "_intrinsic_2_descs", ())),
    )


def _caches(opmap: dict[str, int]) -> dict[int, int]:
    """Return how many inline caches follow each opcode; Pythons list them by name or number."""
    known = opcode._inline_cache_entries  # type: ignore[attr-defined]
    by_name = isinstance(known, dict)
    return {op: known.get(name, 0) if by_name else known[op] for name, op in opmap.items()}
