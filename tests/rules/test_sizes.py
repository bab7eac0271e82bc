"""Files and functions stay small enough to read; no file is a drawer for what has no place."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE_FOLDERS = ("dynacap", "guards", "fxlite", "backends")
FILES = [
    path
    for folder in (*SOURCE_FOLDERS, "tests", "examples", "benchmarks")
    for pattern in ("*.py", "*.c", "*.h")
    for path in sorted((ROOT / folder).rglob(pattern))
]
PYTHON = [path for path in FILES if path.suffix == ".py"]
MAX_FILE = 700
MAX_FUNCTION = 80
MAX_ENGINE = 15_000
# The engine makes an entry out of a code object.  Beside it stand what checks compiled programs,
# the frame hook, whose Python is the twin of its C, what keeps entries on disk, and what users
# meet: API, options, messages.
NOT_ENGINE = frozenset(
    """testing hook kept __init__.py api.py break_reasons.py compiled_module.py config.py env.py
    errors.py log.py marks.py misses.py reports stance.py totals.py""".split()
)
DRAWERS = re.compile(r"^_?(utils?|helpers?|common|misc)$")
FunctionDef = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _is_overload(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in {"overload", "typing.overload"}


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_is_short(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MAX_FILE, f"{lines} lines: split it by the questions that it answers"


@pytest.mark.parametrize("path", PYTHON, ids=name_of)
def test_functions_are_short(path: Path) -> None:
    long = [
        f"{node.name}: {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, FunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > MAX_FUNCTION
    ]
    assert not long, ", ".join(long)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_is_named_for_its_subject(path: Path) -> None:
    assert not DRAWERS.match(path.stem), "name the file for the one question that it answers"


@pytest.mark.parametrize(
    "path", [p for p in PYTHON if p.relative_to(ROOT).parts[0] in SOURCE_FOLDERS], ids=name_of
)
def test_docstrings(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "the module says in a sentence what it owns"
    bare = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and not node.name.startswith("_")
        and not any(map(_is_overload, node.decorator_list))
        and not ast.get_docstring(node)
    ]
    assert not bare, f"no docstring: {', '.join(bare)}"


def code_lines(path: Path) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings (nobody is to save there)."""
    text = path.read_text()
    layout = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in layout
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | FunctionDef) and ast.get_docstring(node):
            docstring = node.body[0]
            lines -= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    return len(lines)


def test_code_lines_leaves_out_what_is_no_code(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_text('"""A\nb."""\n\n# c\ndef f():\n    """D."""\n    return (\n        1\n    )\n')
    assert code_lines(path) == 4


def test_capture_engine_stays_readable() -> None:
    top = ROOT / "dynacap"
    paths = [path for path in PYTHON if path.is_relative_to(top)]
    engine = [path for path in paths if path.relative_to(top).parts[0] not in NOT_ENGINE]
    lines = sum(map(code_lines, engine))
    assert lines < MAX_ENGINE, f"the capture engine has {lines} lines of code"
