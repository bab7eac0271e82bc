"""docs/native.md lists the operators that are lowered, as the rules themselves do."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from dynacap.backends.native.lowering.lower import RULES

pytestmark = pytest.mark.torch
DOCUMENT = Path(__file__).parents[3] / "docs" / "native.md"


def rows() -> list[str]:
    """A row of the table for each file of rules."""
    files: dict[str, set[str]] = {}
    for target, rule in RULES.items():
        written: Any = getattr(rule, "func", rule)  # some are one rule for many formulas
        subject = written.__module__.rpartition(".")[2]
        name = str(target).removeprefix("aten.").removesuffix(".default")
        files.setdefault(subject, set()).add(f"`{name}`")
    return [
        f"| {subject} | {' '.join(sorted(names))} |" for subject, names in sorted(files.items())
    ]


def test_the_table_is_current() -> None:
    lines = DOCUMENT.read_text().splitlines()
    missing = [row for row in rows() if row not in lines]
    assert not missing, f"put into {DOCUMENT}:\n" + "\n".join(missing)
    table = [line for line in lines if line.startswith("| ") and "`" in line]
    assert len(table) == len(rows())
