"""Imports point down: a module imports from lower rows, or from its own package."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"dynacap": "", "guards": ".guards", "fxlite": ".fxlite", "backends": ".backends"}

# The packages and modules below ``dynacap``, lowest first; the package ``dynacap`` itself is "".
LAYERS = (
    ("break_reasons",),
    ("errors", "config"),
    ("env", "log", "marks", "stance", "totals", "torch_compile"),
    ("opcodes", "fxlite"),
    ("guards", "hook"),
    ("backends",),
    ("values",),
    ("codegen",),
    ("resume",),
    ("polyfills",),
    ("executor",),
    ("suspend", "capture", "running"),
    ("convert", "cache", "misses"),
    ("kept",),
    ("place", "reports"),
    ("compiled_module", "driver"),
    ("api",),
    ("",),
    ("testing",),
)
ROWS = {name: row for row, names in enumerate(LAYERS) for name in names}


def modules() -> Iterator[tuple[str, Path]]:
    """The name below ``dynacap`` and the path of each source file."""
    for folder, prefix in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            name = ".".join(part for part in parts if part != "__init__")
            yield f"dynacap{prefix}.{name}".rstrip("."), path


MODULES = dict(modules())


def imports(path: Path) -> Iterator[tuple[str, int]]:
    """Each module of ours that a file imports, anywhere in it, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [_imported(node.module or "", alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "dynacap":
                yield name, node.lineno


def _imported(module: str, name: str) -> str:
    """``from module import name`` imports a submodule where there is one of that name."""
    return f"{module}.{name}" if f"{module}.{name}" in MODULES else module


def top(name: str) -> str:
    """The package or module right below ``dynacap`` that a dotted name belongs to."""
    return [*name.split("."), ""][1]


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name: str) -> None:
    here = top(name)
    assert here in ROWS, f"give {here} a place in LAYERS"
    wrong = [
        f"{MODULES[name]}:{line} imports {found}"
        for found, line in imports(MODULES[name])
        if top(found) != here and not ROWS.get(top(found), len(LAYERS)) < ROWS[here]
    ]
    assert not wrong, "\n".join(wrong)


# A module that may import where it is used: it owns an optional package, or loads late by design.
LATE = {
    "dynacap": "public names are loaded when asked for",
}


def _inner_imports(path: Path) -> list[int]:
    tree = ast.parse(path.read_text())
    return [
        inner.lineno
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Import, ast.ImportFrom))
    ]


@pytest.mark.parametrize("name", sorted(MODULES.keys() - LATE.keys()))
def test_no_import_inside_a_function(name: str) -> None:
    assert not _inner_imports(MODULES[name]), f"{MODULES[name]}: move the import to the top"


@pytest.mark.parametrize(
    "package", ["fxlite", "guards", "hook", "opcodes", "config", "errors", "log"]
)
def test_loads_without_torch(package: str) -> None:
    code = f"import dynacap.{package}, sys; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd="/", check=False)
    assert done.returncode == 0, f"import dynacap.{package} loads torch, or fails"


@pytest.mark.parametrize(
    "name", [n for n in MODULES if top(n) in {"fxlite", "guards", "hook", "opcodes"}]
)
def test_each_low_module_loads_without_torch(name: str) -> None:
    heads = {
        alias.name.split(".")[0]
        for node in ast.parse(MODULES[name].read_text()).body
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").split(".")[0]
        for node in ast.parse(MODULES[name].read_text()).body
        if isinstance(node, ast.ImportFrom)
    }
    owner = name.endswith("torch_interop")
    assert "torch" not in heads or owner, f"{MODULES[name]} imports torch when it is loaded"
