"""Print what the running Python says of its opcodes, as JSON: the content of `opcodes-3.NN.json`.

for v in 11 12 13 14; do python3.$v tests/data/dump_opcodes.py > tests/data/opcodes-3.$v.json; done
"""

import json
import opcode
import sys


def facts() -> dict[str, object]:
    """What decoding depends on: names, numbers, kinds of operands, caches."""
    real = {name: op for name, op in opcode.opmap.items() if op < 256}
    numbers = set(real.values())
    entries = opcode._inline_cache_entries  # type: ignore[attr-defined]  # by number, or by name
    has_arg = getattr(opcode, "hasarg", range(opcode.HAVE_ARGUMENT, 256))
    return {
        "opmap": dict(sorted(real.items(), key=lambda item: item[1])),
        **{
            kind: [op for op in getattr(opcode, kind) if op in numbers]
            for kind in ("hasname", "hasfree", "haslocal", "hasjrel", "hasconst", "hascompare")
        },
        "hasarg": [op for op in has_arg if op in numbers],
        "caches": {
            name: entries.get(name, 0) if isinstance(entries, dict) else entries[op]
            for name, op in real.items()
        },
        "operators": [symbol for _, symbol in opcode._nb_ops],  # type: ignore[attr-defined]
        "comparisons": list(opcode.cmp_op),
        "intrinsics": [list(getattr(opcode, f"_intrinsic_{count}_descs", ())) for count in (1, 2)],
        "specials": list(getattr(opcode, "_special_method_names", ())),
        "constants": [each.__name__ for each in getattr(opcode, "_common_constants", ())],
    }


if __name__ == "__main__":
    json.dump(facts(), sys.stdout, indent=None, separators=(",", ":"))
    print()
