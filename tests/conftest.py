"""What every test runs under: this checkout's packages, strict options, a fixed seed."""

import ast
import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynacap.config import config

ROOT = Path(__file__).resolve().parent.parent
HAS_TORCH = importlib.util.find_spec("torch") is not None
FOLDERS = {
    "dynacap": ROOT / "dynacap",
    "dynacap.guards": ROOT / "guards",
    "dynacap.fxlite": ROOT / "fxlite",
    "dynacap.backends": ROOT / "backends",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--installed`` tests the installed package instead of this checkout's."""
    parser.addoption(
        "--installed", action="store_true", help="test an installed dynacap, not this checkout"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to test a mixture of two checkouts: each package must come from this one."""
    if config.getoption("--installed"):
        return
    for name, folder in FOLDERS.items():
        found = Path(str(importlib.import_module(name).__file__)).resolve().parent
        if found != folder.resolve():
            raise pytest.UsageError(f"{name} comes from {found}; run: pip install -e .")


def _imports_torch(path: Path) -> bool:
    """Whether the module imports torch, or something that does, as soon as it is loaded."""
    heads = {
        name.split(".")[0]
        for node in ast.parse(path.read_text()).body
        for name in _imported_names(node)
    }
    return not heads.isdisjoint({"torch", "transformers"})


def _imported_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that need torch where there is none (as deselecting them would)."""
    if not HAS_TORCH and collection_path.suffix == ".py" and _imports_torch(collection_path):
        return True
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say that tests were left out."""
    if not HAS_TORCH:
        terminalreporter.write_line(
            "NO TORCH HERE: the tests that need it did not run", yellow=True
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests in a file that imports torch carry the marker ``torch`` without saying so."""
    needs = {path: _imports_torch(path) for path in {item.path for item in items}}
    for item in items:
        if needs[item.path]:
            item.add_marker(pytest.mark.torch)


@pytest.fixture(autouse=True)
def _strict_options() -> Iterator[None]:
    """Errors inside dynacap fail a test instead of quietly running plain Python."""
    with config.patch(raise_internal_errors=True):
        yield
