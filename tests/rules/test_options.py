"""Every option is documented, and does something unless it says that it is reserved."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import dynacap
from dynacap.config import Config

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {field.name: field.metadata["doc"] for field in fields(Config)}
READERS = [
    path
    for folder in ("dynacap", "guards", "fxlite", "backends")
    for path in (ROOT / folder).rglob("*.py")
    if path != ROOT / "dynacap" / "config.py"
]


def row(name: str) -> str:
    """An option's row in docs/options.md."""
    field = {field.name: field for field in fields(Config)}[name]
    words = field.metadata["kind"].words
    return f"| `{name}` | `{field.default!r}` | {words} | {OPTIONS[name]} |"


@pytest.mark.parametrize("name", OPTIONS)
def test_option_is_documented(name: str) -> None:
    assert row(name) in (ROOT / "docs" / "options.md").read_text().splitlines()


def _options_read(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            if owner == "config":
                yield node.attr


def test_each_option_works_or_says_that_it_does_not() -> None:
    read = {name for path in READERS for name in _options_read(path)} & OPTIONS.keys()
    working = {name for name, doc in OPTIONS.items() if not doc.startswith("Reserved:")}
    assert working - read == set(), "never read: begin the description with 'Reserved:'"
    assert read - working == set(), "read: the description must not begin with 'Reserved:'"


def test_only_config_reads_the_environment() -> None:
    reads = re.compile(r"os\.environ|os\.getenv|getenv\(")
    found = [str(path.relative_to(ROOT)) for path in READERS if reads.search(path.read_text())]
    assert not found


def test_public_names_exist() -> None:
    pytest.importorskip("torch")
    missing = [name for name in dynacap.__all__ if getattr(dynacap, name, None) is None]
    assert not missing


def test_no_public_name_is_hidden_by_a_submodule() -> None:
    submodules = {path.stem for path in (ROOT / "dynacap").iterdir()} | {
        "guards", "fxlite", "backends"
    }  # fmt: skip
    # config is the instance, bound when dynacap is first imported; guards is the package,
    # which can be called: both on purpose.
    assert set(dynacap.__all__) & submodules == {"config", "guards"}
