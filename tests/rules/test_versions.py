"""Python versions are told apart in one place in Python, and one for each extension in C."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("dynacap", "guards", "fxlite", "backends")
    for pattern in ("*.py", "*.c", "*.h", "*.pyi")
    for path in sorted((ROOT / folder).rglob(pattern))
]
TESTS_A_VERSION = re.compile(
    r"sys\.version_info|sys\.hexversion|platform\.python_version|PY_VERSION_HEX|PY_(MAJOR|MINOR)_VERSION"
)


def may_test_versions(path: Path) -> bool:
    """opcodes/versions chooses by version in Python, an extension's own cpython.h in C."""
    name = path.relative_to(ROOT).as_posix()
    return name.startswith("dynacap/opcodes/versions/") or path.name == "cpython.h"


@pytest.mark.parametrize(
    "path", [p for p in SOURCES if not may_test_versions(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_no_version_test(path: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if TESTS_A_VERSION.search(line)
    ]
    assert not found, "ask for a behaviour (dynacap/env.py) instead\n" + "\n".join(found)
