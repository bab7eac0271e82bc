"""Each reason for a break stands in the registry, and each entry there is used somewhere."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynacap.break_reasons import REASONS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    p for folder in ("dynacap", "guards", "backends") for p in (ROOT / folder).rglob("*.py")
)
BREAKERS = {"graph_break", "GraphBreak", "SkipFrame", "UnfitError"}
SLUG = re.compile(r"[a-z]+(-[a-z]+)*")


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def slugs(path: Path) -> Iterator[tuple[str, int]]:
    """The reasons that a file names where it breaks, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and _called(node) in BREAKERS and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, node.lineno


USED = {slug: f"{path}:{line}" for path in FILES for slug, line in slugs(path)}
TEXTS = "\n".join(p.read_text() for p in FILES if p.name != "break_reasons.py")


@pytest.mark.parametrize("slug", sorted(USED))
def test_every_reason_is_registered(slug: str) -> None:
    assert slug in REASONS, f"{USED[slug]}: add {slug} to dynacap/break_reasons.py"


@pytest.mark.parametrize("slug", sorted(REASONS))
def test_every_entry_is_used_and_says_what_to_do(slug: str) -> None:
    reason = REASONS[slug]
    assert SLUG.fullmatch(slug)
    assert f'"{slug}"' in TEXTS, f"nothing breaks with {slug} any more"
    assert reason.explanation.endswith(".")
    assert len(reason.hint) > 5
