"""The pages under docs/ that hold a program: it runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dynacap

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("backends.md", "reasons.md")
_FENCED = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def programs(page: Path) -> Iterator[tuple[str, str]]:
    """The programs of a page, at the lines where they stand in it, and what each is to print."""
    text = page.read_text()
    program = ""
    for block in _FENCED.finditer(text):
        if block[1] == "python":
            program += "\n" * (text.count("\n", 0, block.start(2)) - program.count("\n")) + block[2]
        else:
            yield program, block[2]
            program = ""


@pytest.mark.parametrize("page", PAGES)
def test_the_program_prints_what_the_page_says(page: str) -> None:
    dynacap.reset()
    name = f"docs/{page}"
    lines = (DOCS / page).read_text().splitlines(keepends=True)
    linecache.cache[name] = (0, None, lines, name)
    namespace: dict[str, Any] = {"__name__": "page"}
    shown = list(programs(DOCS / page))
    assert shown
    for program, expected in shown:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(program, name, "exec"), namespace)
        found = output.getvalue()
        assert doctest.OutputChecker().check_output(expected, found, _FLAGS), found
